"""Serves the page in a thread of its own, with an event loop of its own."""

from __future__ import annotations

import errno
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..client.cluster import Cluster
from ..client.reports.served import Console
from ..errors import MisuseError
from ..limits import CONSOLE_PEERS_MAX
from .asking import ClusterWatch
from .content.live_outputs import LiveOutputs

if TYPE_CHECKING:
    from uvicorn import Server

__all__ = ["PageServer", "console_of", "serve"]

_START_SECONDS = 30.0
_LOOPBACK = "127.0.0.1"


class PageServer:
    """The page, and what asks the workers for it."""

    def __init__(
        self, watch: ClusterWatch, outputs: LiveOutputs, server: Server, taken: socket.socket, address: str
    ) -> None:
        self.watch, self.outputs, self.address = watch, outputs, address
        self.port: int = taken.getsockname()[1]
        self._server = server
        self._is_closed = False
        self.thread = threading.Thread(
            target=server.run, kwargs={"sockets": [taken]}, name="console", daemon=True
        )
        self.thread.start()

    def close(self) -> None:
        """End the page, and ask no more. The second time it does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._server.should_exit = self._server.force_exit = True
        self.thread.join(_START_SECONDS)
        self.outputs.close()
        self.watch.close()


def console_of(cluster: Cluster, port: int = 0, page: Path | None = None) -> Console:
    """Serve a page about a cluster to this machine: see `Cluster.console`."""
    server = serve(lambda: ClusterWatch(cluster), _LOOPBACK, port, page=page)
    return Console(server.address, server.close)


def serve(
    begin: Callable[[], ClusterWatch],
    host: str,
    port: int,
    names: Iterable[str] = (),
    page: Path | None = None,
) -> PageServer:
    """Serve the page at a port of `host`; 0 takes a free one. `names` are others that browsers may call the
    host by. `page` is the folder of a page of the user's own, which the address then shows. Raises
    MisuseError if the port is taken, packages are missing, or the folder has no page.
    """
    try:
        import uvicorn

        from .web.app import app_of
        from .web.connections import LimitedConnection
        from .web.guarding import OWN_PAGE, PageGuard
    except ImportError as error:
        raise MisuseError(
            f"the page needs starlette and uvicorn ({error}): pip install 'naiad[console]'"
        ) from None
    if page is not None and not (page / "index.html").is_file():
        raise MisuseError(f"{page} has no index.html: give the folder of a page, with that file in it")
    taken = _bound(host, port)
    port = taken.getsockname()[1]
    token = secrets.token_urlsafe(24)
    watch = begin()
    outputs = LiveOutputs(lambda: watch.cluster)
    own = {"localhost", host, socket.gethostname(), *names}
    config = uvicorn.Config(
        PageGuard(app_of(watch, outputs, page), token, own, port),
        http=LimitedConnection,
        loop="asyncio",
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        backlog=CONSOLE_PEERS_MAX,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # bad requests are answered, not logged
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
    shown = f"[{shown}]" if ":" in shown else shown
    path = "/" if page is None else OWN_PAGE
    address = f"http://{shown}:{port}{path}?token={token}"
    return PageServer(watch, outputs, uvicorn.Server(config), taken, address)


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there, so that a browser that is quick finds it."""
    if not 0 <= port < 1 << 16:
        raise MisuseError(f"{port} is no port: give one up to 65535, or 0 for a free one")
    taken: socket.socket | None = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family, socket.SOCK_STREAM)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(CONSOLE_PEERS_MAX)
    except OSError as error:
        if taken is not None:
            taken.close()
        what = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        raise MisuseError(f"{host}:{port} {what}. Give another port, or 0 for a free one") from None
    return taken
