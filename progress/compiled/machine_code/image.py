"""What does machine code look like that only has to be copied into memory?

A compiler writes *objects*: pieces of code that refer to one another by name. An *image* is some of them,
laid one behind the other, and what is left to do once it is known where in memory they lie: adding that
address to some of its words, and adding to others the addresses of what lies elsewhere (functions of Python,
of numba's runtime, of C).

Only what LLVM writes for a process's own memory on x86-64 is read: ELF, in which every reference is a whole
word. So linking needs none of LLVM, which takes 40 MiB and a tenth of a second. Everything else is an
`UnknownCodeError`, and whoever wanted to link leaves calling to numba.
"""

from __future__ import annotations

import platform
import struct
import sys
from typing import Final, NamedTuple

import numpy as np

from ..arrays import Int64s

__all__ = ["IS_READABLE", "Image", "UnknownCodeError", "link"]

IS_READABLE: Final = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether the objects of this machine are of the kind that is read here."""

_HEADER: Final = struct.Struct("<4sBB10xHH4x8x8xQ4x2x2x2xHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_REFERENCE: Final = struct.Struct("<QQq")
_MACHINE: Final = 62
_RELOCATABLE: Final = 1
_PROGRAM, _SYMBOLS, _REFERENCES, _ZEROS = 1, 2, 4, 8
_IN_MEMORY: Final = 2
_WHOLE_WORD: Final = 1
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_LOCAL: Final = 0


class UnknownCodeError(Exception):
    """An object says something that is not known here; no error of a user's."""


class Image(NamedTuple):
    """Code and constants as they lie in memory.

    `code`: bytes; those in `here` and `there` are to be completed.
    `entry`: where in it the function is that is called.
    `here`: offsets of words to which the address of the image is added.
    `there`: for each name that lies elsewhere, offsets of words to which its address is added.
    """

    code: bytes
    entry: int
    here: Int64s
    there: dict[str, Int64s]


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    item: int


class _Symbol(NamedTuple):
    name: str
    is_local: bool
    section: int
    value: int
    size: int


class _Object:
    """One object: its sections, its symbols, and where in the image they are."""

    def __init__(self, data: bytes) -> None:
        magic, bits, order, kind, machine, sections, size, count, _ = _HEADER.unpack_from(data)
        if (magic, bits, order, kind, machine) != (b"\x7fELF", 2, 1, _RELOCATABLE, _MACHINE):
            raise UnknownCodeError(f"an object of kind {kind} for machine {machine}")
        assert size == _SECTION.size
        self.data = data
        self.sections = [_Section(*_SECTION.unpack_from(data, sections + size * at)) for at in range(count)]
        self.symbols = [
            symbol for each in self.sections if each.type == _SYMBOLS for symbol in self._read(each)
        ]
        self.at: dict[int, int] = {}
        """Where in the image the sections are that come into memory."""
        self.common: dict[str, int] = {}

    def _read(self, table: _Section) -> list[_Symbol]:
        names = self.sections[table.link].offset
        found = []
        for offset in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, info, _, section, value, size = _SYMBOL.unpack_from(self.data, offset)
            end = self.data.index(b"\0", names + name)
            text = self.data[names + name : end].decode()
            found.append(_Symbol(text, info >> 4 == _LOCAL, section, value, size))
        return found

    def lay(self, code: bytearray) -> None:
        """Append what comes into memory. What says how to unwind the stack does not: nobody throws."""
        for number, section in enumerate(self.sections):
            if section.flags & _IN_MEMORY and section.type in (_PROGRAM, _ZEROS):
                self.at[number] = _align(code, section.align)
                zeros = section.type == _ZEROS
                code += bytes(section.size) if zeros else self.data[section.offset :][: section.size]
        for symbol in self.symbols:
            if symbol.section == _COMMON:
                self.common[symbol.name] = _align(code, symbol.value)
                code += bytes(symbol.size)

    def find(self, symbol: _Symbol) -> int | None:
        """Where in the image it is, or None if this object has it not."""
        if symbol.section == _COMMON:
            return self.common[symbol.name]
        if symbol.section in self.at:
            return self.at[symbol.section] + symbol.value
        if symbol.section == _UNDEFINED:
            return None
        raise UnknownCodeError(f"'{symbol.name}' is in a section that does not come into memory")

    def references(self) -> list[tuple[int, _Symbol, int]]:
        """(where in the image, to what, plus what) of each reference from what comes into memory."""
        found = []
        for table in self.sections:
            if table.type != _REFERENCES or table.info not in self.at:
                continue
            begin = self.at[table.info]
            for offset in range(table.offset, table.offset + table.size, _REFERENCE.size):
                place, info, plus = _REFERENCE.unpack_from(self.data, offset)
                if info & 0xFFFFFFFF != _WHOLE_WORD:
                    raise UnknownCodeError(f"a reference of kind {info & 0xFFFFFFFF}")
                found.append((begin + place, self.symbols[info >> 32], plus))
        return found


def _align(code: bytearray, to: int) -> int:
    """The length of `code`, after filling it up to a multiple."""
    code += bytes(-len(code) % max(to, 1))
    return len(code)


def link(objects: list[bytes], entry: str) -> Image:
    """Lay objects one behind the other; what one has the others can refer to.

    Raises `UnknownCodeError` where that takes more than adding addresses to words.
    """
    assert objects, "an image of something"
    code = bytearray()
    laid = [_Object(data) for data in objects]
    for each in laid:
        each.lay(code)
    known = _known(laid)
    if entry not in known:
        raise UnknownCodeError(f"no object has '{entry}'")
    here: list[int] = []
    there: dict[str, list[int]] = {}
    for each in laid:
        for place, symbol, plus in each.references():
            found = each.find(symbol)
            if found is None:
                found = known.get(symbol.name)
            if found is None:
                there.setdefault(symbol.name, []).append(place)
            else:
                here.append(place)
            struct.pack_into("<q", code, place, (found or 0) + plus)
    words = {name: np.array(places, np.int64) for name, places in there.items()}
    return Image(bytes(code), known[entry], np.array(here, np.int64), words)


def _known(laid: list[_Object]) -> dict[str, int]:
    """Where in the image is what other objects may refer to. Of two under one name the first."""
    known: dict[str, int] = {}
    for each in laid:
        for symbol in each.symbols:
            if not symbol.is_local and symbol.section not in (_UNDEFINED, _ABSOLUTE):
                found = each.find(symbol)
                if found is not None:
                    known.setdefault(symbol.name, found)
    return known
