"""What the page can ask for: files, events, and a few questions. Nothing of it changes the cluster."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from ...client.session import Flow
from ...errors import MisuseError, TimelyError
from ...limits import CONSOLE_CALLS_MAX, CONSOLE_QUERY_BYTES_MAX, CONSOLE_QUERY_SECONDS_MAX
from ..asking import ClusterWatch
from ..content.frames import stage_of
from ..content.live_outputs import LiveOutputs
from ..content.lookers import packed
from ..content.reading import answered, plan_of_view
from ..content.told import Json
from ..content.views import TableView
from .guarding import OWN_PAGE
from .streams import PULSE, EventStream, event, events_of, has_come

__all__ = ["app_of"]

_PAGE: Final = Path(__file__).parents[1] / "page"
_SHARED_SECONDS: Final = 2.0
"""How long an answer to `why` is that of all pages, which ask every two seconds or less often."""

_BUSY: Final = "the console has as many calls under way as it may: try again in a moment"


def app_of(watch: ClusterWatch, outputs: LiveOutputs, own: Path | None = None) -> ASGIApp:
    """Return the application for a cluster; `own` is the folder of a page of the user's own."""
    answers = _Answers(watch, outputs)
    theirs = [] if own is None else [Mount(OWN_PAGE, _OwnFiles(directory=own.resolve(), html=True))]
    return Starlette(
        routes=[
            *theirs,
            Route("/", answers.page),
            Route("/events", answers.events),
            Route("/table", answers.table),
            Route("/why", answers.why),
            Route("/explain", answers.explain),
            Route("/stage", answers.stage),
            Route("/query", answers.query, methods=["POST"]),
            Route("/metrics", answers.metrics),
            Mount("/static", StaticFiles(directory=_PAGE)),
        ]
    )


class _OwnFiles(StaticFiles):
    """The files of a user's own page. The folder may change, and be gone, while it is served."""

    async def check_config(self) -> None:
        """Check nothing: `serve` has checked the folder, and one that is gone has no files."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, or 404 if it cannot be read: a link to itself, say."""
        try:
            return await super().get_response(path, scope)
        except OSError:
            raise HTTPException(404) from None


class _Answers:
    def __init__(self, watch: ClusterWatch, outputs: LiveOutputs) -> None:
        self._watch, self._outputs = watch, outputs
        self._calls: Counter[str] = Counter()
        """Those under way, by kind. Questions what holds an epoch come when others wait in vain."""
        self._whys: dict[tuple[int, int | None], tuple[float, asyncio.Task[Response]]] = {}

    async def page(self, request: Request) -> Response:
        return FileResponse(_PAGE / "index.html")

    async def events(self, request: Request) -> ASGIApp:
        return EventStream(lambda: events_of(self._watch))

    async def table(self, request: Request) -> ASGIApp:
        asked = request.query_params
        dataflow, name = _whole(request, "dataflow"), asked.get("output", "")
        view = TableView(
            asked.get("sort", ""), asked.get("order") == "descending", asked.get("wanted", "")[:200]
        )

        async def events() -> AsyncIterator[bytes]:
            try:
                with self._outputs.looked_at(dataflow, name) as output, output.lookers.joined() as news:
                    version = 0
                    while True:
                        news.clear()
                        if output.version != version:
                            version, told = await run_in_threadpool(output.view, view)
                            yield event("table", told)
                        if not await has_come(news):
                            yield PULSE
            except MisuseError as error:
                yield event("refused", packed({"error": str(error)}))

        return EventStream(events)

    async def why(self, request: Request) -> Response:
        dataflow = _whole(request, "dataflow")
        epoch = _whole(request, "epoch") if "epoch" in request.query_params else None

        def asks() -> Json:
            report = self._watch.cluster.flow(dataflow).why(epoch)
            return {
                "text": str(report),
                "epoch": report.epoch,
                "is_complete": report.is_complete,
                "reasons": [
                    {
                        "kind": reason.kind,
                        "text": str(reason),
                        "stage": reason.number,
                        "is_first": reason.is_first,
                        "workers": list(reason.workers),
                        "site": reason.where or reason.site,
                    }
                    for reason in report.reasons
                ],
            }

        return await self._shared((dataflow, epoch), asks)

    async def explain(self, request: Request) -> Response:
        def asks() -> Json:
            flow = self._flow(request)
            plan = plan_of_view(self._watch.cluster, flow)
            return {"note": flow.note, "plan": plan, "text": flow.explain(analyze=True)}

        return await self._called(asks)

    async def stage(self, request: Request) -> Response:
        dataflow, stage = _whole(request, "dataflow"), _whole(request, "stage")
        return await self._called(lambda: stage_of(self._watch.recent(), dataflow, stage))

    async def query(self, request: Request) -> Response:
        text = bytearray()
        async for part in request.stream():
            text += part
            if len(text) > CONSOLE_QUERY_BYTES_MAX:
                return _error(f"a query has up to {CONSOLE_QUERY_BYTES_MAX >> 10} KiB", 413)
        if request.headers.get("content-type", "").partition(";")[0] != "application/sql":
            return _error("a query comes as application/sql", 415)
        try:
            query = text.decode()
        except UnicodeDecodeError:
            return _error("a query is text in UTF-8", 400)
        return await self._called(lambda: answered(self._watch.cluster, query, CONSOLE_QUERY_SECONDS_MAX))

    async def metrics(self, request: Request) -> Response:
        try:
            from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
            from prometheus_client.registry import CollectorRegistry

            from ...metrics.collector import ClusterCollector
        except ImportError as error:
            return _error(f"{error}: pip install 'naiad[metrics]'", 501)
        registry = CollectorRegistry()
        registry.register(ClusterCollector(self._watch.stats))
        return await self._sent(lambda: generate_latest(registry), CONTENT_TYPE_LATEST, "metrics")

    def _flow(self, request: Request) -> Flow:
        return self._watch.cluster.flow(_whole(request, "dataflow"))

    async def _shared(self, key: tuple[int, int | None], asks: Callable[[], Json]) -> Response:
        """Do `_called`, once for all pages that ask the same at about the same time: each page asks as long
        as a dataflow is late.
        """
        now = time.monotonic()
        for old, (at, task) in list(self._whys.items()):
            if task.done() and now - at > _SHARED_SECONDS:
                del self._whys[old]
        if key not in self._whys:
            self._whys[key] = now, asyncio.ensure_future(self._called(asks, "why"))
        return await asyncio.shield(self._whys[key][1])  # the page that asked first may be gone by then

    async def _called(self, asks: Callable[[], Json], kind: str = "") -> Response:
        """Return what a call to the workers answers, as JSON; an error of it as its text."""
        return await self._sent(lambda: packed(asks()), "application/json", kind)

    async def _sent(self, asks: Callable[[], bytes], content_type: str, kind: str = "") -> Response:
        """Return the bytes that a call to the workers answers. Each call takes one of the 40 threads that the
        console has for all it does, so few calls of a kind may wait for workers.
        """
        if self._calls[kind] >= CONSOLE_CALLS_MAX:
            return _error(_BUSY, 503)
        self._calls[kind] += 1
        try:
            return Response(await run_in_threadpool(asks), headers={"content-type": content_type})
        except TimelyError as error:
            return _error(str(error), 409)
        finally:
            self._calls[kind] -= 1


def _whole(request: Request, name: str) -> int:
    """Return a whole number that a request has; -1, which nothing has, for anything else."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1


def _error(text: str, status: int) -> Response:
    return Response(packed({"error": text}), status, media_type="application/json")
