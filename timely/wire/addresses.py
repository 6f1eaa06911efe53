"""How are hosts and ports written? `host:port`; an address of IPv6 stands in brackets, `[fd00::7]:7401`.

Everywhere alike: on command lines, in host files, in `connect`, and in what workers print.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from ..errors import MisuseError

__all__ = ["host_and_port", "is_loopback", "is_tcp", "socket_address", "tcp_address", "wants_ipv6"]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def host_and_port(text: str, port: int | None = None) -> tuple[str, int]:
    """The host, without brackets, and the port, which may be left out if there is a usual one.

    Raises `MisuseError` that says how to write it.
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
    """As sockets want it, with brackets where they are needed."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def socket_address(address: str) -> str:
    """ "host:port" as an address of a socket; raises `MisuseError` for anything else."""
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
    """Whether other hosts may be at the end of it."""
    return address.startswith("tcp://")


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine by one of the names that reach no other: localhost, 127.0.0.1, ::1.
    What is listened at for any other name can be reached from outside, and wants keys.
    """
    return host in _LOOPBACK


def wants_ipv6(address: str) -> bool:
    """Whether a socket reaches `address` only by IPv6: an address in brackets, or a name that has no other
    kind.

    A name that has both is reached by IPv4, as ever. Cost: for a name, one question to the host's resolver.
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
        return False  # nobody knows it yet: the socket asks again
    return socket.AF_INET6 in kinds and socket.AF_INET not in kinds


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
