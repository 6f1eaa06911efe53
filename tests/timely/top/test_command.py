"""The command line asks a running cluster, and shows what it says."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from dataflows import word_count
from house import ROOT

import timely
from timely.top import __main__ as main
from timely.top.command import run_command


def test_it_shows_what_runs_and_a_program_reads_the_same() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(word_count)
        flow.input("lines").insert(["a b a"])
        flow.seal(wait=True)
        (address, _) = cluster.addresses
        text, data = io.StringIO(), io.StringIO()
        run_command([address, "--once", "--every", "0.1"], text)
        run_command([address, "--every", "0.1", "--json"], data)
        shown = json.loads(data.getvalue())
        processes = [worker["process"] for worker in cluster.stats()]
        check_in_a_terminal(address)
    assert "word_count" in text.getvalue() and "dataflows.py:" in text.getvalue()
    assert [worker["process"] for worker in shown["workers"]] == processes
    (dataflow,) = shown["dataflows"]
    assert (dataflow["epoch"], dataflow["complete_before"], dataflow["behind_epochs"]) == (1, 1, 0)
    assert [stage["stage"] for stage in shown["stages"]] == list(range(len(shown["stages"])))


def check_in_a_terminal(address: str) -> None:
    """It draws until q is pressed, and sorts by the key that was pressed before."""
    ours, theirs = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "timely.top", address, "--every", "0.1"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = bytearray()
    keys = [(b"stages by busy", b"k"), (b"stages by kept", b"q")]
    killer = threading.Timer(60, program.kill)  # else a test that hangs would
    killer.start()
    try:
        while keys:
            seen += os.read(ours, 65536)
            if keys[0][0] in seen:
                os.write(ours, keys.pop(0)[1])
        while True:
            os.read(ours, 65536)
    except OSError:
        pass  # the terminal has no other end any more
    finally:
        killer.cancel()
        os.close(ours)
    assert program.wait(60) == 0 and not keys


def test_where_nothing_listens_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        assert main.main([f"127.0.0.1:{held.getsockname()[1]}", "--once"]) == 1
    assert capsys.readouterr().err.startswith("timely.top: ")


def test_an_address_and_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(timely.MisuseError):
        run_command(["127.0.0.1:7401", "--keys", str(tmp_path)], io.StringIO())
    for wrong in ([], ["127.0.0.1:7401", "--every", "0"], ["127.0.0.1:7401", "--sort", "colour"]):
        with pytest.raises(SystemExit):
            run_command(wrong, io.StringIO())
