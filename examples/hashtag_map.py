"""A map of the groups of a mention graph in a browser, with what each speaks of, while a window slides over
it.

    python examples/hashtag_map.py [FILE] [--window-hours 24] [--slide-minutes 60] [--every-seconds 1]
                                   [--workers 2] [--port 0] [--rounds N]

Open the address that it prints. Each circle is a group: a *strong component* of the mentions in the window,
as in `examples/hashtags.py`, with the hashtag that it uses most. A line is drawn where one group mentions
another. The window slides to the end of the tweets and then back again, until Ctrl-C; the page keeps the
maps that it has shown, so that one can go back in them.

The page is in `examples/hashtag_page/`. The console serves it (`cluster.console(page=…)`), and it reads
nothing but live outputs: docs/console.md says how to write one of your own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from hashtags import HOUR_SECONDS, INPUT, mentioned_pairs, used_hashtags, with_hashtags
from mentions.conversations import conversations
from mentions.tweets import Slide, read_tweets, slides

import differential as dd
import timely
from differential import Collection, col
from differential.algorithms import strongly_connected_components

PAGE = Path(__file__).parent / "hashtag_page"


def map_of(tweets: Collection) -> dict[str, Collection]:
    """The outputs by name: `groups`, strong components of two users or more; `ties`, by how many pairs of
    users one group mentions another; `facts`, how much of what is in the window.
    """
    pairs = tweets.flat_map(mentioned_pairs, "src: int, dst: int")
    used = tweets.flat_map(used_hashtags, "user: int, hashtag: string")
    edges = pairs.distinct()
    users = strongly_connected_components(edges)
    groups = with_hashtags(users, used).filter(col.users > 1)
    inside = users.join(groups, on="component", how="semi")
    ties = (
        edges.join(inside.select(src=col.node, source=col.component), on="src")
        .join(inside.select(dst=col.node, target=col.component), on="dst")
        .filter(col.source != col.target)
        .group_by("source", "target")
        .agg(mentions=dd.count())
    )
    contents = {"tweets": tweets, "mentions": pairs, "users": users, "groups": groups}
    first, *rest = (rows.select(what=what) for what, rows in contents.items())
    facts = first.concat(*rest).group_by("what").agg(value=dd.count())
    return {"groups": groups, "ties": ties, "facts": facts}


@timely.builder
def hashtag_map(flow: timely.Dataflow) -> None:
    """The dataflow, as every worker builds it. The program inserts the end of the window."""
    found = map_of(dd.input(flow, "tweets", "user: int, mentions: string, hashtags: string"))
    window = dd.input(flow, "window", "what: string, value: int")
    for name in ("groups", "ties"):
        found[name].output(name)
    found["facts"].concat(window).output("facts")


def there_and_back(all_slides: list[Slide], rounds: int) -> Iterator[tuple[Slide, bool]]:
    """Slides to the end and back to the first, `rounds` times, or for ever if that is 0; with each whether
    the window slides back. The first one comes once.
    """
    done = 0
    yield all_slides[0], False
    while len(all_slides) > 1 and (not rounds or done < rounds):
        for slide in all_slides[1:]:
            yield slide, False
        for slide in reversed(all_slides[1:]):
            yield slide, True
        done += 1


def follow(flow: timely.Flow, tweets: pa.Table, options: argparse.Namespace) -> None:
    """Slide the window, an epoch for each slide."""
    rows = tweets.select(INPUT)
    size, every = round(options.window_hours * HOUR_SECONDS), round(options.slide_minutes * 60)
    all_slides = list(slides(tweets, size, every))
    before = {slide.end: earlier.end for earlier, slide in zip(all_slides, all_slides[1:], strict=False)}
    shown: list[tuple[str, int]] = []
    for slide, is_back in there_and_back(all_slides, options.rounds):
        began = time.monotonic()
        gone, come = (slide.come, slide.gone) if is_back else (slide.gone, slide.come)
        flow.input("tweets").remove(rows.slice(*gone))
        flow.input("tweets").insert(rows.slice(*come))
        flow.input("window").remove(shown)
        shown = [("end", before[slide.end] if is_back else slide.end), ("seconds", size)]
        flow.input("window").insert(shown)
        flow.seal(wait=True, timeout=600)
        time.sleep(max(0.0, options.every_seconds - (time.monotonic() - began)))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", help="tweets; made up if left out")
    parser.add_argument("--window-hours", type=float, default=24, help="length of the window (24)")
    parser.add_argument("--slide-minutes", type=float, default=60, help="how far it moves in an epoch (60)")
    parser.add_argument("--every-seconds", type=float, default=1, help="from one slide to the next (1)")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 (the default): within this one")
    parser.add_argument("--port", type=int, default=0, help="of the page; 0 (the default): a free one")
    parser.add_argument("--rounds", type=int, default=0, help="there and back; 0 (the default): until Ctrl-C")
    options = parser.parse_args(arguments)
    if round(min(options.window_hours * HOUR_SECONDS, options.slide_minutes * 60)) < 1:
        parser.error("the window and its slide are a second long or longer")
    if options.every_seconds < 0 or options.rounds < 0:
        parser.error("--every-seconds and --rounds are 0 or more")
    try:
        tweets = conversations() if options.file is None else read_tweets(options.file)
        with (
            timely.connect(workers=options.workers or 1, embedded=options.workers == 0) as cluster,
            suppress(KeyboardInterrupt),
        ):
            flow = cluster.install(hashtag_map)
            with cluster.console(options.port, page=PAGE) as console:
                print(console.address, flush=True)
                follow(flow, tweets, options)
    except (timely.TimelyError, ValueError) as error:
        print(f"hashtag_map: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
