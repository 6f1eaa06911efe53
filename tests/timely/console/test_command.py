"""The command serves a running cluster, says when that ends, and finds it again."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from dataflows import word_count
from house import ROOT
from pages import Events, Visitor, until

import timely
from timely.console import __main__ as main
from timely.console.command import run_command


def test_it_serves_a_cluster_until_an_interrupt_and_says_who_stands_still_and_what_ends_it() -> None:
    with timely.connect(workers=2, silence_seconds=60) as cluster:
        flow = cluster.install(word_count)
        flow.input("lines").insert(["a b a"])
        flow.seal(wait=True)
        # Where this process ignores the signal, as one in the background does, its child would, too.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        program = subprocess.Popen(
            [sys.executable, "-m", "timely.console", cluster.addresses[0], "--listen", "127.0.0.1:0"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        signal.signal(signal.SIGINT, before)
        try:
            assert program.stdout is not None
            visitor = Visitor(program.stdout.readline().strip())
            with visitor.events() as events:
                events.first("frame", lambda each: each.get("flows"))
                check_ends(cluster, events)
                check_stopped(cluster, events)
                process = cluster.stats()[1]["process"]
                assert isinstance(process, int)
                os.kill(process, signal.SIGKILL)
                lost = events.first("status", lambda each: each["state"] == "lost")
                assert "connects again" in str(lost["again"])
            assert visitor.get("/why?dataflow=0").status == 409
            program.send_signal(signal.SIGINT)
            told, errors = program.communicate(timeout=60)
            assert (program.returncode, told, errors) == (0, "", "")
        finally:
            program.kill()
            program.communicate()
        with pytest.raises(timely.PeerError):
            cluster.stats()


def check_ends(cluster: timely.Cluster, events: Events) -> None:
    """Dataflows that come, end by an error, and are uninstalled show as such."""
    failing = cluster.install("failing_flows:raises")
    other = cluster.install(word_count)
    events.first("shape", lambda each: str(other.index) in flows(each))
    failing.input("records").insert(["ValueError"])
    failing.seal()
    told = events.first("shape", lambda each: str(failing.index) not in flows(each) and each["ended"])
    (end,) = told["ended"]  # type: ignore[misc]
    assert end["kind"] == "error" and "cannot bear 'ValueError'" in end["message"]
    other.uninstall()
    told = events.first("shape", lambda each: len(each["ended"]) == 2)  # type: ignore[arg-type]
    assert told["ended"][1]["kind"] == "uninstalled"  # type: ignore[index]


def flows(shape: dict[str, object]) -> dict[str, object]:
    told = shape["flows"]
    assert isinstance(told, dict)
    return told


def check_stopped(cluster: timely.Cluster, events: Events) -> None:
    """A worker that is stopped is named, and forgotten when it goes on."""
    process = cluster.stats()[1]["process"]
    assert isinstance(process, int)
    os.kill(process, signal.SIGSTOP)
    try:
        late = events.first("status", lambda each: "it is stopped" in str(each.get("who")))
        assert "worker 1" in str(late["who"])
        assert late["state"] == "late"
    finally:
        os.kill(process, signal.SIGCONT)
    seen = len(events.all)
    until(lambda: ("status", {"state": "answers"}) in events.all[seen:])


def test_it_listens_to_this_machine_alone_unless_workers_have_keys() -> None:
    for host in ("0.0.0.0", "192.0.2.1", "example.org", "[::]"):
        with pytest.raises(timely.MisuseError, match="--keys"):
            run_command(["localhost:7401", "--listen", f"{host}:8080"], io.StringIO())


def test_where_nothing_listens_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        assert main.main([f"127.0.0.1:{held.getsockname()[1]}"]) == 1
    assert capsys.readouterr().err.startswith("timely.console: ")


def test_an_address_and_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(timely.MisuseError):
        run_command(["127.0.0.1:7401", "--keys", str(tmp_path)], io.StringIO())
    for wrong in (
        [],
        ["a:1", "--listen", "8080"],
        ["a:1", "--listen", "h:99999"],
        ["a:1", "--listen", "h:x"],
    ):
        with pytest.raises(SystemExit):
            run_command(wrong, io.StringIO())
