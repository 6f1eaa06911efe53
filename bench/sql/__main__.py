"""How long do queries in SQL take to load and to follow changes, beside Flink SQL, DuckDB and Spark?

    python -m bench.sql nexmark [QUERY ...] [--events 100000] [--changes 50] [--each 1000]
    python -m bench.sql tpch [QUERY ...] --folder FOLDER [--copies 1] [--changes 50]

Nexmark: `--events` says how many are loaded; each change brings some more. TPC-H: the tables of FOLDER; each
change removes 50 lines of orders and brings 50. Ours are tables and a view of `cluster.sql`. Flink SQL
follows, too; DuckDB and Spark compute the last answer anew, from tables in memory. A round counts only if
all answers are DuckDB's. --without leaves engines out; one that is not built is left out with a line that
says how to build it.

With --keep FILE each round is added to a file; --from FILE makes the tables of what such files have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import timely
from bench.dataflow.measure import connected
from bench.machine import ROOT, versions
from bench.peers.flink import java
from bench.sql import nexmark, nexmark_queries
from bench.sql.answers import Rows, difference
from bench.sql.engines import Followed, by_duckdb, by_flink, by_spark, by_us, spark_session
from bench.sql.rounds import Figures, Round, document, keep, kept
from bench.sql.stream import Query, Stream

__all__ = ["main", "run_round"]

_WARM_UP_EVENTS, _WARM_UP_CHANGES = 20_000, 20
_OTHERS = ("Flink", "Spark")


def run_round(  # what a round has
    one: Round, query: Query, stream: Stream, warm: Stream, others: Sequence[str],
    note: Callable[[str], None], limit: float = 300.0,
) -> None:  # fmt: skip
    """Run a query in all engines; figures, refusals and wrong answers are noted in `one`."""

    def checked(name: str, figures: Figures, rows: Rows) -> None:
        why = difference(rows, wanted)
        if why is None:
            one.figures[name] = figures
        else:
            one.wrong[name] = why
            note(f"{query.name}: {name} is wrong: {why}")

    milliseconds, wanted = by_duckdb(query, stream, one.workers)
    one.figures["DuckDB"] = Figures(anew_ms=milliseconds)
    note(f"{query.name} on {one.workers}: ours")
    with connected(one.workers) as cluster:
        followed = by_us(cluster, query, stream, warm)
    checked("ours", _figures(followed), followed.rows)
    if "Flink" in others and query.refused is not None:
        one.refused["Flink"] = query.refused
    elif "Flink" in others:
        note(f"{query.name} on {one.workers}: Flink")
        try:
            followed = by_flink(query, stream, warm, one.workers, wanted, limit)
            checked("Flink", _figures(followed), followed.rows)
        except java.FlinkError as error:
            one.refused["Flink"] = str(error)
    if "Spark" in others:
        note(f"{query.name} on {one.workers}: Spark")
        milliseconds, rows = by_spark(spark_session(one.workers), query, stream)
        checked("Spark", Figures(anew_ms=milliseconds), rows)


def _figures(followed: Followed) -> Figures:
    median, slow = (
        float(np.percentile(followed.change_ms, percent, method="inverted_cdf")) for percent in (50, 99)
    )
    return Figures(followed.load_seconds, median, slow)


def _built(others: Sequence[str], note: Callable[[str], None]) -> list[str]:
    """Those of the engines that are there."""
    if "Flink" in others and not java.is_built():
        note(f"without Flink, which is not built: {java.BUILD} (see bench/peers/README.md)")
        return [name for name in others if name != "Flink"]
    return list(others)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    options = parser.parse_args(given)
    shown = (Path(word).name if word.startswith("/") else word for word in given)
    command = f"python -m bench.sql {' '.join(shown)}".strip()
    rounds = kept(options.made_of)
    if not options.made_of:
        rounds = _run(options, parser)
    text = document(rounds, command)
    options.write.write_text(text) if options.write else print(text)
    sys.exit(1 if any(one.wrong for one in rounds) else 0)


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Round]:
    def note(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if options.suite == "nexmark":
        queries: Sequence[Query] = nexmark_queries.QUERIES
        stream = nexmark.generated(options.events, options.changes, options.each)
        warm = nexmark.generated(_WARM_UP_EVENTS, _WARM_UP_CHANGES, options.each)
        changed = f"{options.each:,} events"
    else:
        if options.folder is None:
            parser.error("tpch needs --folder: where region.tbl.gz and the other tables are")
        sys.path.insert(0, str(ROOT / "tests"))  # the texts are those that the tests have
        from bench.sql import tpch

        queries = tpch.queries()
        stream = tpch.streamed(options.folder, options.changes, options.copies, options.part)
        warm = tpch.streamed(options.folder, _WARM_UP_CHANGES, part=_WARM_UP_EVENTS)
        changed = "100 lines of orders"
    known = {query.name: query for query in queries}
    unknown = [name for name in options.query if name not in known]
    if unknown:
        parser.error(f"there is no query {', '.join(unknown)}; there are {', '.join(known)}")
    others = _built([name for name in _OTHERS if name not in options.without], note)
    rounds: list[Round] = []
    refused: dict[str, str] = {}
    for workers in options.workers:
        for _ in range(options.runs):
            for name in options.query or known:
                query = known[name]
                one = Round(
                    options.suite, name, query.says, workers, stream.loaded(query), changed,
                    f"{datetime.now(UTC):%Y-%m-%d}", versions(),
                )  # fmt: skip
                # What Flink has refused, or not ended in time, it would again.
                able = [each for each in others if each != "Flink" or name not in refused]
                one.refused |= {"Flink": refused[name]} if name in refused else {}
                try:
                    run_round(one, query, stream, warm, able, note, options.limit)
                except timely.TimelyError as error:
                    one.wrong["ours"] = str(error).splitlines()[0]
                if "Flink" in one.refused:
                    refused[name] = one.refused["Flink"]
                rounds.append(one)
                if options.keep is not None:
                    keep(one, options.keep)
        if "Spark" in others:
            spark_session(workers).stop()  # the next has as many threads as it needs
    return rounds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="queries in SQL beside Flink SQL, DuckDB and Spark")
    parser.add_argument("suite", choices=["nexmark", "tpch"])
    parser.add_argument("query", nargs="*", help="as in q3; all without one")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--runs", type=int, default=1, help="rounds, in which each engine runs once")
    parser.add_argument("--events", type=int, default=100_000, help="of the load of nexmark")
    parser.add_argument("--each", type=int, default=1_000, help="events of a change of nexmark")
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="of the tables of tpch")
    parser.add_argument("--copies", type=int, default=1, help="of the tables of tpch")
    parser.add_argument("--part", type=int, help="so many orders and lines alone")
    parser.add_argument("--without", nargs="+", default=[], choices=_OTHERS, help="engines to leave out")
    parser.add_argument(
        "--limit", type=float, default=300.0, metavar="SECONDS", help="of a run of Flink; default: 300"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add each round to this file of JSON lines")
    parser.add_argument(
        "--from",
        type=Path,
        nargs="+",
        default=[],
        dest="made_of",
        metavar="FILE",
        help="tables of what was kept",
    )
    parser.add_argument("--write", type=Path, help="a Markdown file for the tables")
    return parser


if __name__ == "__main__":
    main()
