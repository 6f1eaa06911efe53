"""inputs/tables_in.py: tables of clients, in whatever form."""

from __future__ import annotations

import pyarrow as pa
import pytest

import timely
from timely.operators.inputs.tables_in import TablesIn


def test_tables_come_in_as_they_are_in_each_form_that_a_client_has() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    forms = [table, table.to_batches()[0], table.to_pandas(), table.to_pydict(), table.to_pylist()]
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: dataflow.output("out", dataflow.input("in", tables=True)))
        for form in forms:
            flow.input("in").insert(form)
        flow.seal()
        arrived = [(epoch, record.to_pylist()) for epoch, record in flow.output("out").changes()]
    assert arrived == [(0, table.to_pylist())] * len(forms)


def test_refused_removals_other_data_and_imports() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: dataflow.output("out", dataflow.input("in", tables=True)))
        with pytest.raises(timely.MisuseError, match="an input of tables can only be added to"):
            flow.input("in").remove({"a": [1]})
        with pytest.raises(
            timely.MisuseError, match="input 'in' takes tables; this list does not fit: a row is"
        ):
            flow.input("in").insert([1, 2])
    with pytest.raises(timely.MisuseError, match="no dataflow keeps tables"):
        TablesIn().as_import()
