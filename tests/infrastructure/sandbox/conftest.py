"""A client of the loopback Canon, as the plugin would authenticate."""

import httpx
import pytest


@pytest.fixture
def client(canon):
    headers = {"Authorization": f"Bearer {canon.identity.api_key}"}
    with httpx.Client(base_url=canon.base_url, headers=headers, timeout=10) as opened:
        yield opened
