"""The one TLS context of the process: made once and in a thread, because reading the certificate store blocks."""

from __future__ import annotations

import asyncio
import ssl

import httpx

_made: list[ssl.SSLContext] = []


async def context() -> ssl.SSLContext:
    """Return the context; safe on any loop and thread (at worst two callers make one each, and one is kept)."""
    if not _made:
        _made.append(await asyncio.to_thread(httpx.create_ssl_context))
    return _made[0]
