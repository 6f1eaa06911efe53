"""`python -m timely.why`: say from a shell what holds an epoch that is not complete.

It asks no worker for anything that only a worker between two steps can answer: the one whose address is named
may be in the middle of a long call.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..client.remote.asking import Asker
from ..client.reports.retained import retained_of
from ..client.reports.why import at_work, report_of
from ..errors import MisuseError, PeerError
from ..keys.folder import client_keys
from ..limits import SILENCE_SECONDS_DEFAULT
from ..wire.addresses import socket_address
from ..wire.keys import ClientKeys
from ..wire.requests import Reply, Why

__all__ = ["run_command"]

_EXAMPLES = """examples:
  python -m timely.why localhost:7401              the last sealed epoch of each dataflow
  python -m timely.why localhost:7401 shop         of one, by its name or number
  python -m timely.why localhost:7401 shop 17      one epoch
  python -m timely.why host:7401 --keys ada-keys   if the workers have keys"""


def run_command(arguments: Sequence[str]) -> Iterator[str]:
    """Run a command line, and yield what to print.

    Raises `PeerError` if the worker does not answer, `MisuseError` if there is no such dataflow; exits with
    status 2 and the usage if the line is malformed.
    """
    parsed = _parser().parse_args(arguments)
    keys = client_keys(parsed.keys)
    (answer,) = _asked([socket_address(parsed.address)], keys, Why(-1, -1))
    if not isinstance(answer, Reply):
        raise PeerError(answer)
    others = [str(address) for address in answer.items("addresses")]
    addresses = [address for address in others if address] or [socket_address(parsed.address)]
    flows = _flows(answer)
    chosen = flows if parsed.dataflow is None else [_chosen(flows, parsed.dataflow)]
    if not chosen:
        yield "no dataflow is installed"
        yield from at_work(_asked(addresses, keys, Why(-1, -1)))
    for number, name, sealed in chosen:
        epoch = max(0, sealed) if parsed.epoch is None else parsed.epoch
        answers = _asked(addresses, keys, Why(number, epoch, parsed.retained))
        yield str(retained_of(name, answers) if parsed.retained else report_of(name, epoch, answers))


def _asked(addresses: Sequence[str], keys: ClientKeys | None, request: Why) -> list[Reply | str]:
    asker = Asker(addresses, keys, SILENCE_SECONDS_DEFAULT)
    try:
        return asker.ask(request)
    finally:
        asker.close()


def _flows(answer: Reply) -> list[tuple[int, str, int]]:
    """Return number, name and last sealed epoch of each dataflow."""
    flows: list[tuple[int, str, int]] = []
    for entry in answer.items("dataflows"):
        match entry:
            case [int(number), str(name), int(sealed)]:
                flows.append((number, name, sealed))
    return flows


def _chosen(flows: Sequence[tuple[int, str, int]], asked: str) -> tuple[int, str, int]:
    named = [flow for flow in flows if asked in (str(flow[0]), flow[1], flow[1].rpartition(":")[2])]
    if len(named) == 1:
        return named[0]
    listed = ", ".join(f"{name!r} (number {number})" for number, name, _ in flows) or "none"
    raise MisuseError(f"{len(named) or 'no'} dataflows are called {asked!r}: there are {listed}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.why",
        description="Say what holds an epoch of a running cluster that is not complete.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", metavar="HOST:PORT", help="of any worker of the cluster")
    parser.add_argument("dataflow", nargs="?", help="its name or number; by default all")
    parser.add_argument("epoch", nargs="?", type=int, help="by default the last sealed one")
    parser.add_argument(
        "--retained",
        action="store_true",
        help="say what keeps arrangements and outputs from forgetting history, and not what holds an epoch",
    )
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FOLDER",
        help="the keys of this client, as 'python -m timely.keys client' has made them",
    )
    return parser
