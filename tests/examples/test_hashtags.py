"""examples/hashtags.py: the query in the appendix of the paper, over a sliding window of tweets.

tables_*   the verified tables of the data sets, line by line, and then the window is emptied
meaning_*  at every epoch, against networkx, on small random tweets
shows_*    the command line

Data sets are read where they lie beside the checkout; without them there are no tests of their tables.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from example_programs import example
from graphs_plainly import components, strong_components
from house import ROOT
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import collection
from reference.dataflow import Cluster, PlainBuild, compact_traces, trace_rows, traces
from strategies_collections import examples
from strategies_graphs import Course, courses, follow

from examples.mentions.tweets import read_tweets, slides

DATA = ROOT.parent / "shared" / "data"
HERE = [name for name in ("tweets-us-senate", "tweets-airline") if (DATA / name).exists()]
DAY_SECONDS = 86_400


EXAMPLE = example("hashtags")


# tables_


def _table(name: str) -> list[dict[str, object]]:
    """The window table in the data set's own description, as `--json` would say it."""
    found: list[dict[str, object]] = []
    for line in (DATA / name / "README.md").read_text().split("### 24 h windows\n")[1].splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            names = ("end", "tweets", "pairs", "users", "edges", "weak", "weak_largest", "strong")
            facts: dict[str, object] = dict(zip(names, map(int, cells[:8]), strict=True))
            hashtag, uses = cells[8].split(" (")
            found.append(
                facts | {"weak_hashtag": None if hashtag == "-" else hashtag, "weak_uses": int(uses[:-1])}
            )
    assert found
    return found


@pytest.mark.parametrize("name", HERE)
def test_tables_of_the_data_sets_and_nothing_is_left_of_an_empty_window(name: str) -> None:
    table = _table(name)
    tweets = read_tweets(DATA / name / "tweets.tsv.gz")
    rows = [tuple(row.values()) for row in tweets.select(EXAMPLE.INPUT).to_pylist()]
    cluster = Cluster(EXAMPLE.hashtags)
    there: Counter[tuple[object, ...]] = Counter()
    for number, slide in enumerate(slides(tweets, DAY_SECONDS, DAY_SECONDS, len(table))):
        for (start, count), diff in ((slide.gone, -1), (slide.come, 1)):
            changes = rows[start : start + count]
            cluster.change("tweets", [(row, diff) for row in changes])
            there.update({row: diff * n for row, n in Counter(changes).items()})
        cluster.seal()
        cluster.run()
        assert there.total() == slide.tweets
        assert _said(cluster, slide.end, slide.tweets) == table[number]
    cluster.change("tweets", [(row, -count) for row, count in there.items()])
    cluster.seal()
    cluster.run()
    for output in ("counts", "weak", "strong", "largest weak", "largest strong"):
        assert cluster.snapshot(output) == Rows()
    compact_traces(cluster)
    assert trace_rows(cluster) == 0, traces(cluster.instances[0])


def _said(cluster: Cluster, end: int, tweets: int) -> dict[str, object]:
    counts = {str(what): count for what, count in cluster.snapshot("counts")}
    ((_, users, hashtag, uses),) = cluster.snapshot("largest weak")
    whole = {what: counts[what] for what in ("pairs", "users", "edges", "weak", "strong")}
    largest = {"weak_largest": users, "weak_hashtag": hashtag, "weak_uses": uses}
    return {"end": end, "tweets": tweets, **whole, **largest}


# meaning_


def _plainly(components_of: PlainBuild) -> PlainBuild:
    def plain(tweets: Rows) -> Rows:
        edges = Rows()
        for user, mentions, _ in tweets:
            edges.update((user, int(other)) for other in str(mentions).split())
        component = dict(iter(components_of(edges)))
        found = []
        for each in set(component.values()):
            users = [user for user, of in component.items() if of == each]
            uses: Counter[str] = Counter()
            for (user, _, hashtags), count in tweets.items():
                if user in users:
                    uses.update(dict.fromkeys(str(hashtags).split(), count))
            ranked = sorted(uses, key=lambda tag: (-uses[tag], tag))
            found.append((each, len(users), ranked[0] if ranked else None, uses[ranked[0]] if ranked else 0))
        return collection(found)

    return plain


_words = st.lists(st.sampled_from(["a", "b", "B", "é", "long"]), max_size=2, unique=True).map(" ".join)
_users = st.lists(st.integers(0, 5).map(str), max_size=2, unique=True).map(" ".join)
TWEETS = {"tweets": st.tuples(st.integers(0, 5), _users, _words)}
SCHEMAS = {"tweets": "user: int, mentions: string, hashtags: string"}


@examples(0.2)
@given(courses(TWEETS), st.sampled_from(["weak", "strong"]), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, kind: str, workers: int, seed: int) -> None:
    plain = _plainly({"weak": components, "strong": strong_components}[kind])
    follow(lambda tweets: EXAMPLE.described(tweets)[kind], plain, SCHEMAS, course, workers, seed)


# shows_


def _write(path: Path, rows: list[tuple[int, int, str, str]]) -> Path:
    lines = ["time\tuser\tmentions\thashtags", *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_shows_a_line_for_each_slide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hour = 3_600
    tweets = [
        (0, 1, "2", "cats"),
        (hour, 2, "1 3", "dogs cats"),
        (2 * hour, 3, "", "birds"),
        (30 * hour, 4, "4", ""),
    ]
    file = _write(tmp_path / "tweets.tsv", tweets)
    assert EXAMPLE.main([str(file), "--slide-hours", "15", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["end"] for line in lines] == [0, 15 * hour, 30 * hour]
    assert [line["tweets"] for line in lines] == [1, 3, 1]
    assert [line["users"] for line in lines] == [2, 3, 1]
    second = {key: value for key, value in lines[1].items() if key.startswith(("weak", "strong"))}
    assert second == {
        "weak": 1,
        "weak_largest": 3,
        "weak_hashtag": "cats",
        "weak_uses": 2,
        "strong": 2,
        "strong_largest": 2,
        "strong_hashtag": "cats",
        "strong_uses": 2,
    }
    assert EXAMPLE.main([str(file), "--slides", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("02 Jan 1970 06:00") and said.endswith("  1 strong, largest 1\n")


def test_shows_what_is_wrong_with_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _write(tmp_path / "unsorted.tsv", [(2, 1, "2", ""), (1, 1, "2", "")])
    assert EXAMPLE.main([str(file)]) == 1
    assert "sorted by time" in capsys.readouterr().err


def test_shows_a_made_up_week_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXAMPLE.main(["--slides", "2", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    assert all(line["strong"] >= line["weak"] > 1 < line["weak_largest"] for line in lines)
    assert all(line["weak_hashtag"] for line in lines)
