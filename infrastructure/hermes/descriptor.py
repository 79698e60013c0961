"""What the runtime tells Canon's clients it can do (canon-wire §1.11). Data only."""

from __future__ import annotations

from typing import Any


def _command(name: str, aliases: list[str], signal: str, **rest: object) -> dict[str, Any]:
    return {"id": name, "aliases": aliases, "dispatch": {"kind": "signal", "signal": signal}, **rest}


_PLACES = ["composer_slash", "command_palette", "session_strip"]

RUNTIME_DESCRIPTOR: dict[str, Any] = {
    "coreControls": [],
    "runtimeControls": [],
    "commands": [
        _command(
            "stop",
            ["stop"],
            "interrupt",
            category="turn",
            placements=["composer_slash", "command_palette"],
            availability=["busy"],
            label="Stop",
            description="Stop the answer in progress.",
        ),
        _command(
            "stop-and-clear-queue",
            ["stop-clear", "clear-queue"],
            "stop_and_drop",
            category="turn",
            placements=_PLACES,
            availability=["busy_with_queue"],
            label="Stop and clear queue",
            description="Stop the answer in progress and drop the messages that wait.",
        ),
        _command(
            "new-session",
            ["new"],
            "new_session",
            category="session",
            placements=_PLACES,
            availability=["always"],
            label="New session",
            description="Start over with an empty memory of this conversation.",
        ),
    ],
    "supportsInterrupt": True,
    "supportsInputInterrupt": True,
    "streamingTextMode": "delta",
}
