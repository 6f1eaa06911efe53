"""examples/hashtag_map.py and its page: groups of a sliding window as a map.

meaning_*  the outputs at every epoch, against networkx
shows_*    the program, and the page in a browser: the map follows the window there and back
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from browsers import Page, opened
from example_programs import example
from graphs_plainly import strong_components
from house import ROOT
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import collection
from strategies_collections import examples
from strategies_graphs import Course, courses, follow

from examples.mentions.conversations import conversations
from examples.mentions.tweets import slides

EXAMPLE = example("hashtag_map")

# meaning_


def edges_of(tweets: Rows) -> Rows:
    edges = Rows()
    for user, mentions, _ in tweets:
        edges.update((user, int(other)) for other in str(mentions).split())
    return edges


def groups_plainly(tweets: Rows) -> Rows:
    component = dict(iter(strong_components(edges_of(tweets))))
    sizes = Counter(component.values())
    found = []
    for each in sizes:
        uses: Counter[str] = Counter()
        for (user, _, hashtags), count in tweets.items():
            if component.get(user) == each:
                uses.update(dict.fromkeys(str(hashtags).split(), count))
        ranked = sorted(uses, key=lambda tag: (-uses[tag], tag))
        if sizes[each] > 1:
            first = ranked[0] if ranked else None
            found.append((each, sizes[each], first, uses[first] if first else 0))
    return collection(found)


def ties_plainly(tweets: Rows) -> Rows:
    component = dict(iter(strong_components(edges_of(tweets))))
    large = {each for each, users in Counter(component.values()).items() if users > 1}
    ties: Counter[tuple[object, object]] = Counter()
    for source, target in edges_of(tweets):
        ends = component[source], component[target]
        if ends[0] != ends[1] and {*ends} <= large:
            ties[ends] += 1
    return collection((source, target, count) for (source, target), count in ties.items())


_words = st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True).map(" ".join)
_users = st.lists(st.integers(0, 5).map(str), max_size=2, unique=True).map(" ".join)
TWEETS = {"tweets": st.tuples(st.integers(0, 5), _users, _words)}
SCHEMAS = {"tweets": "user: int, mentions: string, hashtags: string"}
PLAINLY = {"groups": groups_plainly, "ties": ties_plainly}


@examples(0.1)
@given(courses(TWEETS), st.sampled_from(sorted(PLAINLY)), st.integers(1, 2), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, output: str, workers: int, seed: int) -> None:
    follow(lambda tweets: EXAMPLE.map_of(tweets)[output], PLAINLY[output], SCHEMAS, course, workers, seed)


def test_meaning_of_there_and_back() -> None:
    all_slides = list(slides(conversations(50), 86_400, 86_400))
    ends = [(slide.end, is_back) for slide, is_back in EXAMPLE.there_and_back(all_slides, 2)]
    once = [slide.end for slide in all_slides[1:]]
    there, back = [(end, False) for end in once], [(end, True) for end in reversed(once)]
    assert ends == [(all_slides[0].end, False), *there, *back, *there, *back]
    assert list(EXAMPLE.there_and_back(all_slides[:1], 0)) == [(all_slides[0], False)]


# shows_


def test_shows_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXAMPLE.main(["nowhere.tsv"]) == 1
    assert "nowhere.tsv cannot be read" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        EXAMPLE.main(["--every-seconds", "-1"])


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    # Where this process ignores the signal, as one in the background does, its child would, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    program = subprocess.Popen(
        [sys.executable, "examples/hashtag_map.py", "--slide-minutes", "720", "--every-seconds", "0.7"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    try:
        assert program.stdout is not None
        with opened() as page:
            page.driver.get(program.stdout.readline().strip())
            page.shows("#facts", "tweets by and about")
            yield page
            assert page.errors() == []
            program.send_signal(signal.SIGINT)
            assert program.communicate(timeout=60) == ("", "")
            assert program.returncode == 0
            page.shows("#error", "lost its server")
    finally:
        program.kill()
        program.communicate()


def maps(page: Page, count: int) -> None:
    """Wait until so many maps have been shown."""
    page.until(lambda: int(str(page.run("return document.querySelector('#past').max"))) >= count - 1)


def test_shows_the_groups_of_the_window_that_it_names(page: Page) -> None:
    maps(page, 3)
    page.click("#live")
    page.run(
        "document.querySelector('#past').value = 1;"
        "document.querySelector('#past').dispatchEvent(new Event('input'))"
    )
    assert page.run("return document.querySelector('#live').getAttribute('aria-pressed')") == "false"
    end = int(str(page.run("return document.querySelector('#facts').dataset.end")))
    tweets = conversations()
    times = tweets.column("time").to_numpy()
    inside = tweets.filter((times > end - 86_400) & (times <= end))
    names = ["user", "mentions", "hashtags"]
    rows = collection(tuple(row.values()) for row in inside.select(names).to_pylist())
    groups = {str(component): (users, tag) for component, users, tag, _ in groups_plainly(rows)}
    shown = page.run(
        "return [...document.querySelectorAll('.group')].map((each) =>"
        "[each.dataset.component, +each.children[2].textContent, each.children[1].textContent])"
    )
    assert isinstance(shown, list)
    assert {each: (users, tag.removeprefix("#") or None) for each, users, tag in shown} == groups
    ties = {(str(source), str(target)) for source, target, _ in ties_plainly(rows)}
    lines = page.run(
        "return [...document.querySelectorAll('#map line')].map((each) =>"
        "[each.dataset.from, each.dataset.to])"
    )
    assert isinstance(lines, list) and {(source, target) for source, target in lines} == ties
    assert page.text("#facts").startswith(f"{inside.num_rows:,} tweets")


def test_shows_a_chosen_group_and_no_circle_lies_on_another(page: Page) -> None:
    largest = (
        "[...document.querySelectorAll('.group')].sort((a, b) =>"
        "+b.children[2].textContent - +a.children[2].textContent)[0]"
    )
    page.run(f"{largest}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    users = page.run(f"return {largest}.children[2].textContent")
    page.shows("#chosen", f"{users} users")
    page.until(
        lambda: page.run(
            "const all = [...document.querySelectorAll('.group')].map((each) => {"
            "  const [x, y] = each.getAttribute('transform').slice(10, -1).split(' ').map(Number);"
            "  return {x, y, r: each.firstChild.r.baseVal.value} });"
            "return all.every((a, n) => all.slice(n + 1).every((b) =>"
            "  Math.hypot(a.x - b.x, a.y - b.y) > 0.9 * (a.r + b.r)))"
        )
    )


def test_shows_the_newest_map_again(page: Page) -> None:
    page.click("#live")
    end = page.run("return document.querySelector('#facts').dataset.end")
    page.until(lambda: page.run("return document.querySelector('#facts').dataset.end") != end)
    assert page.run("return document.title") == "what groups speak of"
    page.until(lambda: len(page.texts("#largest tbody tr")) == 12)
