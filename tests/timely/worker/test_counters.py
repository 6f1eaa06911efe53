"""Counters are plain values that a client can read, and only grow."""

from __future__ import annotations

from dataflows import word_count

import timely


def test_every_worker_reports_and_messages_between_them_are_counted() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(word_count)
        before = cluster.stats()
        flow.input("lines").insert(["a b c d e f g"])
        flow.seal()
        after = cluster.stats()
    assert [stats["worker"] for stats in after] == [0, 1]
    for name in ("steps", "messages_sent", "messages_recv"):
        assert all(
            int(str(new[name])) > int(str(old[name])) for old, new in zip(before, after, strict=True)
        ), name
    assert sum(int(str(stats["messages_sent"])) for stats in after) == sum(
        int(str(stats["messages_recv"])) for stats in after
    )
