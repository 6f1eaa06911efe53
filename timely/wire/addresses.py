"""How are hosts and ports written? `host:port`, with an IPv6 address in brackets: `[fd00::7]:7401`.

The form is the same on command lines, in host files, in `connect`, and in the output of workers.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from ..errors import MisuseError

__all__ = ["host_and_port", "is_loopback", "is_tcp", "socket_address", "tcp_address", "wants_ipv6"]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def host_and_port(text: str, port: int | None = None) -> tuple[str, int]:
    """Return the host, without brackets, and the port. `text` may omit the port if `port` gives a default.

    Raises `MisuseError`, which says how to write an address, for any other text.
    """
    form = "host:port" if port is None else "host or host:port"
    host, colon, digits = text.rpartition(":")
    if port is not None and (not colon or text.endswith("]")):
        host, digits = text, str(port)
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in inner and inner == host:
        raise MisuseError(f"{text!r} is no address: one of IPv6 stands in brackets, as in [fd00::7]:7401")
    if not inner or not digits.isdigit() or not 0 < int(digits) < 65_536 or ("[" in inner or "]" in inner):
        raise MisuseError(f"{text!r} is not {form}")
    if inner != host and not _is_ipv6(inner):
        raise MisuseError(f"{text!r} is no address: what stands in brackets is no address of IPv6")
    return inner, int(digits)


def tcp_address(host: str, port: int) -> str:
    """Return the address for a socket: `tcp://host:port`, with brackets around an IPv6 host."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def socket_address(address: str) -> str:
    """Return "host:port" as an address for a socket; raises `MisuseError` for anything else.

    A text that is such an address already (tcp, ipc, inproc) is returned as it is.
    """
    if address.startswith(("tcp://", "ipc://", "inproc://")):
        return address
    try:
        return tcp_address(*host_and_port(address))
    except MisuseError:
        raise MisuseError(
            f"{address!r} is no address of a worker: write host:port, as the worker said when it was ready "
            "([host]:port for an address of IPv6)"
        ) from None


def is_tcp(address: str) -> bool:
    """Return True if the other end of `address` may be on another host."""
    return address.startswith("tcp://")


def is_loopback(host: str) -> bool:
    """Return True if `host` is a name that only this machine can reach: localhost, 127.0.0.1, ::1.

    A socket bound to any other name can be reached from outside, and needs keys.
    """
    return host in _LOOPBACK


def wants_ipv6(address: str) -> bool:
    """Return True if a socket reaches `address` only by IPv6.

    That holds for an address in brackets, and for a name that resolves to IPv6 addresses only. A name that
    has both kinds is reached by IPv4. Cost: for a name, one query to the host's resolver.
    """
    if not is_tcp(address):
        return False
    host = address.removeprefix("tcp://").rpartition(":")[0]
    if host.startswith("["):
        return True
    if host == "*" or host.replace(".", "").isdigit():
        return False
    try:
        kinds = {kind for kind, *_ in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False  # not resolvable yet: the socket resolves the name by itself later
    return socket.AF_INET6 in kinds and socket.AF_INET not in kinds


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
