"""Uploaded and hosted files of the loopback Canon (canon-wire §1.7, §1.8, §6.4). In memory only."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from canon_hermes_plugin.infrastructure.sandbox.records import Json, RefusedError

MAX_MEDIA_BYTES = 10_485_760


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file as it will be served."""

    id: str
    data: bytes
    mime_type: str
    file_name: str


@dataclass(slots=True)
class MediaShelf:
    """Files by id. ``redirect`` makes every download go through one redirect first."""

    files: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    redirect: bool = False

    def put(self, data: bytes, mime_type: str, file_name: str = "") -> StoredFile:
        """Store bytes without any limit (a hostile host may serve more than the plugin accepts)."""
        stored = StoredFile(f"file_{len(self.files) + 1}", data, mime_type, file_name)
        self.files[stored.id] = stored
        return stored

    def upload(self, body: Json) -> StoredFile:
        """Store an R6 body; refuses bad base64 and more than 10 MiB."""
        data, mime_type = body.get("data"), body.get("mimeType")
        if not isinstance(data, str) or not isinstance(mime_type, str) or not mime_type:
            raise RefusedError(400, "data and mimeType are required")
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise RefusedError(400, "data is not standard base64") from None
        if len(raw) > MAX_MEDIA_BYTES:
            raise RefusedError(413, f"media exceeds {MAX_MEDIA_BYTES} bytes")
        name = body.get("fileName")
        return self.put(raw, mime_type, name if isinstance(name, str) else "")


def kind_of(mime_type: str) -> str:
    """Return the attachment kind a MIME type stands for."""
    family = mime_type.split("/", 1)[0].lower()
    return family if family in {"image", "audio", "video"} else "file"


def attachment(stored: StoredFile, base_url: str) -> Json:
    """Return the attachment object for a stored file."""
    value: Json = {
        "kind": kind_of(stored.mime_type),
        "url": f"{base_url}/media/{stored.id}",
        "mimeType": stored.mime_type,
        "sizeBytes": len(stored.data),
    }
    if stored.file_name:
        value["fileName"] = stored.file_name
    return value
