"""Linking objects, against what LLVM itself makes of the same code."""

from __future__ import annotations

import contextlib
import ctypes
import struct

import numpy as np
import pytest

from progress.compiled.machine_code.image import Image, UnknownCodeError, link


def compiled(text: str) -> bytes:
    """The object of a module, as numba has it made."""
    from llvmlite import binding
    from numba.core.registry import cpu_target

    module = binding.parse_assembly(text)
    module.verify()
    data: bytes = cpu_target.target_context.codegen()._tm.emit_object(module)
    return data


CALLER = """
@word = external global i64
@table = internal constant [2 x i64*] [i64* @word, i64* getelementptr (i64, i64* @word, i64 3)]
@slot = common global i64 0
declare i64 @callee(i64)
declare i64 @elsewhere(i64)
define i64 @entry(i64 %x) {
  %a = call i64 @callee(i64 %x)
  %b = call i64 @elsewhere(i64 %a)
  %p = getelementptr [2 x i64*], [2 x i64*]* @table, i64 0, i64 %b
  %q = load i64*, i64** %p
  %s = load i64, i64* @slot
  %v = load i64, i64* %q
  %w = add i64 %v, %s
  ret i64 %w
}
"""
CALLEE = "define linkonce_odr i64 @callee(i64 %x) { %y = mul i64 %x, 3\n ret i64 %y }"


def test_what_one_object_has_another_refers_to_within_the_image() -> None:
    image = link([compiled(CALLER), compiled(CALLEE)], "entry")
    assert set(image.there) == {"word", "elsewhere"}
    plus = [int(np.frombuffer(image.code, np.int64, 1, place)[0]) for place in image.there["word"]]
    assert sorted(plus) == [0, 24]
    assert len(image.here) >= 3, "the callee, the table, the slot"
    for place in image.here:
        assert 0 <= np.frombuffer(image.code, np.int64, 1, place)[0] < len(image.code)


def test_an_image_runs_as_what_it_was_made_of() -> None:
    image = link([compiled(CALLER), compiled(CALLEE)], "entry")
    words = (ctypes.c_int64 * 4)(10, 20, 30, 40)
    elsewhere = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x - 6)
    at = {"word": ctypes.addressof(words), "elsewhere": ctypes.cast(elsewhere, ctypes.c_void_p).value or 0}
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(_in_memory(image, at))
    assert [entry(2), entry(2)] == [10, 10]
    at_seven = [entry(x) for x in (2,)]
    assert at_seven == [10]


_held: list[object] = []


def _in_memory(image: Image, names: dict[str, int]) -> int:
    """The slow twin of `function_of`: word for word."""
    import mmap

    memory = mmap.mmap(-1, len(image.code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    _held.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    code = bytearray(image.code)
    for places, address in [(image.here, start), *((image.there[name], names[name]) for name in image.there)]:
        for place in places.tolist():
            word = int.from_bytes(code[place : place + 8], "little", signed=True) + address
            code[place : place + 8] = word.to_bytes(8, "little")
    memory[:] = bytes(code)
    return start + image.entry


def test_what_is_in_no_object_cannot_be_entered() -> None:
    with pytest.raises(UnknownCodeError, match="no object defines 'other'"):
        link([compiled(CALLEE)], "other")


def test_an_object_of_another_machine_is_refused() -> None:
    data = bytearray(compiled(CALLEE))
    data[18] = 183  # 64-bit ARM
    with pytest.raises(UnknownCodeError, match="machine 183"):
        link([bytes(data)], "callee")


def test_a_reference_that_is_no_whole_word_is_refused() -> None:
    """As of code that must lie within 2 GiB of what it calls. Its kind is a number in the object."""
    data, whole = compiled(CALLER), (1).to_bytes(4, "little")
    said = set()
    for at in range(len(data) - 4):
        if data[at : at + 4] == whole:
            changed = data[:at] + (2).to_bytes(4, "little") + data[at + 4 :]
            with contextlib.suppress(struct.error, ValueError, IndexError, KeyError, OverflowError):
                try:
                    link([changed, compiled(CALLEE)], "entry")
                except UnknownCodeError as error:
                    said.add(str(error))
    assert "a reference of kind 2" in said
