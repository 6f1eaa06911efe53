"""What do the groups of a mention graph speak of, while a window slides over it?

    python examples/hashtags.py [FILE] [--window-hours 24] [--slide-hours 24] [--slides N] [--workers 2]
                                [--json]

Two users are in one group, a *strong component*, if mentions lead from one to the other and back. The
query keeps for every group its number of users, and the hashtag that they use most; and the same for weak
components, in which the direction of a mention does not matter. It is the query in the appendix of the paper
on differential dataflow.

FILE has a tweet a line, with time, user, mentions and hashtags (`examples/mentions/tweets.py`); without it a
week is made up. An epoch is a slide of the window: tweets that have left it are removed, new ones are
inserted, and the program prints a line for what is in it now.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from mentions.tweets import Slide, made_up, read_tweets, slides

import differential as dd
import timely
from differential import Collection, col
from differential.algorithms import connected_components, strongly_connected_components

HOUR_SECONDS = 3600
INPUT = ["user", "mentions", "hashtags"]

Tweet: TypeAlias = tuple[int, str, str]


def mentioned_pairs(tweet: Tweet) -> list[tuple[int, int]]:
    """The author of a tweet with each user whom it mentions."""
    user, mentions, _ = tweet
    return [(user, int(mentioned)) for mentioned in mentions.split()]


def used_hashtags(tweet: Tweet) -> list[tuple[int, str]]:
    """The author of a tweet with each hashtag of it."""
    user, _, hashtags = tweet
    return [(user, hashtag) for hashtag in hashtags.split()]


def with_hashtags(components: Collection, used: Collection) -> Collection:
    """For each component: its number of users, the hashtag that they use most, and how often: `component`,
    `users`, `hashtag`, `uses`. If several are used equally often, the first by name; null and 0 if
    none is.
    """
    sizes = components.group_by("component").agg(users=dd.count())
    uses = components.join(used, on={"node": "user"}).group_by("component", "hashtag").agg(uses=dd.count())
    most = uses.group_by("component").agg(hashtag=dd.argmax("hashtag", by="uses"), uses=dd.max("uses"))
    return sizes.join(most, on="component", how="left").with_columns(uses=col.uses.fill_null(0))


def described(tweets: Collection) -> dict[str, Collection]:
    """The outputs by name: pairs and edges (`src` mentions `dst`), users, and both kinds of components, as
    `with_hashtags` gives them.
    """
    pairs = tweets.flat_map(mentioned_pairs, "src: int, dst: int")
    used = tweets.flat_map(used_hashtags, "user: int, hashtag: string")
    edges = pairs.distinct()
    weak, strong = connected_components(edges), strongly_connected_components(edges)
    return {
        "pairs": pairs,
        "edges": edges,
        "users": weak,
        "weak": with_hashtags(weak, used),
        "strong": with_hashtags(strong, used),
    }


@timely.builder
def hashtags(flow: timely.Dataflow) -> None:
    """The dataflow, as every worker builds it."""
    found = described(dd.input(flow, "tweets", "user: int, mentions: string, hashtags: string"))
    first, *rest = (rows.select(what=what) for what, rows in found.items())
    first.concat(*rest).group_by("what").count().output("counts")
    for kind in ("weak", "strong"):
        found[kind].output(kind)
        found[kind].top_k(1, by=[col.users.desc(), col.component]).output(f"largest {kind}")


def said(flow: timely.Flow, slide: Slide) -> dict[str, object]:
    """The contents of the window: the fields of a `--json` line."""
    counts = {row["what"]: row["count"] for row in flow.output("counts").snapshot().to_pylist()}
    found: dict[str, object] = {"end": slide.end, "tweets": slide.tweets}
    found |= {what: counts.get(what, 0) for what in ("pairs", "users", "edges")}
    for kind in ("weak", "strong"):
        rows = flow.output(f"largest {kind}").snapshot().to_pylist()
        largest = rows[0] if rows else {"users": 0, "hashtag": None, "uses": 0}
        found |= {kind: counts.get(kind, 0), f"{kind}_largest": largest["users"]}
        found |= {f"{kind}_hashtag": largest["hashtag"], f"{kind}_uses": largest["uses"]}
    return found


def line(facts: dict[str, object]) -> str:
    """One epoch on the screen."""
    end = datetime.fromtimestamp(int(str(facts["end"])), UTC).strftime("%d %b %Y %H:%M")
    parts = [f"{end}  {facts['tweets']:>5,} tweets  {facts['users']:>5,} users  {facts['edges']:>5,} edges"]
    for kind in ("weak", "strong"):
        hashtag = facts[f"{kind}_hashtag"]
        about = f" #{hashtag} {facts[f'{kind}_uses']:,}" if hashtag else ""
        parts.append(f"{facts[kind]:>5,} {kind}, largest {facts[f'{kind}_largest']:,}{about}")
    return "  ".join(parts)


def run(cluster: timely.Cluster, tweets: pa.Table, options: argparse.Namespace) -> None:
    """One epoch for each slide."""
    flow = cluster.install(hashtags)
    rows = tweets.select(INPUT)
    size, every = (round(hours * HOUR_SECONDS) for hours in (options.window_hours, options.slide_hours))
    for slide in slides(tweets, size, every, options.slides):
        flow.input("tweets").remove(rows.slice(*slide.gone))
        flow.input("tweets").insert(rows.slice(*slide.come))
        flow.seal(wait=True, timeout=600)
        facts = said(flow, slide)
        print(json.dumps(facts) if options.json else line(facts), flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Hashtags of groups in a sliding window of mentions.")
    parser.add_argument("file", type=Path, nargs="?", help="tweets; made up if left out")
    parser.add_argument("--window-hours", type=float, default=24, help="length of the window (24)")
    parser.add_argument("--slide-hours", type=float, default=24, help="how far it moves in an epoch (24)")
    parser.add_argument("--slides", type=int, help="only the last so many windows")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 (the default): within this one")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    if round(min(options.window_hours, options.slide_hours) * HOUR_SECONDS) < 1:
        parser.error("the window and its slide are a second long or longer")
    if options.slides is not None and options.slides < 1:
        parser.error(f"--slides is 1 or more, not {options.slides}")
    try:
        tweets = made_up() if options.file is None else read_tweets(options.file)
        with timely.connect(workers=options.workers or 1, embedded=options.workers == 0) as cluster:
            run(cluster, tweets, options)
    except (timely.TimelyError, ValueError) as error:
        print(f"hashtags: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
