"""Machine code in a form that only has to be copied into memory, and how it is linked.

A compiler writes *objects*: pieces of code that refer to one another by name. An *image* is a sequence of
them, together with the work that is left once their address in memory is known: adding that address to some
of the image's words, and adding to others the addresses of symbols that lie elsewhere (functions of Python,
of numba's runtime, of C).

This module reads only what LLVM writes for a process's own memory on x86-64: ELF, in which every reference is
a whole word. So linking needs none of LLVM, which takes 40 MiB and a tenth of a second. Everything else
raises `UnknownCodeError`, and the caller leaves the calls to numba.
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
"""True if the objects of this machine are of the kind that this module reads."""

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
    """An object contains something that this module does not support; not a mistake of a user."""


class Image(NamedTuple):
    """Code and constants as they lie in memory.

    `code`: bytes; the words at `here` and `there` are still to be completed.
    `entry`: offset of the function to be called.
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
    """One object: its sections, its symbols, and their offsets in the image."""

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
        """Offsets in the image of the sections that are loaded into memory."""
        self.common: dict[str, int] = {}

    def _read(self, table: _Section) -> list[_Symbol]:
        names = self.sections[table.link].offset
        symbols = []
        for offset in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, info, _, section, value, size = _SYMBOL.unpack_from(self.data, offset)
            end = self.data.index(b"\0", names + name)
            text = self.data[names + name : end].decode()
            symbols.append(_Symbol(text, info >> 4 == _LOCAL, section, value, size))
        return symbols

    def lay(self, code: bytearray) -> None:
        """Append the sections that are loaded into memory, except tables for unwinding: no code throws."""
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
        """Return the symbol's offset in the image, or None if this object does not define it."""
        if symbol.section == _COMMON:
            return self.common[symbol.name]
        if symbol.section in self.at:
            return self.at[symbol.section] + symbol.value
        if symbol.section == _UNDEFINED:
            return None
        raise UnknownCodeError(f"'{symbol.name}' is in a section that does not come into memory")

    def references(self) -> list[tuple[int, _Symbol, int]]:
        """Return (offset in the image, symbol, addend) of each reference from a loaded section."""
        references = []
        for table in self.sections:
            if table.type != _REFERENCES or table.info not in self.at:
                continue
            begin = self.at[table.info]
            for offset in range(table.offset, table.offset + table.size, _REFERENCE.size):
                offset_in_section, info, plus = _REFERENCE.unpack_from(self.data, offset)
                if info & 0xFFFFFFFF != _WHOLE_WORD:
                    raise UnknownCodeError(f"a reference of kind {info & 0xFFFFFFFF}")
                references.append((begin + offset_in_section, self.symbols[info >> 32], plus))
        return references


def _align(code: bytearray, to: int) -> int:
    """Fill `code` up to a multiple of `to`; return its length."""
    code += bytes(-len(code) % max(to, 1))
    return len(code)


def link(objects: list[bytes], entry: str) -> Image:
    """Lay objects one behind the other, and resolve the references between them.

    Raises `UnknownCodeError` where that takes more than adding addresses to words.
    """
    assert objects, "an image of something"
    code = bytearray()
    laid = [_Object(data) for data in objects]
    for each in laid:
        each.lay(code)
    offsets = _offsets(laid)
    if entry not in offsets:
        raise UnknownCodeError(f"no object defines '{entry}'")
    here: list[int] = []
    there: dict[str, list[int]] = {}
    for each in laid:
        for at, symbol, plus in each.references():
            offset = each.find(symbol)
            if offset is None:
                offset = offsets.get(symbol.name)
            if offset is None:
                there.setdefault(symbol.name, []).append(at)
            else:
                here.append(at)
            struct.pack_into("<q", code, at, (offset or 0) + plus)
    words = {name: np.array(at, np.int64) for name, at in there.items()}
    return Image(bytes(code), offsets[entry], np.array(here, np.int64), words)


def _offsets(laid: list[_Object]) -> dict[str, int]:
    """Return the offsets in the image of symbols that other objects may refer to, the first of each name."""
    offsets: dict[str, int] = {}
    for each in laid:
        for symbol in each.symbols:
            if not symbol.is_local and symbol.section not in (_UNDEFINED, _ABSOLUTE):
                offset = each.find(symbol)
                if offset is not None:
                    offsets.setdefault(symbol.name, offset)
    return offsets
