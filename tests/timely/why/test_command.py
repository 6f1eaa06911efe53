"""The command line. What it says of workers: `tests/processes/clients/test_stuck.py`."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import timely
from timely.client.remote import asking
from timely.why import __main__ as main
from timely.why.command import run_command


def test_where_nothing_listens_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asking, "REASONS_SECONDS_MAX", 0.2)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(timely.PeerError, match=r"has not answered within 0\.2 s"):
            list(run_command([address]))
        assert main.main([address]) == 1
    assert "timely.why: worker 0 at" in capsys.readouterr().err


def test_an_address_and_keys_are_checked(tmp_path: Path) -> None:
    with pytest.raises(timely.MisuseError, match="no address of a worker"):
        list(run_command(["nowhere"]))
    with pytest.raises(timely.MisuseError):
        list(run_command(["127.0.0.1:7401", "--keys", str(tmp_path)]))
    with pytest.raises(SystemExit):
        list(run_command([]))
