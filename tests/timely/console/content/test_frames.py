"""Frames have the numbers of workers, and bear what a worker of another version tells."""

from __future__ import annotations

import json
import math

from timely.console.content.frames import frame_of, shape_of, stage_of
from timely.console.content.lookers import packed
from timely.operators.capture import FOREVER
from timely.wire.requests import Value

READER: dict[str, Value] = {
    "name": "3f2a91bc", "client": "process 77 on ada", "site": "shop.py:12",
    "epoch": 1, "silent_seconds": 2.5, "rows_kept": 10, "bytes_kept": 240,
}  # fmt: skip


def worker(index: int, rows: int, busy: float, epoch: int = 4) -> dict[str, Value]:
    """What a worker tells that has one dataflow of two stages."""
    return {
        "worker": index,
        "process": 100 + index,
        "used": {"cpu_seconds": busy, "resident_bytes": 1000},
        "messages_sent": rows,
        "dataflows": {
            3: {
                "spec": "queries:shop",
                "complete_before": epoch,
                "inputs": [{"name": "a", "epoch": epoch, "rows_waiting": 2, "bytes_waiting": 30}],
                "outputs": [
                    {
                        "name": "out",
                        "complete_before": epoch,
                        "readers": [READER],
                    }
                ],
                "imports": [],
                "epochs": [[4, 9.0, 3.0], [5, 2.0, 1.5], [6, 1.0, None]],
                "stages": [
                    {"name": "input a", "loop": "", "site": "shop.py:3", "busy_seconds": 0.0},
                    {
                        "name": "group",
                        "loop": "l",
                        "site": "shop.py:4",
                        "busy_seconds": busy,
                        "rows_waiting": 7,
                        "arrangements": [{"name": "g", "rows": 5, "bytes": 50, "readers": []}],
                    },
                ],
                "connectors": [{"source": 0, "target": 1, "rows": rows}],
            }
        },
    }


def test_a_frame_has_rates_and_sums_of_all_workers() -> None:
    before = [worker(0, 10, 1.0), worker(1, 0, 1.0)]
    after = [worker(0, 30, 1.5), worker(1, 40, 1.0)]
    frame = frame_of(before, after, 2.0, 5.0)
    (flow,) = frame["flows"]  # type: ignore[misc]
    assert flow["edges"] == [[30.0, 70]]  # type: ignore[index,call-overload]
    assert flow["stages"]["busy_by"] == [[0.0, 0.25], [0.0, 0.0]]  # type: ignore[index,call-overload]
    assert flow["stages"]["kept"] == [0, 100] and flow["stages"]["waiting"] == [0, 14]  # type: ignore[index,call-overload]
    assert flow["inputs"] == [{"name": "a", "epoch": 4, "behind": 0, "waiting": 4, "waiting_bytes": 60}]  # type: ignore[index,call-overload]
    (reader,) = flow["outputs"][0]["readers"]  # type: ignore[index,call-overload,misc]
    assert reader == {
        "name": "3f2a91bc", "client": "process 77 on ada", "site": "shop.py:12",
        "epoch": 1, "behind": 3, "silent": 2.5, "rows": 20, "bytes": 480,
    }, "each worker keeps its share"  # fmt: skip
    assert flow["latency"] == [0.5, 0.5], "epoch 4 was sealed before anybody asked"  # type: ignore[index,call-overload]
    assert json.loads(packed(frame)) == frame


def test_a_reader_is_where_it_is_with_the_last_worker_and_silent_since_any_has_heard_of_it() -> None:
    told = [worker(0, 0, 0.0), worker(1, 0, 0.0)]
    for each, epoch, silent in zip(told, (3, 2), (7.0, 6.0), strict=True):
        readers = [READER | {"epoch": epoch, "silent_seconds": silent}]
        each["dataflows"][3]["outputs"][0]["readers"] = readers  # type: ignore[index,call-overload]
    (flow,) = frame_of(told, told, 1.0, 5.0)["flows"]  # type: ignore[misc]
    (reader,) = flow["outputs"][0]["readers"]  # type: ignore[index,call-overload,misc]
    assert (reader["epoch"], reader["behind"], reader["silent"]) == (2, 2, 6.0)


def test_a_shape_names_what_there_is() -> None:
    shape = shape_of([worker(0, 1, 0.0)])
    assert shape["3"] == {
        "name": "queries:shop",
        "stages": [
            {"name": "input a", "loop": "", "site": "shop.py:3", "keeps": False},
            {"name": "group", "loop": "l", "site": "shop.py:4", "keeps": True},
        ],
        "edges": [[0, 1]],
    }


def test_what_can_not_come_any_more_has_no_epoch() -> None:
    told = [worker(0, 1, 0.0, FOREVER)]
    (flow,) = frame_of(told, told, 1.0, 1.0)["flows"]  # type: ignore[misc]
    assert flow["complete_before"] is None  # type: ignore[index,call-overload]
    assert flow["inputs"][0]["epoch"] is None and flow["outputs"][0]["complete"] is None  # type: ignore[index,call-overload]


def test_a_stage_is_told_by_worker_and_what_json_lacks_is_text() -> None:
    told = [worker(0, 1, 0.0), worker(1, 1, 0.0)]
    told[1]["dataflows"][3]["stages"][1]["own"] = b"\x00"  # type: ignore[index,call-overload]
    told[1]["dataflows"][3]["stages"][1]["mean"] = [math.nan, math.inf]  # type: ignore[index,call-overload]
    stages = stage_of(told, 3, 1)
    assert [each["worker"] for each in stages] == [0, 1]  # type: ignore[union-attr,index,call-overload]
    assert stages[1]["told"]["own"] == "b'\\x00'"  # type: ignore[index,call-overload]
    assert json.loads(packed(stages))[1]["told"]["mean"] == ["nan", "inf"]
    assert stage_of(told, 3, 2) is None and stage_of(told, 4, 0) is None


def test_workers_that_tell_less_are_shown_with_less() -> None:
    odd: list[list[dict[str, Value]]] = [
        [{}], [{"dataflows": {}}], [{"dataflows": {0: {"spec": ""}}}],
        [{"dataflows": {0: {"spec": "x", "stages": [None, {}], "connectors": [{}], "inputs": [3]}}}],
        [{"dataflows": {0: {"spec": "x", "outputs": [{}, None]}}}],
        [worker(0, 1, 0.0), {"dataflows": {}}],
    ]  # fmt: skip
    for told in odd:
        packed({"shape": shape_of(told), "frame": frame_of(told, told, 1.0, 1.0)})
        packed({"frame": frame_of([], told, 1.0, 1.0), "stage": stage_of(told, 0, 0)})
