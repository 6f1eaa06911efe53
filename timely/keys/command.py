"""`python -m timely.keys`: manage the keys of a cluster from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..wire.keys import shown_key
from .folder import add_client, clients_of, load_cluster, make_cluster, revoke_client

__all__ = ["run_command"]

_EXAMPLES = """examples:
  python -m timely.keys new cluster-keys             once; then copy the folder to the hosts of all workers
  python -m timely.worker --keys cluster-keys        … on each of them
  python -m timely.keys client cluster-keys ada      makes folder ada-keys: give it to ada, and to nobody else
  timely.connect("host:7401", keys="ada-keys")       … in her program
  python -m timely.keys list cluster-keys
  python -m timely.keys revoke cluster-keys ada      workers end her connections within two seconds

Workers read CLUSTER/clients.txt anew when it changes: with several hosts, copy it to all of them.
Whoever has cluster.key is the cluster, whoever has client.key is that client: both have mode 0600."""


def run_command(arguments: Sequence[str]) -> list[str]:
    """Run a command line, and return the lines to print.

    Raises `MisuseError` if the command fails; exits with status 2 and the usage if the line is malformed.
    """
    parsed = _parser().parse_args(arguments)
    folder: Path = parsed.folder
    match parsed.command:
        case "new":
            keys = make_cluster(folder)
            return [
                f"cluster {shown_key(keys.pair.public)} has its keys in {folder}; it lets no client in yet"
            ]
        case "client":
            target: Path = parsed.to or Path(f"{parsed.name}-keys")
            client = add_client(folder, parsed.name, target)
            return [
                f"client {parsed.name} {shown_key(client.pair.public)} is let in; its keys are in {target}"
            ]
        case "list":
            load_cluster(folder)
            return [f"{name} {public}" for name, public in clients_of(folder).items()]
        case _:
            revoke_client(folder, parsed.name)
            return [f"client {parsed.name} is let in no more"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.keys",
        description="Make the keys by which workers and clients of a cluster know each other.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("new", "make the keys of a new cluster in folder CLUSTER"),
        ("client", "make the keys of client NAME, and let it in"),
        ("list", "who is let in, with public keys"),
        ("revoke", "let client NAME in no more, and end its connections"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("folder", type=Path, metavar="CLUSTER", help="the folder of the cluster's keys")
        if name in ("client", "revoke"):
            command.add_argument("name", metavar="NAME", help="the name of the client")
        if name == "client":
            command.add_argument("--to", type=Path, metavar="FOLDER", help="where its keys go (NAME-keys)")
    return parser
