"""What may stand in `.option(…)`, and what is said of the rest.

meant_*     what an option means
refused_*   slips, and values that are none
"""

from __future__ import annotations

import pytest

from timely.errors import MisuseError
from timely.limits import HOLD_SECONDS_DEFAULT, REPLY_SECONDS_MAX
from timely.spark.source.options import COLLECTION, SEALED, SourceOptions


class Flows:
    """A cluster that has these dataflows."""

    def __init__(self, *specs: str) -> None:
        self.specs = dict(enumerate(specs))

    def flows(self) -> dict[int, str]:
        return self.specs

    def flow(self, index: int | str) -> str:
        return f"flow {index}"


def flow_in(options: SourceOptions, *specs: str) -> object:
    return options.flow_in(Flows(*specs))  # type: ignore[arg-type]  # all that is asked of a cluster


def test_meant_names_are_read_with_and_without_capitals_and_others_are_not_ours() -> None:
    options = SourceOptions.of(
        {"CLUSTER": " a:1, b:2 ,", "startingepoch": "3", "owner": "x", "columns": "a, b"}
    )
    assert options.cluster == ("a:1", "b:2")
    assert options.epoch("startingEpoch", COLLECTION, (COLLECTION,)) == 3
    assert options.columns == ("a", "b") and SourceOptions.of({}).columns == ()


def test_meant_without_a_word_are_the_sealed_epoch_and_the_usual_times() -> None:
    options = SourceOptions.of({})
    assert options.epoch("epoch", SEALED, (SEALED,)) == SEALED
    assert (options.hold_seconds, options.timeout_seconds) == (HOLD_SECONDS_DEFAULT, REPLY_SECONDS_MAX)
    assert SourceOptions.of({"hold": "7", "timeout": "1.5"}).hold_seconds == 7


def test_meant_is_the_dataflow_that_is_named_or_the_only_one() -> None:
    assert flow_in(SourceOptions.of({"dataflow": "3"}), "a", "b") == "flow 3"
    assert flow_in(SourceOptions.of({"dataflow": "mentions"})) == "flow mentions"
    assert flow_in(SourceOptions.of({}), "only") == "flow 0"
    for specs, listed in (((), "none"), (("a", "b"), r"0 \(a\), 1 \(b\)")):
        with pytest.raises(MisuseError, match=f"'dataflow' says which .* there are {listed}"):
            flow_in(SourceOptions.of({}), *specs)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"outptu": "x"}, "no option 'outptu' of naiad: write 'output'"),
        ({"startingEpochs": "1"}, "write 'startingEpoch'"),
        ({"startingOffsets": "earliest"}, "no option 'startingoffsets' of naiad: write 'startingEpoch'"),
        ({"startingVersion": "3"}, "write 'startingEpoch'"),
        ({"versionAsOf": "3"}, "write 'epoch'"),
        ({"path": "counts"}, r"no path, 'counts': write \.option\('output', name\) and load\(\)"),
        ({"paths": '["a", "b"]'}, "naiad reads and writes no path"),
        ({"maxOffsetsPerTrigger": "100"}, "write 'epochsPerBatch'"),
    ],
)
def test_refused_slips_are_told_what_was_meant(given: dict[str, str], said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        SourceOptions.of(given)


@pytest.mark.parametrize("digits", [str((1 << 61) + 1), "9" * 30, "9" * 5_000, "0" * 5_000 + "9" * 20])
def test_refused_numbers_that_are_too_large_name_their_option(digits: str) -> None:
    options = SourceOptions.of(dict.fromkeys(["epoch", "lag", "dataflow"], digits))
    for name, ask in {
        "epoch": lambda: options.epoch("epoch", SEALED, (SEALED,)),
        "lag": lambda: options.count("lag", 8),
        "dataflow": lambda: flow_in(options, "only"),
    }.items():
        with pytest.raises(
            MisuseError, match=rf"'{name}' is a number of at most 23058\d+, not \d{{19,30}}…?$"
        ):
            ask()
    assert SourceOptions.of({"lag": str(1 << 61)}).count("lag", 8) == 1 << 61


def test_refused_values_that_are_long_are_not_told_in_full() -> None:
    options = SourceOptions.of(
        {"epoch": "x" * 5_000, "hold": "x" * 5_000, "lag": "x" * 5_000, "query": "x" * 5_000}
    )
    for ask in (
        lambda: options.epoch("epoch", SEALED, (SEALED,)),
        lambda: options.count("lag", 8),
        lambda: options.hold_seconds,
    ):
        with pytest.raises(MisuseError) as raised:
            ask()
        assert len(str(raised.value)) < 200
    with pytest.raises(MisuseError, match="'query' is a name of at most 4,000 characters, not of 5,000"):
        _ = options.query
    assert (
        SourceOptions.of({"query": "x" * 4_000, "lag": "007"}).query
        and SourceOptions.of({"lag": "007"}).count("lag", 8) == 7
    )


def test_refused_values_name_their_option() -> None:
    options = SourceOptions.of(
        {"epoch": "-1", "hold": "soon", "timeout": "-3", "cluster": " , ", "lag": "²", "query": "once/7"}
    )
    with pytest.raises(MisuseError, match="'epoch' is the number of an epoch or 'sealed', not '-1'"):
        options.epoch("epoch", SEALED, (SEALED,))
    with pytest.raises(MisuseError, match="'hold' is a number of seconds, at most 3600, not 'soon'"):
        _ = options.hold_seconds
    with pytest.raises(MisuseError, match="'timeout' is a number of seconds, not '-3'"):
        _ = options.timeout_seconds
    with pytest.raises(MisuseError, match="'lag' is a whole number, 0 or more, not '²'"):
        options.count("lag", 8)
    with pytest.raises(MisuseError, match="'query' begins with 'once/', which stands for writing without"):
        _ = options.query
    with pytest.raises(MisuseError, match="'cluster' is empty"):
        _ = options.cluster
    with pytest.raises(MisuseError, match=r"'cluster' is missing: write .option\('cluster', 'host:port'\)"):
        _ = SourceOptions.of({}).cluster
