"""What is kept is found as it was, or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.machine_code import kept
from progress.machine_code.image import Image
from progress.machine_code.kept import Code, build, keep, keep_object, look_up, look_up_object, name_of

STAMP = ("a", "b")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A source file that is read with a cache of its own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    path = tmp_path / "package" / "kernels.py"
    path.parent.mkdir()
    path.write_text("")
    return str(path)


def code(words: list[int]) -> Code:
    """Some machine code."""
    image = Image(bytes(64), 8, np.array(words, np.int64), {"name": np.array([16], np.int64)})
    return Code("(int64,)", image, [np.ndarray, np.dtype(np.int64), int])


def same(one: Code | None, other: Code) -> bool:
    """Whether all of it is equal."""
    assert one is not None
    return (
        one.signature == other.signature
        and one.image.code == other.image.code
        and one.image.entry == other.image.entry
        and one.image.here.tolist() == other.image.here.tolist()
        and {name: at.tolist() for name, at in one.image.there.items()} == {"name": [16]}
        and all(a is b for a, b in zip(one.constants, other.constants, strict=True))
    )


def test_what_is_kept_is_found_and_kinds_of_arrays_are_numpy_s_own(source: str) -> None:
    """Machine code compares these by identity, and other ones that are equal exist."""
    keep(source, "step", STAMP, code([0, 24]))
    assert same(look_up(source, "step", STAMP), code([0, 24]))
    assert look_up(source, "other", STAMP) is None


def test_code_of_another_stamp_is_not_found_and_replaced(source: str) -> None:
    keep(source, "step", STAMP, code([0]))
    assert look_up(source, "step", ("a", "c")) is None
    keep(source, "step", ("a", "c"), code([8]))
    assert same(look_up(source, "step", ("a", "c")), code([8]))
    assert look_up(source, "step", STAMP) is None
    assert len(list((Path(source).parent / "__pycache__").iterdir())) == 1


def test_an_object_is_kept_beside_the_code_that_is_called(source: str) -> None:
    keep(source, "step", STAMP, code([0]))
    keep_object(source, "step", STAMP, b"of a large\nkernel")
    assert look_up_object(source, "step", STAMP) == b"of a large\nkernel"
    assert same(look_up(source, "step", STAMP), code([0]))
    assert look_up_object(source, "other", STAMP) is None


def test_an_object_of_another_stamp_is_not_found_and_replaced(source: str) -> None:
    """Of one that only begins as this one does, too."""
    keep_object(source, "step", STAMP, b"old")
    for other in (("a", "c"), ("a",), (*STAMP, "c")):
        assert look_up_object(source, "step", other) is None
    keep_object(source, "step", ("a",), b"new")
    assert look_up_object(source, "step", ("a",)) == b"new"
    assert look_up_object(source, "step", STAMP) is None


@given(at=st.integers(0, 10_000), how=st.sampled_from(["cut", "flip", "grow"]))
def test_what_is_damaged_is_as_none(tmp_path_factory: pytest.TempPathFactory, at: int, how: str) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    source = str(folder / "kernels.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(folder / "cache"))
        keep(source, "step", STAMP, code([0]))
        keep_object(source, "step", STAMP, bytes(64))
        paths = [path for path in (folder / "cache").rglob("step.*") if path.is_file()]
        assert len(paths) == 2
        for path in paths:
            data = bytearray(path.read_bytes())
            place = at % len(data)
            if how == "flip":
                data[place] ^= 1 << place % 8
            path.write_bytes({"cut": data[:place], "flip": data, "grow": data + b"x"}[how])
        assert look_up(source, "step", STAMP) is None
        assert look_up_object(source, "step", STAMP) is None


def test_the_user_s_cache_serves_where_the_package_cannot_be_written(source: str, tmp_path: Path) -> None:
    (Path(source).parent / "__pycache__").write_text("a file, which not even root can write into")
    keep(source, "step", STAMP, code([0]))
    assert same(look_up(source, "step", STAMP), code([0]))
    assert len(list((tmp_path / "home").rglob("*.machine"))) == 1


def test_files_of_one_name_in_two_folders_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    sources = [str(tmp_path / name / "rows" / "kernels.py") for name in ("one", "two")]
    for source, words in zip(sources, ([0], [8]), strict=True):
        keep(source, "step", STAMP, code(words))
    assert same(look_up(sources[0], "step", STAMP), code([0]))
    assert same(look_up(sources[1], "step", STAMP), code([8]))


def test_a_kernel_s_files_are_named_as_numba_names_its_own() -> None:
    line = code.__code__.co_firstlineno
    assert name_of(code) == f"test_kept.code-{line}"


def test_build_is_another_one_by_each_file_that_has_a_part_in_the_code() -> None:
    """Those that only run it, or say where it is, have none."""
    files = {path.name for path in Path(kept.__file__).parent.glob("*.py")}
    said = {part.split(" ")[0] for part in build()}
    assert files - said == {"__init__.py", "kept.py", "memory.py", "room.py"}


def test_build_is_another_one_by_what_changes_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that Spark hosts are told a number of threads, their driver is not: both use the same files."""
    plain = build.__wrapped__()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert build.__wrapped__() == plain
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert build.__wrapped__() == (*plain, "NUMBA_OPT=1")
