"""What each route of the loopback Canon does (canon-wire §1). One small handler a route, no wire detail."""

from __future__ import annotations

from dataclasses import dataclass

from canon_hermes_plugin.infrastructure.sandbox.interactions import InteractionDesk
from canon_hermes_plugin.infrastructure.sandbox.media import MediaShelf, attachment
from canon_hermes_plugin.infrastructure.sandbox.records import RefusedError, Reply
from canon_hermes_plugin.infrastructure.sandbox.registration import RegistrationDesk
from canon_hermes_plugin.infrastructure.sandbox.state import TURN_STATES
from canon_hermes_plugin.infrastructure.sandbox.verbs import VerbDesk
from canon_hermes_plugin.infrastructure.sandbox.wire import Call, Handler, Wire
from starlette.applications import Starlette
from starlette.routing import Route

ENVIRONMENT_HEADER = "x-canon-environment-id"
POLL_TOKEN_HEADER = "x-canon-poll-token"  # noqa: S105 - a header's name


@dataclass(slots=True)
class Desks:
    """The parts of this Canon that have rules of their own."""

    media: MediaShelf
    interactions: InteractionDesk
    verbs: VerbDesk
    registrations: RegistrationDesk


def build_app(wire: Wire, desks: Desks) -> Starlette:
    """Return the application that serves both of Canon's bases."""

    def route(path: str, method: str, name: str, handler: Handler) -> Route:
        return Route(path, wire.endpoint(name, handler), methods=[method])

    media, verbs, registrations = _Media(desks.media), _Verbs(desks.verbs), _Registrations(desks.registrations)
    interactions = _Interactions(desks.interactions)
    routes = [
        route("/healthz/", "GET", "healthz", health),
        route("/health", "GET", "health", health),
        route("/agents/me", "GET", "me", me),
        route("/conversations", "GET", "conversations", conversations),
        route("/messages/send", "POST", "send", send),
        route("/media/upload", "POST", "upload", media.upload),
        route("/media/{file_id}", "GET", "media", media.download),
        route("/media-store/{file_id}", "GET", "media", media.stored),
        route("/typing", "POST", "typing", typing),
        route("/streaming", "POST", "streaming", streaming),
        route("/runtime/status", "POST", "status", runtime_status),
        route("/runtime/turn", "POST", "turn", runtime_turn),
        route("/runtime/signal/consume", "POST", "signal", consume_signal),
        route("/conversations/{cid}/messages/{mid}/disposition", "PATCH", "disposition", disposition),
        route("/conversations/{cid}/read", "POST", "read", read),
        route("/runtime-interaction/request", "POST", "interaction.create", interactions.create),
        route("/runtime-interaction/consume", "POST", "interaction.consume", interactions.consume),
        route("/agent/verbs/{verb}", "POST", "verb", verbs.call),
        route("/agents/register", "POST", "register", registrations.submit),
        route("/agents/status/{request_id}", "GET", "register.status", registrations.status),
        route("/agents/status/{request_id}/ack", "POST", "register.ack", registrations.acknowledge),
        Route("/agents/stream", wire.stream(), methods=["GET"]),
    ]
    return Starlette(routes=routes)


def health(call: Call) -> Reply:
    """R1, R2: prove the environment."""
    identity = call.state.identity
    body = {"environmentId": identity.environment_id, "projectId": identity.project_id}
    return Reply(200, body, {ENVIRONMENT_HEADER: identity.environment_id})


def me(call: Call) -> Reply:
    """R3: who the key belongs to."""
    identity = call.state.identity
    return Reply(200, {"agentId": identity.agent_id, "ownerId": identity.owner.id, "displayName": identity.agent_name})


def conversations(call: Call) -> Reply:
    """R4: the agent's conversations."""
    return Reply(200, {"conversations": list(call.state.conversations.values())})


def send(call: Call) -> Reply:
    """R5: store a durable message; 201 when new, 200 when replayed."""
    message, new = call.state.store_outbound(call.body)
    body = {"messageId": message.id, "conversationId": message.conversation_id, "success": True}
    return Reply(201 if new else 200, body)


def typing(call: Call) -> Reply:
    """R8: the typing indicator."""
    call.state.conversation(call.body)
    if not isinstance(call.body.get("typing"), bool):
        raise RefusedError(400, "typing must be a boolean")
    if call.body.get("status", "thinking") not in {"typing", "thinking"}:
        raise RefusedError(400, "unknown typing status")
    call.state.logs.typing.append(call.body)
    return Reply()


def streaming(call: Call) -> Reply:
    """R9: merge into, blank or delete the ephemeral node."""
    call.state.write_node(call.body)
    return Reply()


def runtime_status(call: Call) -> Reply:
    """R10: the runtime is alive."""
    if call.body.get("runtime") != "hermes":
        raise RefusedError(400, "unknown runtime")
    call.state.logs.statuses.append(call.body)
    return Reply()


def runtime_turn(call: Call) -> Reply:
    """R11: a turn's public state."""
    call.state.conversation(call.body)
    if call.body.get("state") not in TURN_STATES:
        raise RefusedError(400, "unknown turn state")
    call.state.logs.turns.append(call.body)
    return Reply()


def consume_signal(call: Call) -> Reply:
    """R12: take the pending signal."""
    return Reply(200, call.state.take_signal(call.body))


def disposition(call: Call) -> Reply:
    """R13: a queued message starts running."""
    call.state.set_disposition(call.path["cid"], call.path["mid"], call.body)
    return Reply()


def read(call: Call) -> Reply:
    """R14: the conversation was read."""
    conversation_id = call.state.conversation({"conversationId": call.path["cid"]})
    call.state.logs.reads.append({"conversationId": conversation_id})
    return Reply()


class _Media:
    """R6 and R7."""

    def __init__(self, shelf: MediaShelf) -> None:
        self._shelf = shelf

    def upload(self, call: Call) -> Reply:
        call.state.conversation(call.body)
        value = attachment(self._shelf.upload(call.body), call.base_url)
        return Reply(201, {"attachment": value, "url": value["url"]})

    def download(self, call: Call) -> Reply:
        if self._shelf.redirect:
            return Reply(302, headers={"location": f"{call.base_url}/media-store/{call.path['file_id']}"}, content=b"")
        return self.stored(call)

    def stored(self, call: Call) -> Reply:
        stored = self._shelf.files.get(call.path["file_id"])
        if stored is None:
            raise RefusedError(404, "file not found")
        return Reply(200, content=stored.data, media_type=stored.mime_type)


class _Interactions:
    """R15 and R16."""

    def __init__(self, desk: InteractionDesk) -> None:
        self._desk = desk

    def create(self, call: Call) -> Reply:
        return Reply(201, self._desk.create(call.body))

    def consume(self, call: Call) -> Reply:
        return Reply(200, self._desk.consume(call.body))


class _Verbs:
    """R17."""

    def __init__(self, desk: VerbDesk) -> None:
        self._desk = desk

    def call(self, call: Call) -> Reply:
        return Reply(200, self._desk.call(call.path["verb"], call.body))


class _Registrations:
    """R19 to R21."""

    def __init__(self, desk: RegistrationDesk) -> None:
        self._desk = desk

    def submit(self, call: Call) -> Reply:
        return Reply(201, self._desk.submit(call.body))

    def status(self, call: Call) -> Reply:
        return Reply(200, self._desk.status(call.path["request_id"], call.record.headers.get(POLL_TOKEN_HEADER)))

    def acknowledge(self, call: Call) -> Reply:
        self._desk.acknowledge(call.path["request_id"], call.record.headers.get(POLL_TOKEN_HEADER))
        return Reply()
