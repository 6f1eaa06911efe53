"""How are hosts and ports written? `host:port`, with an IPv6 address in brackets: `[fd00::7]:7401`.

The form is the same on command lines, in host files, in `connect`, and in the output of workers.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from ..errors import MisuseError
from ..forking import leave_to_parent
from ..limits import ASIDE_PORTS_DEFAULT

__all__ = [
    "aside",
    "host_and_port",
    "is_loopback",
    "is_tcp",
    "leave_ports_when_forked",
    "public_address",
    "remove_sockets",
    "socket_address",
    "tcp_address",
    "wants_ipv6",
]

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


def aside(address: str) -> str:
    """Return the address beside the one for clients at which a worker says what it is at, even in a long
    call; empty if there is none.
    """
    if address.startswith("ipc://"):
        return f"{address}-aside"
    host, _, port = address.rpartition(":")
    if not is_tcp(address) or not port.isdigit() or not 0 < int(port) < 65_536 - ASIDE_PORTS_DEFAULT:
        return ""
    return f"{host}:{int(port) + ASIDE_PORTS_DEFAULT}"


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


def public_address(address: str, host: str) -> str:
    """Return the address that clients use: with the name of the host instead of the interface."""
    return tcp_address(host, int(address.rpartition(":")[2])) if host and is_tcp(address) else address


def remove_sockets(addresses: Iterable[str]) -> None:
    """Remove the ipc sockets at these addresses, and their folders if these are empty then: whoever has made
    them may have been killed.
    """
    for address in addresses:
        if address.startswith("ipc://"):
            path = Path(address.removeprefix("ipc://"))
            try:
                path.unlink(missing_ok=True)
                path.parent.rmdir()
            except OSError:
                pass  # not empty yet, or somebody else has removed it


@cache
def leave_ports_when_forked() -> None:
    """Let processes that are forked from this one, as by `multiprocessing`, leave its ports to it. Otherwise
    nobody could listen there as long as they go on, though this process was killed.
    """
    os.register_at_fork(after_in_child=_leave_ports)


def _leave_ports() -> None:
    with suppress(OSError):
        open_now = [int(path.name) for path in Path("/dev/fd").iterdir()]
        leave_to_parent(filter(_is_listening, open_now))


def _is_listening(descriptor: int) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(fileno=os.dup(descriptor)) as same:
            return same.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0
    except OSError:  # it was that of the listing itself
        return False
