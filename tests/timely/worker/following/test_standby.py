"""The processes that follow: where they listen, and how they end."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from timely.errors import InternalError, PeerError
from timely.worker.following import standby as standby_module
from timely.worker.following.standby import Reserve, Standby, following_settings
from timely.worker.launcher import LocalFolder
from timely.worker.settings import WorkerSettings, local_settings


def settings_of(folder: LocalFolder, store: Path) -> list[WorkerSettings]:
    return [replace(one, durable=str(store)) for one in local_settings(2, folder.path)]


def test_settings_have_sockets_of_their_own_until_they_take_over(tmp_path: Path) -> None:
    theirs, own = LocalFolder(), LocalFolder()
    try:
        before = settings_of(theirs, tmp_path)
        after = following_settings(before, own)
        assert [one.follows for one in after] == [one.client_listen for one in before]
        for one in after:
            sockets = (*one.listen, *one.peers, one.client_listen)
            assert all(each.startswith(f"ipc://{own.path}/") for each in sockets)
        assert len({each for one in after for each in (*one.listen, one.client_listen)}) == 4
        assert [replace(one, listen=(), peers=(), client_listen="", follows="") for one in after] == [
            replace(one, listen=(), peers=(), client_listen="", follows="") for one in before
        ]
    finally:
        theirs.remove()
        own.remove()


def test_that_cannot_follow_say_why_and_leave_nothing(tmp_path: Path) -> None:
    theirs = LocalFolder()
    standby = Standby(settings_of(theirs, tmp_path / "empty"))
    with pytest.raises(PeerError, match="no cluster that could be followed: start that first"):
        deadline = time.monotonic() + 60
        while not standby.check():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    standby.stop()
    assert not standby.folder.path.exists()
    theirs.remove()


def test_the_cluster_goes_on_however_often_nobody_can_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = itertools.cycle([PeerError, InternalError, OSError])

    def unable(*arguments: object) -> Standby:
        raise next(kinds)("no memory")

    now = 0.0
    monkeypatch.setattr(standby_module, "Standby", unable)
    monkeypatch.setattr(standby_module.time, "monotonic", lambda: now)
    folder = LocalFolder()
    settings = settings_of(folder, tmp_path)
    folder.remove()
    reserve = Reserve(None)
    pauses: list[float] = []
    for _ in range(1_100):  # at the longest pause, most of a day
        caplog.clear()
        reserve.look(settings)
        pauses.append(float(caplog.messages[-1].split(" s: ")[0].split()[-1]))
        now += pauses[-1] / 2
        caplog.clear()
        reserve.look(settings)
        assert not caplog.messages  # it is not time yet
        now += pauses[-1] / 2
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60] and set(pauses[8:]) == {60}


class Follows:
    """Workers that follow, and are abreast from the second look on."""

    def __init__(self, settings: Sequence[WorkerSettings], forward: object) -> None:
        self.settings = settings
        self._looks = 0

    def check(self) -> bool:
        self._looks += 1
        return self._looks > 1

    def take_over(self) -> None:
        """Nobody is there."""


def test_it_is_said_once_that_workers_stand_by_and_that_they_take_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever runs the cluster cannot see otherwise whether the next loss is a short one."""
    monkeypatch.setattr(standby_module, "Standby", Follows)
    caplog.set_level(logging.INFO)
    reserve = Reserve(None)
    for _ in range(2):
        for _ in range(4):
            reserve.look([])
        assert reserve.taken() is not None
    stand, take = "workers stand by, and take over if a worker ends", "the workers that stood by take over"
    assert caplog.messages == [stand, take, stand, take]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "WARNING", "WARNING"]
