"""Messages about logs: each goes one way, and the other way is an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from timely.errors import PeerError
from timely.wire.handshake import Agreed, CutLog, Digested, Durable, LogCut, Logged, Synced
from timely.worker.durability.durability import Durability
from timely.worker.durability.fold_turns import Folds
from timely.worker.durability.news import News, take_news

DECISIONS: list[News] = [Agreed(0, "out", 3), CutLog("cut", (), ()), Durable(0, 3)]
REPORTS: list[News] = [Digested(0, "out", 3, b""), LogCut("cut"), Logged(7), Synced(0, 3)]


def taken(peer: int, news: News) -> list[tuple[str, object]]:
    """Return what a message makes of it, by the name of the call."""
    calls: list[tuple[str, object]] = []

    def note(name: str, *arguments: object) -> None:
        calls.append((name, arguments[-1]))

    epochs = SimpleNamespace(
        on_synced=lambda *each: note("on_synced", *each), on_durable=lambda *each: note("on_durable", *each)
    )
    digests = SimpleNamespace(
        on_digested=lambda *each: note("on_digested", *each), on_agreed=lambda *each: note("on_agreed", *each)
    )
    folds = SimpleNamespace(on_news=lambda *each: note("on_news", *each))
    durability = cast("Durability", SimpleNamespace(epochs=epochs, digests=digests))
    take_news(durability, cast("Folds", folds), peer, news)
    return calls


@pytest.mark.parametrize("news", DECISIONS)
def test_decisions_come_from_worker_0_alone(news: News) -> None:
    ((_, heard),) = taken(0, news)
    assert heard == news
    with pytest.raises(
        PeerError, match=f"worker 1 sent {type(news).__name__.lower()}, which it may not send"
    ):
        taken(1, news)


@pytest.mark.parametrize("news", REPORTS)
def test_reports_go_to_worker_0_alone(news: News) -> None:
    ((_, heard),) = taken(2, news)
    assert heard == news
    with pytest.raises(PeerError, match="worker 0 sent"):
        taken(0, news)


def test_each_kind_has_its_receiver() -> None:
    names = [taken(0, news)[0][0] for news in DECISIONS] + [taken(1, news)[0][0] for news in REPORTS]
    assert names == ["on_agreed", "on_news", "on_durable", "on_digested", "on_news", "on_news", "on_synced"]
