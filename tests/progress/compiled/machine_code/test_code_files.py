"""What is kept is found as it was, or not at all."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.compiled.machine_code import code_files
from progress.compiled.machine_code.code_files import (
    Code,
    build,
    content_of,
    file_name,
    instructions_of,
    keep,
    keep_bytes,
    keep_list,
    look_up,
    look_up_bytes,
    look_up_list,
    name_of,
    stamp_of,
)
from progress.compiled.machine_code.image import Image

STAMP = stamp_of("a", "b")
FILE = file_name("module.step", "machine", STAMP)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("NAIAD_CACHE", str(tmp_path))
    return tmp_path / "kernels"


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


@pytest.mark.usefixtures("cache")
def test_what_is_kept_is_found_and_kinds_of_arrays_are_numpy_s_own() -> None:
    """Machine code compares these by identity, and other ones that are equal exist."""
    keep(FILE, STAMP, code([0, 24]))
    assert same(look_up(FILE, STAMP), code([0, 24]))
    assert look_up("other", STAMP) is None


def test_code_of_another_stamp_is_not_found_whatever_the_file_is_called(cache: Path) -> None:
    keep(FILE, STAMP, code([0]))
    other = STAMP[:24] + stamp_of("c")[24:]
    assert file_name("module.step", "machine", other) == FILE
    assert look_up(FILE, other) is None
    keep(FILE, other, code([8]))
    assert same(look_up(FILE, other), code([8]))
    assert look_up(FILE, STAMP) is None
    assert [each.name for each in cache.iterdir() if each.name != "swept"] == [FILE]


@pytest.mark.usefixtures("cache")
def test_other_bytes_and_lists_are_kept_beside_the_code_that_is_called() -> None:
    keep(FILE, STAMP, code([0]))
    keep_bytes("module.step.object", STAMP, b"of a large\nkernel")
    keep_list("list", [FILE, "module.step.object"])
    keep_list("empty", [])
    assert look_up_bytes("module.step.object", STAMP) == b"of a large\nkernel"
    assert same(look_up(FILE, STAMP), code([0]))
    assert look_up_bytes("other", STAMP) is None
    assert look_up_list("list") == [FILE, "module.step.object"]
    assert look_up_list("empty") == []
    assert look_up_list("other") is None


@given(at=st.integers(0, 10_000), how=st.sampled_from(["cut", "flip", "grow"]))
def test_what_is_damaged_is_as_none(tmp_path_factory: pytest.TempPathFactory, at: int, how: str) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAIAD_CACHE", str(folder))
        keep(FILE, STAMP, code([0]))
        keep_bytes("object", STAMP, bytes(64))
        keep_list("list", ["one", "two"])
        for path in (folder / "kernels" / name for name in (FILE, "object", "list")):
            data = bytearray(path.read_bytes())
            place = at % len(data)
            if how == "flip":
                data[place] ^= 1 << place % 8
            path.write_bytes({"cut": data[:place], "flip": data, "grow": data + b"x"}[how])
        assert look_up(FILE, STAMP) is None
        assert look_up_bytes("object", STAMP) is None
        assert look_up_list("list") is None


def test_a_stamp_tells_apart_where_one_text_ends() -> None:
    assert len({stamp_of("a", "b"), stamp_of("ab"), stamp_of("a", "b", ""), stamp_of("", "ab")}) == 4


def test_a_kernel_s_files_are_named_after_where_it_is() -> None:
    assert name_of(code) == f"{__name__}.code"
    assert file_name("name", "part", STAMP) == f"name-{STAMP[:24]}.part"


def made(source: str) -> FunctionType:
    """The function `made` of a source."""
    names: dict[str, FunctionType] = {}
    exec(compile(source, "somewhere", "exec"), names)
    return names["made"]


@pytest.mark.parametrize(
    "other",
    [
        "def made(x):\n    return x + 2",
        "def made(x):\n    return x - 1",
        "def made(x, y):\n    return x + 1",
        "def made(x):\n    return x + 1.0",
        "def made(x):\n    return x + True",
        "def made(x):\n    return int(x) + 1",
    ],
)
def test_instructions_are_others_by_what_a_function_does_alone(other: str) -> None:
    first = "def made(x):\n    return x + 1"
    said = repr(instructions_of(made(first).__code__))
    assert repr(instructions_of(made(other).__code__)) != said
    assert repr(instructions_of(made("\n\n# Why.\n" + first).__code__)) == said


def test_sets_of_constants_are_said_in_one_order() -> None:
    """Python puts them in another one in each process."""
    sets = [
        f"def made(x):\n    return x in {{{', '.join(words)}}}" for words in (["'a'", "'b'"], ["'b'", "'a'"])
    ]
    one, other = (repr(instructions_of(made(source).__code__)) for source in sets)
    assert one == other


def test_what_a_function_calls_is_part_of_what_it_does() -> None:
    plain = "STEP = 1\ndef helper(x):\n    return x + STEP\n"
    plain += "def made(x):\n    def inner():\n        return helper(x)\n    return inner"
    assert content_of(made(plain)) == content_of(made("\n" + plain))
    for change in (("STEP = 1", "STEP = 2"), ("x + STEP", "x - STEP")):
        assert content_of(made(plain)) != content_of(made(plain.replace(*change)))
    of_itself = "def made(x):\n    return made(x)"
    assert content_of(made(of_itself)) == content_of(made(of_itself))


def test_build_is_another_one_by_each_file_that_has_a_part_in_the_code() -> None:
    """Those that only run it, or say where it is, have none."""
    files = {path.stem for path in Path(code_files.__file__).parent.glob("*.py")}
    assert files - set(code_files._MAKERS) == {"__init__", "code_files", "memory", "room"}


@pytest.mark.parametrize("name", code_files._MAKERS)
def test_build_is_another_one_when_one_of_these_files_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, digest = build.__wrapped__(), code_files._digest_of_module
    monkeypatch.setattr(code_files, "_digest_of_module", lambda each: digest(each) + "x" * (each == name))
    assert build.__wrapped__() != plain


def test_build_is_another_one_by_what_changes_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that Spark hosts are told a number of threads, their driver is not: both use the same files."""
    plain = build.__wrapped__()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert build.__wrapped__() == plain
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert build.__wrapped__() != plain
