"""The command line: what timely users know, and messages for what they mistype."""

from __future__ import annotations

from pathlib import Path

import pytest

from timely import MisuseError
from timely.worker.options import parse_options, read_hosts
from timely.worker.settings import HostAddress


def test_without_anything_one_worker_on_this_machine() -> None:
    options = parse_options([])
    assert options.silence_seconds == 2.5 and parse_options(["--silence", "30"]).silence_seconds == 30.0
    assert (options.workers, options.this_host, options.client_port, options.is_json) == (1, 0, 7401, False)
    assert options.hosts == (HostAddress("localhost", 7301),)


def test_hosts_come_from_the_file_and_comments_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("# ours\nalpha\nbeta:9000   # the big one\n\n10.0.0.3\n")
    options = parse_options(
        ["-w", "2", "-n", "2", "-p", "1", "-h", str(file), "--base-port", "8000", "--insecure"]
    )
    assert options.hosts == (HostAddress("alpha", 8000), HostAddress("beta", 9000))


def test_addresses_of_ipv6_stand_in_brackets(tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("[fd00::1]\n[fd00::2]:9000\n")
    assert read_hosts(file, 2, 1, 8000) == [HostAddress("fd00::1", 8000), HostAddress("fd00::2", 9000)]
    file.write_text("fd00::1\n")
    with pytest.raises(MisuseError, match=r"hosts.txt:1: 'fd00::1' is no address: .* in brackets"):
        read_hosts(file, 1, 1, 8000)


@pytest.mark.parametrize("host", ["alpha", "127.0.0.2", "10.0.0.3", "[fd00::1]"])
def test_off_loopback_a_worker_wants_keys_or_to_be_told_that_it_is_open(
    tmp_path: Path, host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAIAD_KEYS", raising=False)
    file = tmp_path / "hosts.txt"
    file.write_text(host)
    with pytest.raises(SystemExit):
        parse_options(["-h", str(file)])
    told = capsys.readouterr().err
    assert "have no keys" in told and "timely.keys new KEYS" in told and "--insecure" in told
    assert parse_options(["-h", str(file), "--keys", "here"]).keys == Path("here")
    assert parse_options(["-h", str(file), "--insecure"]).is_insecure
    monkeypatch.setenv("NAIAD_KEYS", "there")
    assert parse_options(["-h", str(file)]).keys == Path("there")
    assert parse_options(["-h", str(file), "--insecure"]).keys is None, "what is said now counts"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_on_loopback_keys_are_not_asked_for(
    tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAIAD_KEYS", raising=False)
    file = tmp_path / "hosts.txt"
    file.write_text(host)
    assert parse_options(["-h", str(file)]).keys is None
    assert parse_options(["-h", str(file), "--keys", "here"]).keys == Path("here")


def test_without_a_file_all_hosts_are_this_machine_with_ports_apart() -> None:
    assert [host.port for host in read_hosts(None, 3, 4, 7000)] == [7000, 7004, 7008]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-w", "0"], "-w 0: a host has at least one worker"),
        (
            ["--silence", "1"],
            "--silence 1.0: a worker may be silent for 2.5 to 86,400 seconds",
        ),
        (["-n", "0"], "-n 0: a cluster has at least one host"),
        (["-n", "2", "-p", "2"], "-p 2: with -n 2 the index of a host is 0 to 1"),
        (["-h", "nowhere.txt"], "-h nowhere.txt: the host file cannot be read"),
        (["--keys", "here", "--insecure"], "--keys and --insecure contradict each other"),
        (["--progress", "later"], "invalid choice"),
        (["--client-port", "65535", "-w", "2"], "ports end at 65535"),
    ],
)
def test_what_is_wrong_is_said_with_the_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(arguments)
    assert caught.value.code == 2
    written = capsys.readouterr().err
    assert message in written and "usage: python -m timely.worker" in written


@pytest.mark.parametrize("line", ["alpha:0", "alpha:port", ":80", "alpha:70000"])
def test_a_wrong_line_of_the_host_file_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text(f"alpha\n{line}\n")
    with pytest.raises(MisuseError, match=r"hosts.txt:2: .* is not host or host:port"):
        read_hosts(file, 2, 1, 7000)


def test_a_host_file_that_is_too_short_is_named(tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("alpha\n")
    with pytest.raises(MisuseError, match="names 1 hosts, but -n says 2"):
        read_hosts(file, 2, 1, 7000)


def test_help_is_help_and_h_is_the_host_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(["--help"])
    assert caught.value.code == 0
    assert "host file: one host[:port] per line" in capsys.readouterr().out


def test_a_durable_cluster_has_a_folder_and_a_way_to_sync(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (parse_options([]).durable, parse_options([]).sync) == ("", "disk")
    options = parse_options(["--durable", "store"])
    assert (options.durable, options.sync) == (str(tmp_path / "store"), "disk"), "wherever workers run"
    assert parse_options(["--durable", "/store", "--sync", "system"]).sync == "system"
    for wrong in (["--sync", "disk"], ["--durable", "x", "--sync", "never"], ["--durable", ""]):
        with pytest.raises(SystemExit):
            parse_options(wrong)
    told = capsys.readouterr().err
    assert "--durable FOLDER keeps: give both" in told and "invalid choice: 'never'" in told
    assert "durable takes the folder of a store" in told
