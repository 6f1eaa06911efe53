"""The list of clients: read anew when it changes, line by line, and never more generous than it says."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from timely.keys import ClusterKeys, new_client, new_cluster
from timely.limits import CLIENT_LIST_BYTES_MAX
from timely.wire.allowed import AllowList, read_list
from timely.wire.transport.curve import new_pair

CLUSTER = new_cluster()
ADA, BOB = new_pair().public, new_pair().public


def listed(path: Path) -> AllowList:
    return AllowList(ClusterKeys(CLUSTER.pair, list_file=str(path)))


def test_those_named_by_the_keys_are_let_in_and_the_cluster_itself() -> None:
    keys, client = new_client(CLUSTER, "driver")
    allowed = AllowList(keys)
    assert allowed.name_of(client.pair.public) == "driver"
    assert allowed.name_of(CLUSTER.pair.public) == "cluster"
    assert allowed.name_of(ADA) is None and allowed.name_of("") is None
    assert not allowed.look(), "there is no file that could change"


def test_a_list_that_changes_is_read_anew_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "clients.txt"
    path.write_text(f"# ours\nada {ADA}\n\n")
    allowed = listed(path)
    assert allowed.name_of(ADA) == "ada" and allowed.name_of(BOB) is None
    version = allowed.version
    assert not allowed.look() and allowed.version == version
    path.write_text(f"bob {BOB}\n")
    assert allowed.look() and allowed.version > version
    assert allowed.name_of(ADA) is None and allowed.name_of(BOB) == "bob"
    path.unlink()
    assert allowed.look() and allowed.name_of(BOB) is None, "no list, nobody"
    assert allowed.name_of(CLUSTER.pair.public) == "cluster", "workers are no matter of the list"


def test_a_line_that_is_none_takes_nothing_with_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "clients.txt"
    path.write_text(f"ada {ADA[:-1]}\nbob {BOB}\nbob {ADA}\nwords that are many\na/b {ADA}\n")
    with caplog.at_level(logging.WARNING, "timely"):
        allowed = listed(path)
    assert allowed.name_of(BOB) == "bob" and allowed.name_of(ADA) is None
    told = " ".join(record.getMessage() for record in caplog.records)
    assert [number for number in range(1, 6) if f"line {number} " in told] == [1, 3, 4, 5]


def test_a_list_without_end_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "clients.txt"
    path.write_bytes(f"ada {ADA}\n".encode() + b"#" * CLIENT_LIST_BYTES_MAX)
    found, problems = read_list(path)
    assert found == {} and "nobody is let in" in problems[0]


def test_a_list_that_cannot_be_read_holds_as_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "clients.txt"
    path.write_text(f"ada {ADA}\n")
    allowed = listed(path)
    path.unlink()
    path.mkdir()  # what is no file cannot be read, whoever asks
    with caplog.at_level(logging.WARNING, "timely"):
        assert not allowed.look()
    assert allowed.name_of(ADA) == "ada" and "holds as it was" in caplog.text


def test_a_list_that_cannot_be_looked_at_holds_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys" / "clients.txt"
    path.parent.mkdir()
    path.write_text(f"ada {ADA}\n")
    allowed = listed(path)
    path.parent.rename(tmp_path / "moved")
    path.parent.touch()  # where a folder was
    with caplog.at_level(logging.WARNING, "timely"):
        assert not allowed.look()
    assert allowed.name_of(ADA) == "ada" and "cannot be looked at" in caplog.text
