"""loads: is a load beside another checkout told, of one process and of several? No figure is looked at."""

from __future__ import annotations

import pytest

from bench.dataflow import loads
from bench.dataflow.loads import told
from bench.machine import ROOT


def test_ratios_are_of_neighbours() -> None:
    ours = [{"peak_mib": peak, "processor_s": 1.0, "elapsed_s": 2.0} for peak in (1.0, 6.0, 3.0)]
    theirs = [{"peak_mib": peak, "processor_s": 2.0, "elapsed_s": 1.0} for peak in (2.0, 4.0, 3.0)]
    assert told(ours, theirs) == [
        "peak_mib: 1.00 (0.50-1.50), 3.00 / 3.00",
        "processor_s: 0.50 (0.50-0.50), 1.00 / 2.00",
        "elapsed_s: 2.00 (2.00-2.00), 2.00 / 1.00",
    ]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_checkout_beside_itself(workers: str, capfd: pytest.CaptureFixture[str]) -> None:
    loads.main(["count", "50", "2000", "--rounds", "1", "--workers", workers, "--against", str(ROOT)])
    first, *lines = capfd.readouterr().out.splitlines()
    assert first == f"count 50 2000 --workers {workers}, 1 rounds"
    assert [line.split(":")[0] for line in lines] == ["peak_mib", "processor_s", "elapsed_s"]
