"""The made-up mention stream: the same lines for the same seed, and of the kind that real ones are.

same_*     decided by rows and seed alone
real_*     what it shares with the Higgs data set
command_*  the command line
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.mentions.mention_stream import DAYS, FIRST_TIME, generate, main

ROOT = Path(__file__).resolve().parents[3]
HOUR_S = 3_600


def test_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    first, again, other = (
        generate(2_000, seed).write(tmp_path / f"{n}.gz") for n, seed in enumerate((5, 5, 6))
    )
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
    plain = generate(2_000, 5).write(tmp_path / "plain.txt")
    assert gzip.decompress(first.read_bytes()) == plain.read_bytes()


@pytest.mark.parametrize("rows", [1, 2, 17, 60_000])
def test_same_number_of_rows_as_asked_for_in_order_of_time(rows: int) -> None:
    stream = generate(rows, seed=2)
    assert {len(column) for column in (stream.source, stream.target, stream.time, stream.kind)} == {rows}
    assert (np.diff(stream.time) >= 0).all()
    assert stream.time.min() >= FIRST_TIME
    assert stream.time.max() < FIRST_TIME + DAYS * 86_400
    assert min(stream.source.min(), stream.target.min()) >= 1
    assert set(stream.kind.tolist()) <= {0, 1, 2}


def test_real_streams_have_a_burst_a_rhythm_heavy_tails_and_all_kinds() -> None:
    stream = generate()
    by_day = np.bincount((stream.time - FIRST_TIME) // 86_400, minlength=DAYS)
    assert by_day.argmax() == 3
    assert by_day[3] > 5 * np.median(by_day)
    usual = stream.time[stream.time < FIRST_TIME + 3 * 86_400]
    by_hour = np.bincount(usual % 86_400 // HOUR_S, minlength=24)
    assert by_hour.max() > 3 * by_hour.min()
    mentioned = np.sort(np.bincount(stream.target))[::-1]
    assert mentioned[:10].sum() > 0.3 * len(stream.target), "few are spoken of by many"
    assert (mentioned == 1).sum() > 1_000, "and many by one"
    share = np.bincount(stream.kind) / len(stream.kind)
    assert share == pytest.approx([0.35, 0.58, 0.07], abs=0.03)
    assert 0 < (stream.source == stream.target).mean() < 0.03


def test_command_writes_a_file_or_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "made.txt"
    assert main(["--rows", "50", "--seed", "4", "--output", str(file)]) == 0
    assert main(["--rows", "50", "--seed", "4"]) == 0
    assert capsys.readouterr().out == file.read_text() == generate(50, 4).text()


def test_command_starts_without_pyspark_and_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    program = (
        "import sys, examples.mentions.mention_stream as stream\n"
        "stream.generate(10)\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
    command = [sys.executable, "examples/mentions/mention_stream.py"]
    refused = subprocess.run([*command, "--rows", "0"], cwd=ROOT, capture_output=True, text=True)
    assert (refused.returncode, "--rows is 1 or more, not 0" in refused.stderr) == (2, True)
    nowhere = subprocess.run([*command, "--output", "/nowhere/x"], cwd=ROOT, capture_output=True, text=True)
    assert (nowhere.returncode, nowhere.stderr) == (
        1,
        "/nowhere/x cannot be written: No such file or directory\n",
    )
