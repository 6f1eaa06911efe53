"""The report about history of all workers, from what each says. What holds it: `running/reasons`."""

from __future__ import annotations

from dataclasses import replace

from timely.client.reports.retained import RetainedReport, retained_of
from timely.wire.reasons import Reason
from timely.wire.requests import Reply, Value

OPEN = Reason("input", "shop", "rates", 1, "shop.py:3", (3,), seconds=2.0, workers=(0,))


def says(*entries: dict[str, Value], call: Reason | None = None) -> Reply:
    reasons: list[Value] = [] if call is None else [call.values()]
    told: dict[str, Value] = {} if call is not None else {"retained": list(entries)}
    return Reply({"address": "", "process": 1, "complete": 3, "reasons": reasons, "view": [], **told})


def entry(worker: int, **changed: Value) -> dict[str, Value]:
    return {
        "kind": "arrangement", "name": "orders", "number": 2, "site": "shop.py:2", "epoch": 3, "newest": 9,
        "rows": 10, "bytes": 100, "readers": ["join"],
        "reasons": [replace(OPEN, workers=(worker,)).values()], **changed,
    }  # fmt: skip


def test_shares_of_workers_are_put_together() -> None:
    (one,) = retained_of("shop", [says(entry(0)), says(entry(1, epoch=2, rows=5))]).entries
    assert (one.epoch, one.epochs, one.rows, one.bytes, one.workers) == (2, 7, 15, 200, (0, 1))
    (cause,) = one.reasons
    assert (cause.kind, cause.workers) == ("input", (0, 1))
    assert str(one).splitlines() == [
        "'orders' keeps what changed from epoch 2 on: 7 epochs, 15 rows in 200 bytes, for 'join'",
        "  input 'rates' of 'shop' is open at epoch 3: nobody has sealed it; open for 2.0 s "
        "(workers 0, 1; built at shop.py:3)",
    ]


def test_the_largest_comes_first_and_a_report_is_short() -> None:
    entries = [entry(0, number=n, bytes=n) for n in range(30)]
    report = retained_of("shop", [says(*entries)])
    assert [one.bytes for one in report.entries] == list(range(29, -1, -1))
    assert str(report).endswith("\nand 10 more")
    cut = says(*entries)
    cut.values["left_out"] = 7
    assert str(retained_of("shop", [says(), cut])).endswith("\nand 17 more")
    many: list[Value] = [replace(OPEN, stage=f"input {n}").values() for n in range(9)]
    assert str(retained_of("shop", [says(entry(0, reasons=many))])).endswith("\n  and 6 more")


def test_who_has_not_answered_is_named() -> None:
    call = Reason("call", detail="in f", workers=(1,))
    report = retained_of("shop", [says(), says(call=call), "worker 2 is stopped"])
    assert str(report) == "worker 2 is stopped\nworker 1 is in a call: in f"


def test_nothing_that_a_worker_may_not_say_is_shown() -> None:
    odd: dict[str, Value] = {"kind": 7}
    assert retained_of("shop", [says(odd, entry(0, reasons=[{"kind": "odd"}, 7]))]).entries[0].reasons == ()
    assert str(RetainedReport("shop")).startswith("nothing keeps history in 'shop'")
    closed = retained_of("shop", [says(entry(0, newest=2**62, rows=-1))]).entries[0]
    assert closed.epochs == -1 and str(closed).startswith("'orders' keeps what changed from epoch 3 on, for")
