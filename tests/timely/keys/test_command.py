"""`python -m timely.keys`: what its usage shows is what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from timely import MisuseError
from timely.keys import load_client, load_cluster
from timely.keys.command import run_command


def test_the_commands_of_the_usage_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (said,) = run_command(["new", "cluster-keys"])
    assert "it lets no client in yet" in said and run_command(["list", "cluster-keys"]) == []
    run_command(["client", "cluster-keys", "ada"])
    run_command(["client", "cluster-keys", "bob", "--to", "elsewhere"])
    ada, bob = load_client("ada-keys"), load_client("elsewhere")
    assert run_command(["list", "cluster-keys"]) == [f"ada {ada.pair.public}", f"bob {bob.pair.public}"]
    run_command(["revoke", "cluster-keys", "ada"])
    assert run_command(["list", "cluster-keys"]) == [f"bob {bob.pair.public}"]
    assert load_cluster("cluster-keys").pair.public == ada.cluster


def test_nothing_that_is_printed_is_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = run_command(["new", "k"]) + run_command(["client", "k", "ada"]) + run_command(["list", "k"])
    secrets = [load_cluster("k").pair.secret.reveal(), load_client("ada-keys").pair.secret.reveal()]
    assert not any(secret in line for secret in secrets for line in said)


def test_what_goes_wrong_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="'python -m timely.keys new' makes them"):
        run_command(["client", str(tmp_path / "nowhere"), "ada"])
    with pytest.raises(MisuseError, match=r"clients.txt cannot be read"):
        run_command(["revoke", str(tmp_path / "nowhere"), "ada"])


@pytest.mark.parametrize("line", [[], ["new"], ["client", "k"], ["revoke", "k"], ["forget", "k"]])
def test_a_wrong_line_shows_the_usage(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_command(line)
    assert caught.value.code == 2 and "usage: python -m timely.keys" in capsys.readouterr().err


def test_help_shows_the_way_from_keys_to_a_client(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_command(["--help"])
    told = capsys.readouterr().out
    assert "python -m timely.worker --keys cluster-keys" in told and 'keys="ada-keys"' in told
