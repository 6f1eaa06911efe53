"""`python -m timely.console`: serve a page that shows how a running cluster works.

It is a client of the cluster, no part of a worker. If the cluster ends, the page says so, and it connects
again as soon as workers answer at that address.
"""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from .. import connect
from ..client.cluster import Cluster
from ..errors import MisuseError
from ..metrics.command import listen_address
from .asking import ClusterWatch
from .serving import serve

__all__ = ["run_command"]

_EXAMPLES = """examples:
  python -m timely.console localhost:7401                       the page, for browsers of this machine
  python -m timely.console localhost:7401 --listen 127.0.0.1:0  at a free port
  python -m timely.console host:7401 --keys ada --listen 0.0.0.0:8080 --name stats.example.org

open the address that it prints: it has a token, which is another one at each start. from another machine,
'ssh -L 8080:127.0.0.1:8080 HOST' brings the page there without opening a port."""


def run_command(arguments: Sequence[str], out: TextIO) -> None:
    """Run a command line until it is interrupted.

    Raises `PeerError` if nobody answers at the address, and `MisuseError` if the port is taken or packages
    are missing; exits with status 2 and the usage if the line is malformed.
    """
    parsed = _parser().parse_args(arguments)
    host, port = parsed.listen
    if parsed.keys is None and not _is_loopback(host):
        raise MisuseError(
            f"--listen {host}: other machines reach the page there, and read all rows. That takes workers "
            "with keys, and --keys FOLDER; or listen at 127.0.0.1"
        )

    def joined() -> Cluster:
        return connect(parsed.address, keys=parsed.keys)

    joined().close()  # raises here, and not on the page, if the address or the keys are wrong
    server = serve(lambda: ClusterWatch(None, joined), host, port, parsed.name, parsed.page)
    out.write(f"{server.address}\n")
    out.flush()
    try:
        server.thread.join()
    finally:
        server.close()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.console",
        description="Serve a page that shows how a running cluster works.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", metavar="HOST:PORT", help="of any worker of the cluster")
    parser.add_argument(
        "--listen",
        type=listen_address,
        default=("127.0.0.1", 8080),
        metavar="HOST:PORT",
        help="where to serve the page (127.0.0.1:8080). other than this machine only with --keys",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="that browsers may call this host by, beside its own name and addresses",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FOLDER",
        help="of a page of your own, with an index.html. the address shows it; the console is at /",
    )
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FOLDER",
        help="the keys of this client, as 'python -m timely.keys client' has made them",
    )
    return parser
