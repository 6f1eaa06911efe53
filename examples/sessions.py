"""Sessions of visitors: a vertex that asks to be notified of a time that is still ahead.

    python examples/sessions.py [--workers 2] [FILE]

Each line is `minute user`; minutes grow, and are the epochs. A session is over when its user has done nothing
for ten minutes. With each click the vertex asks to be called ten minutes later; if the user has clicked
meanwhile, that call does nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import timely

TEXT = """0 ada
1 bob
4 ada
9 ada
30 bob
33 bob
"""
GAP = 10
Time = tuple[int, ...]
Session = tuple[str, int, int, int]
"""User, first minute, last minute, number of clicks."""


class SessionsVertex(timely.Vertex):
    """Users in, sessions out, at the minute in which it is certain that they are over."""

    def __init__(self) -> None:
        self.clicked: defaultdict[Time, list[str]] = defaultdict(list)  # until that minute is complete
        self.open: dict[str, tuple[int, int, int]] = {}  # by user: first minute, last minute, clicks

    def on_recv(self, edge: int, message: list[object], time: Time) -> None:
        """Later minutes may come in before earlier ones are over, so let each wait until it is complete."""
        self.clicked[time].extend(str(user) for user in message)
        self.notify_at(time)

    def on_notify(self, time: Time) -> None:
        """A minute is complete: end the sessions that are silent for GAP minutes, and take its clicks in."""
        (minute,) = time
        over = [user for user, (_, last, _) in self.open.items() if last + GAP <= minute]
        self.send_by(0, [(user, *self.open.pop(user)) for user in over], time)
        for user in self.clicked.pop(time, []):
            began, _, clicks = self.open.get(user, (minute, minute, 0))
            self.open[user] = began, minute, clicks + 1
            self.notify_at((minute + GAP,))  # ahead of time: nobody has sent anything there yet


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Users in, at their minutes; sessions out. Clicks of one user meet on one worker."""
    users = dataflow.input("users")
    dataflow.output("sessions", users.stage("sessions", SessionsVertex, exchange=timely.by()))


def plainly(clicks: list[tuple[int, str]]) -> list[tuple[int, Session]]:
    """Return the same, user by user: (minute at which it is over, session)."""
    sessions = []
    for user, own in groupby(
        sorted(clicks, key=lambda click: (click[1], click[0])), key=lambda click: click[1]
    ):
        minutes = [minute for minute, _ in own]
        starts = [n for n in range(len(minutes)) if n == 0 or minutes[n] - minutes[n - 1] >= GAP]
        for start, stop in zip(starts, [*starts[1:], len(minutes)], strict=True):
            last = minutes[stop - 1]
            sessions.append((last + GAP, (user, minutes[start], last, stop - start)))
    return sorted(sessions)


def main() -> None:
    """Feed the clicks minute by minute, print the sessions."""
    parser = argparse.ArgumentParser(description="Find the sessions of users.")
    parser.add_argument("file", nargs="?", type=Path, help="clicks; without it a few of our own")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    clicks = [(int(minute), user) for minute, user in (line.split() for line in text.splitlines())]
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        for minute, own in groupby(clicks, key=lambda click: click[0]):
            flow.seal(through=minute - 1)  # all minutes before, also those without a click
            flow.input("users").insert([user for _, user in own])
        flow.finish()  # also the minutes behind the last one, at which sessions end
        sessions = sorted(flow.output("sessions").changes())
    if sessions != plainly(clicks):
        sys.exit(f"sessions: these differ from the plain computation: {sessions}")
    for over, (user, began, last, count) in sessions:
        print(f"minute {over:<3} {user}: minutes {began} to {last}, clicks {count}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"sessions: {error}")
