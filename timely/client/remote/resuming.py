"""A client of a durable cluster goes on after all workers have started again.

After a loss each call connects anew, once the cluster answers, and is made again. That is right because the
cluster keeps what it has answered, and because a request that is made twice counts once:

    Hello, Describe, Stats, Missing,  change nothing
    Probe
    Progress, Read                    set the position of a reader, to the same value again
    Deliver                           has a name, and workers know the names of all rows that they keep; they
                                      drop staged rows of a name that has entered
    Decide                            says what shall be: an epoch is sealed up to some number, or an input is
                                      closed. Staged rows that shall enter have a name, too
    Drop, Uninstall                   say what shall not be there; a dataflow that is gone already is no error
    Install                           a durable cluster has one dataflow of a name
    Replace                           if the new version has taken the place of the old one, it is the answer

Two of them are never made again, since the first may have taken effect:

    Shutdown                          the cluster has perhaps been started again by its user
    Deliver of an append without      would count again. (Clients of durable clusters name appends by
    a name                            themselves, unless the order of calls counts.)

The cluster may start again with another number of workers, and at other addresses: the program that starts
them knows these; any other client asks the workers that it still reaches. Where a request goes depends on
that number. So each request carries the incarnation that it was made for, and a worker of another one refuses
it (`wire/frames/messages.py`). That counts as a loss: the client looks how many workers there are, and
`ask_members` makes all requests of the call anew. So no call ever has answers of two incarnations.

Staged rows are gone after a restart. So the `Decide` that lets them enter carries the incarnation in which
the client began to stage them. A worker of a later one refuses it by `RestartedError`, and the client stages
all rows again.

What a restart leaves of a client is what it knew: names, positions, the numbers of its rows, and the open
epoch, which never goes back. Posts without an answer are sent again, in their order, before anything else;
each names the epoch that was open then. A seal that did not wait for the disk (`seal(wait=False)`) may be
lost, and others would wait for the epoch in vain: so the last one of each dataflow is sent again behind them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Final, NamedTuple, NoReturn, TypeVar

import pyarrow as pa

from ...errors import (
    PeerError,
    RefusedError,
    RestartedError,
    StoreError,
    TimelyError,
    UninstalledError,
    WaitTimeoutError,
)
from ...failure import add_note, fresh_copy
from ...limits import (
    ANSWER_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    REPLY_SECONDS_MAX,
    RESUME_SECONDS_MAX,
    RESUMES_COUNT_MAX,
    SILENCE_SECONDS_DEFAULT,
)
from ...operators.inputs.names import UNNAMED
from ...wire.addresses import socket_address
from ...wire.frames.messages import life_of
from ...wire.keys import ClientKeys
from ...wire.requests import (
    Decide,
    Deliver,
    Probe,
    Progress,
    Read,
    Replace,
    Reply,
    Request,
    Shutdown,
    Uninstall,
)
from ..installed import Keeper, Makes, Members, Requests
from ..posting import Poster
from .channel import Channel
from .searching import Search
from .workers import RemoteWorkers

__all__ = ["DurableWorkers"]

_log = logging.getLogger("timely")
_T = TypeVar("_T")
_LOOK_SECONDS: Final = 0.05
"""How often a thread looks whether the cluster is back."""
_JOIN_SECONDS: Final = 0.5
"""How long a client tries to reach all workers before it looks whether there are others by now."""


class _Place(NamedTuple):
    """Where the workers are, and for which of them requests are made."""

    round: int
    """How often this client has lost the cluster and found it again."""
    addresses: tuple[str, ...]
    members: Members


class DurableWorkers(RemoteWorkers):
    """All workers of a durable cluster, in order. Calls go on after a restart.

    Args:
        addresses, launcher, token, keys, silence_seconds: as for `RemoteWorkers`.
        incarnation: of the cluster, as it has said.
        cluster: its identity; empty: that of the first one that is met after a restart.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        launcher: Keeper | None = None,
        token: str = "",
        keys: ClientKeys | None = None,
        *,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
        incarnation: int,
        cluster: str = "",
    ) -> None:
        self._cluster = cluster
        members = Members(len(addresses), incarnation, life_of(incarnation, cluster))
        self._place = _Place(0, tuple(map(socket_address, addresses)), members)
        self._resuming = threading.Lock()
        """Held by the thread that looks for the cluster."""
        self._sealed_early: dict[int, int] = {}
        """The last epoch of each dataflow that this client has sealed without waiting for the disk, if it has
        not sealed a later one since and waited."""
        self._to_seal: dict[int, int] = {}
        """Those of them that are to be sealed again, since the cluster has started again."""
        self._is_known = False
        """True once the workers have answered: until then their incarnation may be one of long ago."""
        super().__init__(addresses, launcher, token, keys, silence_seconds=silence_seconds)
        self.incarnation = incarnation

    # The calls of `Workers`.

    @property
    def members(self) -> Members:
        """See `Workers`."""
        return self._place.members

    @property
    def cluster(self) -> str:
        """See `RemoteWorkers`."""
        return self._cluster

    def ask(
        self,
        requests: Requests,
        timeout_seconds: float = REPLY_SECONDS_MAX,
        reach_seconds: float = inf,
    ) -> list[Reply]:
        """See `Workers.ask`, and `ask_members`."""
        count = self.members.count

        def makes(members: Members) -> Requests:
            if members.count != count and any(worker for worker, _, _ in requests):
                raise RestartedError(
                    f"the cluster has started again with {members.count} workers, and had {count}, before it "
                    "has answered: ask again"
                )
            return requests

        return self.ask_members(makes, timeout_seconds, reach_seconds)

    def ask_members(
        self, makes: Makes, timeout_seconds: float = REPLY_SECONDS_MAX, reach_seconds: float = inf
    ) -> list[Reply]:
        """See `RemoteWorkers.ask_members`. After a restart, make all requests again, with the time that is
        left.
        """
        began = time.monotonic()

        def act(repeats: int) -> list[Reply] | PeerError:
            own = self._channel()
            members = own.members
            requests = makes(members)
            if not requests:
                return []
            if not all(_is_repeatable(request) for _, request, _ in requests):
                return self._ask_once(own, requests, members, timeout_seconds)
            if not repeats:
                try:
                    return own.ask(requests, timeout_seconds, reach_seconds, members)
                except WaitTimeoutError as error:
                    self._explain(error, requests)
                    raise
            waited = time.monotonic() - began
            again = [(worker, _with_less_time(request, waited), table) for worker, request, table in requests]
            left = max(ANSWER_SECONDS_MAX, timeout_seconds - waited)
            try:
                return own.ask(again, left, reach_seconds, members)
            except UninstalledError:
                if isinstance(requests[0][1], Uninstall):
                    return [Reply()]
                raise

        answer = self._through(act, timeout_seconds)
        if isinstance(answer, PeerError):
            raise answer
        return answer

    def post(
        self,
        worker: int,
        request: Deliver,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        """See `RemoteWorkers.post`."""
        post = super().post
        self._through(lambda repeats: post(worker, request, table, poster, call, is_ordered))

    def seal(self, poster: Poster, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        """See `RemoteWorkers.seal`. After a restart, seal the same epoch: it may be sealed already."""
        sent: list[Decide] = []

        def act(repeats: int) -> tuple[int, bool]:
            own = self._channel()
            self._settle(own)
            return own.seal(poster, seconds, is_early, sent)

        sealed, is_done = self._through(act)
        with self._lock:
            early = self._sealed_early.get(poster.index, -1)
            if is_early and sealed > early:
                self._sealed_early[poster.index] = sealed
            elif not is_early and 0 <= early <= sealed:
                del self._sealed_early[poster.index]
        return sealed, is_done

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """See `RemoteWorkers.settle`."""
        self._through(lambda repeats: self._settle(None, timeout_seconds), timeout_seconds)

    def join(self, timeout_seconds: float = CONNECT_SECONDS_MAX) -> None:
        """See `RemoteWorkers.join`. If not all are reached soon, there may be fewer by now."""

        def act(repeats: int) -> None:
            own = self._channel()
            own.join(timeout_seconds if repeats else min(timeout_seconds, _JOIN_SECONDS))

        self._through(act, timeout_seconds)

    def close(self) -> None:
        """See `RemoteWorkers.close`. Send posts again that a lost cluster has not answered."""
        if self._process.is_here and self._broken is None:
            try:
                self.settle(RESUME_SECONDS_MAX)
            except TimelyError as error:
                _log.warning("the last rows have no answer: %s", error)
        super().close()

    # Connections.

    def _channel(self) -> Channel:
        channel = super()._channel()
        place = self._place
        if channel.round != place.round:
            channel.renew(*place)
        return channel

    def _new_channel(self) -> Channel:
        place = self._place
        channel = self._connect(place.addresses, place.members)
        channel.round = place.round
        return channel

    def _connect(self, addresses: Sequence[str], members: Members) -> Channel:
        return Channel(addresses, members, self.silence_seconds, self._launcher, self._lock, self.keys, True)

    def _settle(self, own: Channel | None, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Settle the posts of all threads but that of `own`; those of threads that have ended, too."""
        place = self._place
        for channel in self._channels:
            if channel is not own and channel.posts and channel.round != place.round:
                channel.renew(*place)
        super()._settle(own, timeout_seconds)

    def _on_loss(self, error: PeerError) -> None:
        """Go on: see `_through`."""

    # Restarts.

    def _through(self, act: Callable[[int], _T], timeout_seconds: float = inf) -> _T:
        """Call `act`, and again after each restart, with the number of calls before; return its result.

        Raise `WaitTimeoutError` if the cluster is not back before `timeout_seconds` are over, and `PeerError`
        if it does not come back. That error ends the connection: every later call raises it at once.
        """
        self._process.check()
        until = time.monotonic() + timeout_seconds
        repeats = losses = 0
        lost_at = -inf
        while True:
            self._check_whole()
            round = self._place.round
            try:
                if self._to_seal:
                    self._seal_again()
                result = act(repeats)
            except PeerError as error:
                now = time.monotonic()
                losses = losses + 1 if now - lost_at < RESUME_SECONDS_MAX else 1
                lost_at = now
                if isinstance(error, RefusedError):
                    self._give_up(error)
                if losses > RESUMES_COUNT_MAX:
                    self._give_up(error, f"This call has lost the cluster {losses} times in a row")
                self._resume(error, round, until, timeout_seconds)
                repeats += 1
            except TimelyError as error:
                if repeats:
                    add_note(error, "the cluster has started again during this call, which was made again")
                raise
            else:
                self._is_known = True
                return result

    def _ask_once(
        self, own: Channel, requests: Requests, members: Members, timeout_seconds: float
    ) -> list[Reply] | PeerError:
        """Ask what this client cannot ask again. Raise `PeerError` if the cluster is lost before this is
        sent; return a `PeerError` if it is lost afterwards.
        """
        own.prepare()
        try:
            return own.ask(requests, timeout_seconds, inf, members)
        except RefusedError:
            raise
        except PeerError as error:
            what = type(requests[0][1]).__name__.lower()
            lost = PeerError(
                f"the cluster was lost before it answered {what!r}: whether that has taken effect is not "
                f"known, so it is not sent again. Look, and then go on: {error}"
            )
            lost.__cause__ = error
            return lost

    def _resume(self, error: PeerError, round: int, until: float, timeout_seconds: float) -> None:
        """Return once all workers answer again. `error`: why the connections of `round` are lost.

        One thread looks, while others wait for it.
        """
        began = time.monotonic()
        try:
            while self._resuming.locked():
                self._check_whole()
                if time.monotonic() >= until:
                    self._raise_late(error, until, timeout_seconds)
                time.sleep(_LOOK_SECONDS)
            with self._resuming:
                if self._place.round == round:
                    is_news = self._is_known and self._launcher is None
                    level = logging.WARNING if is_news else logging.INFO
                    _log.log(level, "waiting until the cluster answers again: %s", error)
                    self._wait_back(error, until, timeout_seconds)
        except KeyboardInterrupt as interrupt:
            seconds = time.monotonic() - began
            add_note(interrupt, f"interrupted after {seconds:.1f} s of waiting for the cluster: {error}")
            raise

    def _seal_again(self) -> None:
        """Seal once more what was sealed without waiting for the disk, behind all posts."""
        self._settle(None)
        for dataflow, epoch in [*self._to_seal.items()]:
            try:
                self._channel().ask([(0, Decide(dataflow, epoch, True), None)], REPLY_SECONDS_MAX, inf)
            except (PeerError, WaitTimeoutError):
                raise
            except TimelyError as error:  # the dataflow has ended, say: whoever asks for it hears that
                if isinstance(error, StoreError) and not error.ends_dataflow:
                    raise  # the disk fails, and the next call seals the epoch
                _log.info("epoch %d of dataflow %d is not sealed again: %s", epoch, dataflow, error)
            self._to_seal.pop(dataflow, None)

    def _wait_back(self, error: PeerError, until: float, timeout_seconds: float) -> None:
        """Return once all workers are of one incarnation, which is not older than the one that was lost.

        `RESUME_SECONDS_MAX` do not count while the program that has started the workers starts them again: it
        knows itself when there is no hope, and workers may take long to read a large store.
        """
        limit = min(time.monotonic() + RESUME_SECONDS_MAX, until)
        search = Search(self._connect, self._place.addresses, self._launcher, self.incarnation, self._cluster)
        try:
            while True:
                self._check_whole()
                if self._launcher is not None and not self._launcher.starts_again:
                    self._give_up(self._verdict() or error)
                try:
                    if (verdict := self._verdict()) is not None:
                        limit = min(time.monotonic() + RESUME_SECONDS_MAX, until)
                        raise verdict
                    left = min(REPLY_SECONDS_MAX, max(0.0, until - time.monotonic()))
                    if (workers := search.look(left)) is not None:
                        self._to_seal = {**self._sealed_early}
                        self._cluster = search.cluster
                        self._settle_down(self._place.round + 1, *workers)
                        return
                except RefusedError as refusal:
                    self._give_up(refusal)
                except TimelyError as latest:  # a worker that fails before it is ready tells why
                    _log.debug("the cluster is not back yet: %s", latest)
                if time.monotonic() >= limit:
                    self._raise_late(error, until, timeout_seconds)
                time.sleep(_LOOK_SECONDS)
        finally:
            search.close()

    def _settle_down(self, round: int, addresses: Sequence[str], incarnation: int) -> None:
        """Ask the workers at these addresses from now on."""
        members = Members(len(addresses), incarnation, life_of(incarnation, self._cluster))
        if members.count != self.count:
            _log.info("the cluster goes on with %d workers, and had %d", members.count, self.count)
        self.addresses, self.count, self.incarnation = [*addresses], members.count, incarnation
        self._place = _Place(round, tuple(addresses), members)

    def _verdict(self) -> PeerError | None:
        """Return why the workers do not run, if this program has started them and they do not."""
        if self._launcher is not None:
            try:
                self._launcher.check()
            except PeerError as verdict:
                return verdict
        return None

    def _check_whole(self) -> None:
        """Raise what has ended the connection, in whichever thread."""
        if self._broken is not None:
            raise fresh_copy(self._broken)

    def _raise_late(self, error: PeerError, until: float, timeout_seconds: float) -> NoReturn:
        if time.monotonic() >= until:
            raise WaitTimeoutError(
                f"no answer within {timeout_seconds:g} s: the cluster is starting again, since it was lost: "
                f"{error}"
            )
        self._give_up(
            error,
            f"The cluster is durable, but was not back within {RESUME_SECONDS_MAX:g} s: start it again with "
            "the same folder, and connect again",
        )

    def _give_up(self, error: PeerError, why: str = "") -> NoReturn:
        """End the connection."""
        final = type(error)(f"{error}\n  {why}") if why else error
        self._break(final)
        raise final


def _is_repeatable(request: Request) -> bool:
    if isinstance(request, Deliver):
        return request.sequence != UNNAMED
    return not isinstance(request, Shutdown)


def _with_less_time(request: Request, waited: float) -> Request:
    """Return the request with the time that is left of its limit after `waited` seconds."""
    if isinstance(request, Probe | Progress | Read | Replace) and request.timeout_seconds >= 0:
        used = min(waited, request.timeout_seconds)
        if isinstance(request, Probe | Progress):
            return replace(
                request,
                timeout_seconds=request.timeout_seconds - used,
                waited_seconds=request.waited_seconds + used,
            )
        return replace(request, timeout_seconds=request.timeout_seconds - used)
    return request
