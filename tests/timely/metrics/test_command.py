"""The command serves a running cluster; what comes with it asks for metrics that there are."""

from __future__ import annotations

import io
import json
import re
import socket
import urllib.request

import pytest
from dataflows import word_count
from prometheus_client.parser import text_string_to_metric_families

import timely
from timely.metrics import __main__ as main
from timely.metrics.command import ScrapedCluster, run_command, serve


def read(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
        return str(reply.read().decode())


def printed(what: str) -> str:
    out = io.StringIO()
    run_command(["--print", what], out)
    return out.getvalue()


def test_it_serves_a_running_cluster_and_says_when_that_has_ended() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(word_count)
        flow.input("lines").insert(["a b a"])
        flow.seal(wait=True)
        next(flow.output(flow.outputs[0]).follow())  # and this client reads
        asked = ScrapedCluster(cluster.addresses[0], None)
        server = serve(asked, "127.0.0.1", 0, stages=True)
        found = read(server.port)
        with pytest.raises(timely.MisuseError, match=rf"127\.0\.0\.1:{server.port} is taken"):
            serve(asked, "127.0.0.1", server.port)
        cluster.shutdown()
    try:
        assert "\nnaiad_up 1.0\n" in found
        assert len(re.findall(r"^naiad_worker_info\{", found, re.MULTILINE)) == 2
        assert re.search(
            r'^naiad_rows_total\{dataflow="[^"]*word_count",number="0",worker="0"\}', found, re.M
        )
        asked_for = {*re.findall(r"naiad_\w+", printed("board") + printed("alerts"))}
        given = {*re.findall(r"^naiad_\w+", found, re.MULTILINE)}
        assert len(asked_for) > 8 and asked_for <= given, "each query finds series"
        assert {family.name for family in text_string_to_metric_families(found)}, "Prometheus reads it"
    finally:
        server.close()
        asked.close()


def test_the_board_and_the_alerts_are_whole() -> None:
    board = json.loads(printed("board"))
    assert all(panel["targets"] and panel["title"] for panel in board["panels"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) > 8
    assert re.findall(r"alert: (\w+)", printed("alerts")) == [
        "NaiadDown", "NaiadLate", "NaiadMemoryGrows", "NaiadUneven",
    ]  # fmt: skip


def test_a_cluster_that_is_not_there_is_not_up() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        asked = ScrapedCluster(f"127.0.0.1:{held.getsockname()[1]}", None)
        server = serve(asked, "127.0.0.1", 0)
        try:
            assert "\nnaiad_up 0.0\n" in read(server.port)
        finally:
            server.close()


def test_the_line_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ([], ["localhost:7401", "--listen", "nowhere"], ["--print", "picture"]):
        with pytest.raises(SystemExit):
            run_command(wrong, io.StringIO())
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        assert main.main(["localhost:7401", "--listen", f"127.0.0.1:{held.getsockname()[1]}"]) == 1
    assert "is taken" in capsys.readouterr().err
