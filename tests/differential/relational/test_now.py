"""Conditions on now() and CURRENT_DATE: at the end of every epoch the answer is DuckDB's, with the time
of the clock in their place.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import pytest
from sql.judge import Judge, differences

import differential as dd
import timely
from differential import Schema, SqlError
from timely.building.dataflow import Dataflow

START = dt.datetime(2024, 2, 27, 6, tzinfo=dt.UTC)
SCHEMAS = {
    "t": Schema.of("k: int, seen: timestamp?, day: date, until: timestamp?"),
    "u": Schema.of("k: int, seen: timestamp"),
}
EPOCHS = 14

TEXTS = [
    "SELECT * FROM t WHERE seen > now() - INTERVAL '12 hours' AND k < 4",
    "SELECT * FROM t WHERE now() - INTERVAL '12 hours' <= seen AND seen <= now() + INTERVAL '90 minutes'",
    "SELECT * FROM t WHERE seen BETWEEN now() - INTERVAL '1 day' AND now()",
    "SELECT * FROM t WHERE seen <= now() AND until > now() AND until + INTERVAL '1 month' >= now()",
    "SELECT * FROM t WHERE day = current_date",
    "SELECT * FROM t WHERE day > current_date - 2 AND day <= current_date",
    "SELECT * FROM t WHERE seen < current_date + 1",
    "SELECT * FROM t WHERE CAST(seen AS DATE) >= CAST(now() - INTERVAL '6 hours' AS DATE)",
    "SELECT t.k, u.seen FROM t, u WHERE t.k = u.k AND u.seen > now() - INTERVAL 1 DAY AND day < current_date",
    "SELECT t.k, u.seen FROM t LEFT JOIN u ON t.k = u.k WHERE t.seen > now()",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.seen > now() - INTERVAL '1 day')",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k < t.k AND u.seen >= now()) AS n FROM t",
    "SELECT k, max(seen) AS m FROM t GROUP BY k HAVING max(seen) > now() - INTERVAL '6 hours'",
    "SELECT k, day FROM t QUALIFY max(seen) OVER (PARTITION BY k) > now()",
]


def _rows(rng: random.Random) -> dict[str, list[tuple[object, ...]]]:
    def time() -> dt.datetime:
        return START + dt.timedelta(hours=rng.choice([*range(-30, 100, 3)]))

    def day() -> dt.date:
        return START.date() + dt.timedelta(days=rng.randint(-2, 4))

    t = [
        (rng.randint(1, 5), *rng.choice([(time(), time()), (None, time()), (time(), None)]))
        for _ in range(12)
    ]
    return {
        "t": [(k, at, day(), until) for k, at, until in t],
        "u": [(rng.randint(1, 5), time()) for _ in range(8)],
    }


def test_rows_stay_as_long_as_their_condition_holds() -> None:
    rng, judge = random.Random(7), Judge()
    clock = dd.clock(START, hours=6)

    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in SCHEMAS.items()}
        for number, text in enumerate(TEXTS):
            dd.sql(flow, text, dialect="duckdb", clock=clock, **tables).output(f"q{number}")

    wrong: list[str] = []
    before: dict[str, list[tuple[object, ...]]] = {"t": [], "u": []}
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        for epoch in range(EPOCHS):
            if epoch in (0, 3, 8):
                for name, rows in (after := _rows(rng) if epoch < 8 else {"t": [], "u": before["u"]}).items():
                    flow.input(name).remove([*(Counter(before[name]) - Counter(rows)).elements()])
                    flow.input(name).insert([*(Counter(rows) - Counter(before[name])).elements()])
                    judge.tell(name, SCHEMAS[name], rows)
                before = after
            flow.seal()
            now = START + epoch * dt.timedelta(hours=6)
            for number, text in enumerate(TEXTS):
                told = text.replace("now()", f"TIMESTAMPTZ '{now.isoformat()}'")
                wanted = judge.answer(told.replace("current_date", f"DATE '{now.date().isoformat()}'"))
                answer = flow.output(f"q{number}").snapshot()
                have = Counter(zip(*(column.to_pylist() for column in answer.columns), strict=True))
                here, there = differences(have, wanted)
                if here or there:
                    wrong.append(f"{text}, epoch {epoch}: {here} instead of {there}")
    judge.close()
    assert not wrong, "\n".join(wrong)


def test_dates_are_a_clock_and_spark_moves_days() -> None:
    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", SCHEMAS["t"])
        clock = dd.clock(dt.date(2024, 2, 27), days=1)
        text = "select k from t where day between date_sub(current_date(), 2) and current_date()"
        dd.sql(flow, text, clock=clock, t=t).output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert([(1, None, dt.date(2024, 2, 28), None)])
        seen = []
        for _ in range(5):
            flow.seal()
            seen.append(len(flow.output("result").snapshot()))
    assert seen == [0, 1, 1, 1, 0]


REFUSED = {
    "select now() as x from t": "1:8: CURRENT_TIMESTAMP cannot stand here: compare it with a time in WHERE",
    "select k from t where seen > now() or k = 1": "1:30: ",
    "select k from t where not seen > now()": "1:34: CURRENT_TIMESTAMP cannot",
    "select k from t where seen > now() - interval '1 month'": "1:30: INTERVAL '1 MONTH': months differ",
    "select k from t where now() - seen < interval '1 hour'": "1:31: seen: now() is moved by a constant",
    "select k from t where k > now()": "1:23: k is int, and no time",
    "select k from t where now() < current_date": "1:23: ",
    "select k from t where seen <> now()": "1:31: seen <> CURRENT_TIMESTAMP: CURRENT_TIMESTAMP is",
    "select t.k from t join u on u.seen > now()": "1:38: CURRENT_TIMESTAMP cannot",
    "select count(*) filter (where seen > now()) as n from t": "1:38: CURRENT_TIMESTAMP cannot",
    "select k from t order by current_date limit 1": "1:8: CURRENT_DATE cannot",
}


def test_now_is_refused_elsewhere_and_without_a_clock_of_times() -> None:
    wrong: list[str] = []

    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in SCHEMAS.items()}
        for text, place in REFUSED.items():
            with pytest.raises(SqlError) as caught:
                dd.sql(flow, text, dialect="postgres", clock=dd.clock(START, hours=1), **tables)
            if not str(caught.value).startswith(f"<sql>:{place}"):
                wrong.append(f"{text}: {caught.value}")
        for clock in (None, dd.clock(0, 10)):
            with pytest.raises(SqlError, match="<sql>:1:23: now\\(\\)"):
                dd.sql(flow, "select k from t where seen > now()", clock=clock, **tables)
        tables["t"].output("t")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)
    assert not wrong, "\n".join(wrong)
