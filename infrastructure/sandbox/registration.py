"""Agent registration of the loopback Canon (canon-wire §2.1, §11.1 row 21)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.infrastructure.sandbox.records import Json, RefusedError
from canon_hermes_plugin.infrastructure.sandbox.state import CanonState, new_token

_LOCAL_ID = re.compile(r"hermes-[0-9a-f]{32}")
_REQUIRED = ("name", "description", "ownerPhone", "developerInfo", "clientType", "localRegistrationId")


@dataclass(slots=True)
class Registration:
    """One request to become an agent. ``poll_token`` is ``None`` when none was issued."""

    id: str
    body: Json
    poll_token: str | None
    status: Literal["pending", "approved", "rejected"] = "pending"
    acknowledged: bool = False


class RegistrationDesk:
    """Keeps registration requests. An approved one receives the loopback agent's own key.

    Public methods may be called from any thread.
    """

    def __init__(self, state: CanonState) -> None:
        self._state = state
        self.issue_tokens = True
        self.requests: list[Registration] = []

    def submit(self, body: Json) -> Json:
        """R19: the same ``localRegistrationId`` gets the same request."""
        with self._state.lock:
            missing = [name for name in _REQUIRED if not isinstance(body.get(name), str) or not body[name]]
            if missing:
                raise RefusedError(400, f"missing {', '.join(missing)}")
            if body["clientType"] != "hermes" or not _LOCAL_ID.fullmatch(body["localRegistrationId"]):
                raise RefusedError(400, "unknown clientType or malformed localRegistrationId")
            found = self._by_local_id(body["localRegistrationId"])
            if found is None:
                token = new_token("poll") if self.issue_tokens else None
                found = Registration(f"req_{len(self.requests) + 1}", dict(body), token)
                self.requests.append(found)
                self._state.lock.notify_all()
            answer: Json = {"requestId": found.id}
            return answer if found.poll_token is None else {**answer, "pollToken": found.poll_token}

    def status(self, request_id: str, token: str | None) -> Json:
        """R20: the key is delivered until it is acknowledged."""
        with self._state.lock:
            found = self._authorised(request_id, token)
            answer: Json = {"status": found.status}
            if found.status == "approved":
                identity = self._state.identity
                answer |= {"agentId": identity.agent_id, "agentName": identity.agent_name}
                if not found.acknowledged:
                    answer["apiKey"] = identity.api_key
            return answer

    def acknowledge(self, request_id: str, token: str | None) -> None:
        """R21: the key was stored; idempotent."""
        with self._state.lock:
            found = self._authorised(request_id, token)
            if found.status != "approved":
                raise RefusedError(409, "the request is not approved")
            found.acknowledged = True

    def approve(self, request_id: str | None = None) -> Registration:
        """Approve a request (the newest one by default)."""
        return self._decide(request_id, "approved")

    def reject(self, request_id: str | None = None) -> Registration:
        """Reject a request (the newest one by default)."""
        return self._decide(request_id, "rejected")

    def forget(self) -> None:
        """Drop every request: polling one now answers 404."""
        with self._state.lock:
            self.requests.clear()

    def _decide(self, request_id: str | None, status: Literal["approved", "rejected"]) -> Registration:
        with self._state.lock:
            for found in reversed(self.requests):
                if request_id in {None, found.id}:
                    found.status = status
                    return found
        raise LookupError("no such registration request")

    def _by_local_id(self, local_id: str) -> Registration | None:
        return next((found for found in self.requests if found.body["localRegistrationId"] == local_id), None)

    def _authorised(self, request_id: str, token: str | None) -> Registration:
        found = next((known for known in self.requests if known.id == request_id), None)
        if found is None:
            raise RefusedError(404, "registration request not found")
        if found.poll_token not in {None, token}:
            raise RefusedError(401, "the poll token is missing or wrong")
        return found
