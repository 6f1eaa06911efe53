"""Acts at workers: who gets which, in which order, and what they do to an input."""

from __future__ import annotations

import pyarrow as pa
import pytest

from timely import Dataflow, MisuseError
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.testing import close, seal, send
from timely.testing.acts import closed, distributions


def instance_of(**tables: bool) -> Instance:
    flow = Dataflow()
    for name, has_tables in tables.items():
        flow.output(f"of {name}", flow.input(name, tables=has_tables))
    return Worker().install(flow.freeze())


def test_seals_reach_each_worker_and_rows_one_of_them() -> None:
    rows = send([1], worker=1)
    ways = distributions([rows, seal("a")], 2)
    assert [[str(act) for act in acts] for acts in ways[0]] == [
        ["seal 'a'", "close all inputs"],
        ["send [1]", "seal 'a'", "close all inputs"],
    ]
    assert len(ways) == 1 and len(distributions([send([1]), send([2])], 3)) == 9


def test_a_seal_of_all_inputs_at_the_end_closes_them() -> None:
    assert [str(act) for act in closed([send([1]), seal()])] == ["send [1]", "close all inputs"]
    assert [str(act) for act in closed([seal("a")])] == ["seal 'a'", "close all inputs"]


def test_acts_change_inputs_as_clients_do() -> None:
    instance = instance_of(a=False, b=True)
    rows = [["list"], {"n": 1}]
    send(rows, "a").act(instance)
    send(pa.table({"n": [1, 2]}), "b").act(instance)
    seal("a").act(instance)
    close("b").act(instance)
    seal().act(instance)
    assert (instance.input("a").epoch, instance.input("b").is_closed) == (2, True)
    with pytest.raises(MisuseError, match=r"2 inputs, .*: write send\(rows, input=…\)"):
        send([1]).act(instance)
    with pytest.raises(MisuseError, match="no input 'c'"):
        seal("c").act(instance)
