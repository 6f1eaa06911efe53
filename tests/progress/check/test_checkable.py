"""A file's scenario is found, and everything else is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from progress.check.checkable import load
from progress.errors import MisuseError

GOOD = """
import beside
class Mine:
    def explore(self, *, workers, orders, states_max):
        return beside.answer
    def simulate(self, seed, *, workers, crash):
        return seed
scenario = Mine()
other = 3
"""


def test_a_scenario_is_whatever_can_explore_and_simulate(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("answer = 42\n")
    (tmp_path / "good_scenarios.py").write_text(GOOD)
    loaded = load(f"{tmp_path}/good_scenarios.py:scenario")
    assert loaded.explore(workers=None, orders=None, states_max=None) == 42


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("odd.py", None, "there is no file"),
        ("odd.py", "x = (", "cannot be carried out: SyntaxError"),
        ("odd.py", "raise SystemExit(3)", "cannot be carried out: SystemExit: 3"),
        ("odd.py", "y = 1", "has no 'x': its scenarios are none"),
        (
            "odd.py",
            "x = 1",
            "'x' of .*odd.py is a int, which cannot be explored: write x = timely.testing.Scen",
        ),
        ("odd.txt", "x = 1", "is no file of Python"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    name: str, text: str | None, complaint: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(MisuseError, match=complaint) as caught:
        load(f"{tmp_path}/{name}:x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", ["flows.py", ":x", "flows.py:", "flows.py:a b"])
def test_what_names_no_scenario_is_refused(target: str) -> None:
    with pytest.raises(MisuseError, match=r"write FILE:NAME"):
        load(target)
