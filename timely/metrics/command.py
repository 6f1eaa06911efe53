"""`python -m timely.metrics`: serve the metrics of a cluster to Prometheus, over HTTP.

It is a client of the cluster, no part of a worker. If the cluster ends, it says so (`naiad_up 0`) and asks
again at each scrape: a cluster that is started anew under the same address is found.
"""

from __future__ import annotations

import argparse
import errno
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from .. import connect
from ..client.cluster import Cluster
from ..client.reports.figures import Stats
from ..errors import MisuseError, TimelyError

__all__ = ["ScrapeServer", "ScrapedCluster", "listen_address", "run_command", "serve"]

_EXAMPLES = """examples:
  python -m timely.metrics localhost:7401                       http://127.0.0.1:9464/metrics
  python -m timely.metrics localhost:7401 --stages              with metrics for each stage
  python -m timely.metrics host:7401 --keys ada --listen 0.0.0.0:9464
  python -m timely.metrics --print board > naiad.json           a board for Grafana
  python -m timely.metrics --print alerts > naiad.yml           alerts for Prometheus"""

_FILES = {"board": "board.json", "alerts": "alerts.yml"}


def run_command(arguments: Sequence[str], out: TextIO) -> None:
    """Run a command line until it is interrupted.

    Raises `MisuseError` if the address is taken, or the package prometheus-client is missing; exits with
    status 2 and the usage if the line is malformed.
    """
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.print is not None:
        out.write((Path(__file__).parent / _FILES[parsed.print]).read_text(encoding="utf-8"))
        return
    if parsed.address is None:
        parser.error("the address of a worker is missing: HOST:PORT")
    host, port = parsed.listen
    asked = ScrapedCluster(parsed.address, parsed.keys)
    server = serve(asked, host, port, stages=parsed.stages)
    out.write(f"http://{host}:{server.port}/metrics\n")
    out.flush()
    try:
        server.thread.join()
    finally:
        server.close()
        asked.close()


class ScrapedCluster:
    """A cluster that gives its counters, and to which this connects again after it has ended."""

    def __init__(self, address: str, keys: Path | None) -> None:
        self._address, self._keys = address, keys
        self._cluster: Cluster | None = None

    def __call__(self) -> Stats:
        """Return what `cluster.stats()` does; raise TimelyError if the cluster does not answer."""
        if self._cluster is None:
            self._cluster = connect(self._address, keys=self._keys)
        try:
            return self._cluster.stats()
        except TimelyError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()


class ScrapeServer:
    """An HTTP server that runs in a thread."""

    def __init__(self, server: object, thread: threading.Thread, port: int) -> None:
        self._server, self.thread, self.port = server, thread, port

    def close(self) -> None:
        """End it, and wait for that."""
        self._server.shutdown()  # type: ignore[attr-defined]
        self._server.server_close()  # type: ignore[attr-defined]
        self.thread.join()


def serve(asked: ScrapedCluster, host: str, port: int, *, stages: bool = False) -> ScrapeServer:
    """Serve the metrics of a cluster at http://host:port/metrics. Port 0 takes a free one."""
    try:
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry

        from .collector import ClusterCollector
    except ImportError as error:
        raise MisuseError(f"{error}: pip install 'naiad[metrics]'") from None
    registry = CollectorRegistry()
    registry.register(ClusterCollector(asked, stages=stages))
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        what = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        raise MisuseError(
            f"--listen {host}:{port} {what}. Give another one, or port 0 for a free one"
        ) from None
    return ScrapeServer(server, thread, int(server.server_port))


def listen_address(text: str) -> tuple[str, int]:
    """Return the host and the port of `--listen`; raises ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: give HOST:PORT, as in 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.metrics",
        description="Serve what a running cluster counts, as Prometheus reads it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", metavar="HOST:PORT", nargs="?", help="of any worker of the cluster")
    parser.add_argument(
        "--listen",
        type=listen_address,
        default=("127.0.0.1", 9464),
        metavar="HOST:PORT",
        help="where to serve (127.0.0.1:9464). programs that reach it read names and numbers, no rows",
    )
    parser.add_argument("--stages", action="store_true", help="also give metrics for each stage")
    parser.add_argument("--print", choices=list(_FILES), help="print a file that comes with it, and end")
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FOLDER",
        help="the keys of this client, as 'python -m timely.keys client' has made them",
    )
    return parser
