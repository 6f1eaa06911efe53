"""Names outside of an image: found in numba's runtime, in Python and in C, or said to be unknown."""

from __future__ import annotations

import numpy as np
import pytest

from progress.compiled.machine_code.image import Image, UnknownCodeError
from progress.compiled.machine_code.memory import CONSTANT, function_of

NOTHING = np.empty(0, np.int64)
RETURNS_A_NEW_REFERENCE = (
    bytes.fromhex("48b8")
    + bytes(8)  # rax = a word, to which an address is added
    + bytes.fromhex("48ff00")  # one more refers to it
    + bytes.fromhex("c3")
)


def image(name: str) -> Image:
    """Code that returns the object at a name."""
    return Image(RETURNS_A_NEW_REFERENCE, 0, NOTHING, {name: np.array([2], np.int64)})


def other(*arguments: object, **names: object) -> object:
    """Is not called here."""
    raise AssertionError


@pytest.mark.parametrize(
    ("name", "found"), [("_Py_NoneStruct", None), ("PyExc_ValueError", ValueError), (CONSTANT + "1", "two")]
)
def test_objects_of_python_and_constants_are_named_by_where_they_are(name: str, found: object) -> None:
    called = function_of("named", image(name), ["one", "two"], other)
    assert called() is found and called(1, 2) is found
    assert called.__name__ == "named"  # type: ignore[attr-defined]


def test_a_name_that_nobody_has_is_unknown() -> None:
    with pytest.raises(UnknownCodeError, match="no 'naiad_never'"):
        function_of("named", image("naiad_never"), [], other)


def test_the_runtime_of_numba_c_and_mathematics_have_names() -> None:
    for name in ("NRT_Free", "numba_unpickle", "PyLong_FromLongLong", "memcpy", "log10"):
        function_of("named", image(name), [], other)


@pytest.mark.parametrize("apart", [0, 7])
def test_words_that_overlap_are_unknown(apart: int) -> None:
    there = {"log10": np.array([2], np.int64), "memcpy": np.array([2 + apart], np.int64)}
    with pytest.raises(UnknownCodeError, match="overlap"):
        function_of("named", Image(RETURNS_A_NEW_REFERENCE + bytes(8), 0, NOTHING, there), [], other)
