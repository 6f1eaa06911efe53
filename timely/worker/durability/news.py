"""What workers of a durable cluster tell each other about their logs, and who it is for."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from ...errors import PeerError
from ...wire.handshake import Agreed, CutLog, Digested, Durable, LogCut, Logged, Synced
from .durability import Durability
from .fold_turns import Folds

__all__ = ["News", "take_news"]

News: TypeAlias = Agreed | CutLog | Digested | Durable | LogCut | Logged | Synced


def take_news(durability: Durability, folds: Folds | None, peer: int, news: News) -> None:
    """Take in a message of a peer. Raise `PeerError` if it goes the wrong way: worker 0 decides what the
    others report.
    """
    is_decision = isinstance(news, Agreed | CutLog | Durable)
    if is_decision == (peer != 0):
        raise PeerError(f"worker {peer} sent {type(news).__name__.lower()}, which it may not send")
    match news:
        case Synced():
            durability.epochs.on_synced(peer, news)
        case Durable():
            durability.epochs.on_durable(news)
        case Digested():
            durability.digests.on_digested(peer, news)
        case Agreed():
            durability.digests.on_agreed(news)
        case CutLog() | LogCut() | Logged():
            if folds is not None:
                folds.on_news(peer, news)
        case _:
            assert_never(news)
