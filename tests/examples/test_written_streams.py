"""Programs of examples/ whose dataflows are written by hand: random input against plain computations.

words_*         of the last paragraphs, by a stream that is a collection
logins_*        a state for each account
clicks_*        captured on two workers, counted again on three
islands_*       a loop in a loop
sessions_*      notifications of times ahead
rules_*         one stream divided, one broadcast
rates_*         two inputs with epochs of their own
deliveries_*    a held time
programs_*      each compares its answer with a plain computation, and says so if that is another one
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from example_programs import example

import timely


@pytest.mark.parametrize(("workers", "paragraphs"), [(1, 1), (2, 3)])
def test_words_are_those_of_the_last_paragraphs(workers: int, paragraphs: int) -> None:
    rng = random.Random(paragraphs)
    texts = [[" ".join(rng.choices("abcdef", k=3)) for _ in range(rng.randrange(4))] for _ in range(8)]
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(example("recent_words").build, paragraphs=paragraphs)
        for epoch, lines in enumerate(texts):
            flow.input("lines").insert(lines)
            flow.seal()
            last = texts[max(0, epoch + 1 - paragraphs) : epoch + 1]
            counts = Counter(word for text in last for line in text for word in line.split())
            first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
            rows = flow.output("words").snapshot().to_pylist()
            assert Counter((row["word"], row["count"]) for row in rows) == Counter(first)


@pytest.mark.parametrize("workers", [1, 3])
def test_logins_of_accounts_are_locked_by_three_wrong_passwords_in_a_row(workers: int) -> None:
    logins = example("logins")
    rng = random.Random(workers)
    wrong: Counter[str] = Counter()
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(logins.build)
        for epoch in range(12):
            wanted = []
            accounts = rng.sample("abcdefgh", 5)  # each at most once: lines of one epoch have no order
            for account in accounts:
                result = rng.choice(["right", "wrong", "wrong"])
                flow.input("lines").insert([f"{account} {result}"])
                if wrong[account] == 3:
                    wanted.append((epoch, (account, f"is locked: {result} password refused")))
                elif result == "right":
                    wrong[account] = 0
                    wanted.append((epoch, (account, "is in")))
                else:
                    wrong[account] += 1
                    wanted += [(epoch, (account, "is locked now"))] * (wrong[account] == 3)
            flow.seal()
            assert Counter(flow.output("news").changes()) == Counter(wanted)
    assert max(wrong.values()) == 3


def test_clicks_that_were_captured_are_counted_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replayed = example("replayed")
    folder = str(tmp_path / "clicks")
    replayed.run(folder, are_processes=False)
    lines = capsys.readouterr().out.splitlines()
    for place, title in enumerate(["by user, on 2 workers", "by page, on 3 workers, from 2 files"]):
        counts = Counter(
            (epoch, click[place]) for epoch, clicks in enumerate(replayed.EPOCHS) for click in clicks
        )
        at = lines.index(title) + 1
        wanted = [f"  epoch {epoch}: {count} × {name}" for (epoch, name), count in sorted(counts.items())]
        assert lines[at : at + len(wanted)] == wanted
    with pytest.raises(timely.MisuseError, match="Name another folder"):
        replayed.run(folder, are_processes=False)


@pytest.mark.parametrize("workers", [1, 3])
def test_islands_are_those_of_a_union_of_sets(workers: int) -> None:
    islands = example("islands")
    rng = random.Random(workers)
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(islands.build)
        for roads in (0, 1, 6, 9, 12):
            lines = [f"{rng.randrange(12)} {rng.randrange(12)}" for _ in range(roads)]
            flow.input("lines").insert(lines)
            flow.seal()
            found = sorted(pair for _, pair in flow.output("islands").changes())
            assert found == islands.plainly(lines)


@pytest.mark.parametrize("workers", [1, 3])
def test_sessions_end_at_the_minute_at_which_they_are_over(workers: int) -> None:
    sessions = example("sessions")
    rng = random.Random(workers)
    clicks = sorted((rng.randrange(120), rng.choice("abcd")) for _ in range(40))
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(sessions.build)
        for minute, user in clicks:
            flow.seal(through=minute - 1)
            flow.input("users").insert([user])
        flow.finish()
        found = sorted(flow.output("sessions").changes())
    assert found == sessions.plainly(clicks)
    assert len(found) > 4


@pytest.mark.parametrize("workers", [1, 3])
def test_rules_of_an_epoch_hold_for_all_payments_of_it(workers: int) -> None:
    rules = example("rules")
    rng = random.Random(workers)
    epochs = [
        [f"pay {rng.choice('abcdef')} {rng.choice('XYZ')} {rng.randrange(1000)}" for _ in range(8)]
        + [f"rule {country} {rng.randrange(1000)}" for country in "XY" if rng.random() < 0.5]
        for _ in range(6)
    ]
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(rules.build)
        for lines in epochs:
            flow.input("lines").insert(lines)
            flow.seal()
        found = sorted(flow.output("held").changes())
    assert found == rules.plainly(epochs)
    assert found


@pytest.mark.parametrize("workers", [1, 3])
def test_rates_are_the_newest_of_the_hour_or_before_it(
    workers: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = example("rates")
    rng = random.Random(workers)
    hours = [[(rng.choice("ab"), rng.choice("XYZ"), rng.randrange(9)) for _ in range(5)] for _ in range(4)]
    new = [(0, currency, 1) for currency in "XYZ"] + [(n % 3 + 1, "XYZ"[n % 2], n + 2) for n in range(6)]
    monkeypatch.setattr(rates, "ORDERS", hours)
    monkeypatch.setattr(
        rates, "RATES", [each for n, each in enumerate(new) if each[:2] not in [o[:2] for o in new[:n]]]
    )
    own = timely.connect
    monkeypatch.setattr(timely, "connect", lambda **_: own(workers=workers, embedded=True))
    monkeypatch.setattr("sys.argv", ["rates.py"])
    rates.main()  # ends with an error if its answer is another one than that of `plainly`
    assert capsys.readouterr().out.count("rates are at hour") == 2
    assert [len(hour) for hour in hours] == [5] * 4


@pytest.mark.parametrize("workers", [1, 3])
def test_deliveries_of_a_day_are_known_when_the_last_has_arrived(workers: int) -> None:
    deliveries = example("deliveries")
    rng = random.Random(workers)
    days: list[list[str]] = [[] for _ in range(9)]
    for number in range(12):
        ordered = rng.randrange(7)
        days[ordered].append(f"order o{number}")
        if number != 11:  # which never arrives
            days[min(8, ordered + rng.randrange(4))].append(f"arrived o{number}")
    never = next(day for day, lines in enumerate(days) if "order o11" in lines)
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(deliveries.build)
        for lines in days:
            flow.input("lines").insert(lines)
            flow.seal()
        if never:
            flow.wait(never - 1)
        assert flow.output("means").changes(0, never) == deliveries.plainly(days)
        assert deliveries.days_over(days) == never
        with pytest.raises(timely.WaitTimeoutError):
            flow.wait(never, timeout=5)
        cause = flow.why(never).cause
        assert cause is not None and cause.kind == "capability" and "deliveries.py" in cause.where


BY_HAND = {
    "word_count": "a plain count",
    "logins": "the plain computation",
    "replayed": "a plain count",
    "islands": "the plain computation",
    "sessions": "the plain computation",
    "rules": "the plain computation",
    "rates": "the plain computation",
    "deliveries": "the plain computation",
}
WRONG = {
    "word_count": ("Counter", lambda: Counter({"the": 7})),
    "replayed": ("Counter", lambda _: Counter({(0, "nobody"): 1})),
}
"""What to put in the place of the plain computation of programs that have no function `plainly`."""


@pytest.mark.parametrize("name", BY_HAND)
def test_programs_run_and_end_with_an_error_if_their_answer_is_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    program = example(name)
    program.main()
    assert len(capsys.readouterr().out.splitlines()) >= 2
    monkeypatch.setattr(program, *WRONG.get(name, ("plainly", lambda *_: [])))
    with pytest.raises(SystemExit, match=f"{name}: .*differ.* from {BY_HAND[name]}"):
        program.main()
