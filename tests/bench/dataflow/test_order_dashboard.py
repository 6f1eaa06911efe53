"""order_dashboard.py: ours, DuckDB and Polars have the same answers after every change."""

from __future__ import annotations

from bench.dataflow.order_dashboard import feed_order, measured


def test_answers_are_those_of_duckdb_and_polars() -> None:
    """`measured` holds them against each other in every round."""
    figures = measured(60, sizes=[5, 40], rounds=2, processes=0)
    assert [each.changes for each in figures] == [5, 40]
    assert all(value > 0 for each in figures for value in each[1:])


def test_a_feed_is_measured_in_each_form() -> None:
    assert all(value > 0 for value in feed_order(20, rounds=1))
