"""Which network addresses an attachment may be fetched from (canon-wire §1.8, field fault 86): pure judgement.

Refuses to know names: by the time an address is judged it was resolved, and the judged address is the one connected to.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Literal

Verdict = Literal["public", "private", "forbidden"]
"""``private`` addresses may be opened by the host's policy; ``forbidden`` ones never."""

_NAT64 = IPv6Network("64:ff9b::/96")
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"))
)


def judge(address: str) -> Verdict:
    """Judge a literal address, embedded IPv4 addresses included."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return "forbidden"
    verdicts = [_judge(one) for one in (parsed, *_embedded(parsed))]
    if "forbidden" in verdicts:
        return "forbidden"
    return "private" if "private" in verdicts else "public"


def _judge(address: IPv4Address | IPv6Address) -> Verdict:
    if address in _METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return "forbidden"
    return "public" if address.is_global else "private"


def _embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that a tunnel or translator would reach through ``address``."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
