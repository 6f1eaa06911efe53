"""How is a valid message made odd?

    bytes     bits flipped, cut, spliced with another message, numbers overwritten by extreme ones
    values    one value inside a msgpack or JSON text replaced by one that does not belong there
    texts     words left out, doubled, swapped, or put in from another text; then bytes
    frames    left out, doubled, swapped, emptied

All choices come from one `random.Random`, so that a seed, or Hypothesis, says what happens.
"""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable

import msgpack

__all__ = ["Frames", "Raw", "mutated", "packed"]

Frames = list[bytes]

_NUMBERS = (0, 1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1)
_ROUNDS_MAX = 4


class Raw(bytes):
    """Bytes that `packed` takes over as they are: what no encoder would write."""


def packed(value: object) -> bytes:
    """`value` as msgpack, by the plainest forms; a list of `Pair`s is a map whose keys may repeat."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, list | tuple):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    if isinstance(value, dict):
        entries = b"".join(packed(key) + packed(entry) for key, entry in value.items())
        return b"\xdf" + struct.pack(">I", len(value)) + entries
    plain: bytes = msgpack.packb(value)
    return plain


def _nested(levels: int) -> Raw:
    return Raw(b"\x91" * levels + b"\x00")


def _odd_value(choose: random.Random) -> object:
    """A value that belongs nowhere."""
    odd: list[object] = [
        None,
        True,
        -1,
        choose.choice(_NUMBERS),
        -choose.choice(_NUMBERS),
        Raw(b"\xcf" + b"\xff" * 8),
        float("nan"),
        float("inf"),
        -1e308,
        "",
        "x" * choose.choice([1, 300, 5_000]),
        b"\xff\xfe",
        Raw(b"\xa2\xff\xfe"),
        Raw(b"\xd9\x03a\x00\xc3"),
        [],
        {},
        [[], {}],
        Raw(b"\x81\x90\x01"),
        Raw(b"\x81\x80\x01"),
        Raw(b"\x82\xa1a\x01\xa1a\x02"),
        Raw(b"\xd4\x05\x00"),
        Raw(b"\xd6\xff\x00\x00\x00\x00"),
        Raw(b"\xc7\x03\xff\x00\x00\x00"),
        Raw(b"\xc1"),
        Raw(b"\xdd" + struct.pack(">I", choose.choice([2**16, 2**31, 2**32 - 1]))),
        Raw(b"\xdf" + struct.pack(">I", choose.choice([2**16, 2**31, 2**32 - 1]))),
        Raw(b"\xc6" + struct.pack(">I", choose.choice([2**16, 2**31, 2**32 - 1]))),
        _nested(choose.choice([3, 100, 500, 1_000, 1_022, 5_000])),
        Raw(b"\x81\xa1k" * choose.choice([3, 300, 600]) + b"\xc0"),
    ]
    return choose.choice(odd)


def _replaced(value: object, choose: random.Random, odd: Callable[[random.Random], object]) -> object:
    """`value` with one value in it, perhaps itself, replaced, left out or doubled."""
    if isinstance(value, list | tuple) and value and choose.random() < 0.85:
        entries = list(value)
        at = choose.randrange(len(entries))
        what = choose.random()
        if what < 0.1:
            del entries[at]
        elif what < 0.2:
            entries.insert(at, entries[at])
        else:
            entries[at] = _replaced(entries[at], choose, odd)
        return entries
    if isinstance(value, dict) and value and choose.random() < 0.85:
        key = choose.choice(list(value))
        what = choose.random()
        if what < 0.1:
            return {known: entry for known, entry in value.items() if known != key}
        if what < 0.2:
            return {**value, choose.choice(["", "epoch", "diff", "zz", 7, None]): value[key]}
        return {**value, key: _replaced(value[key], choose, odd)}
    return odd(choose)


def _other_value(frame: bytes, choose: random.Random) -> bytes:
    try:
        value: object = msgpack.unpackb(frame, strict_map_key=False)
        return packed(_replaced(value, choose, _odd_value))
    except Exception:  # not msgpack, or nested too deeply to be written again: bytes will do
        return _other_bytes(frame, choose)


def _odd_json(choose: random.Random) -> object:
    odd: list[object] = [None, True, -1, 2**70, 1e308, float("nan"), "", "\udcff", [], {}, [[]], {"a": [{}]}]
    return choose.choice(odd)


def _other_json(frame: bytes, choose: random.Random) -> bytes:
    try:
        value: object = json.loads(frame)
    except (ValueError, RecursionError):
        return _other_bytes(frame, choose)
    if choose.random() < 0.05:
        return b"[" * choose.choice([10, 100_000])
    return json.dumps(_replaced(value, choose, _odd_json)).encode()


def _other_bytes(frame: bytes, choose: random.Random) -> bytes:
    changed = bytearray(frame)
    for _ in range(choose.randint(1, _ROUNDS_MAX)):
        at = choose.randrange(len(changed) + 1)
        what = choose.randrange(7)
        if what == 0 and at < len(changed):
            changed[at] ^= 1 << choose.randrange(8)
        elif what == 1:
            del changed[at:]
        elif what == 2:
            changed[at:at] = bytes(choose.randrange(256) for _ in range(choose.choice([1, 1, 2, 8])))
        elif what == 3:
            del changed[at : at + choose.choice([1, 1, 2, 8, 64])]
        elif what == 4:
            changed[at:at] = changed[at : at + choose.choice([1, 8, 64])]
        elif what == 5:
            form = choose.choice(["<q", ">q", "<i", ">i", "<h", "b"])
            top = (1 << 8 * struct.calcsize(form) - 1) - 1
            number = choose.choice([-1, -top, top, min(top, choose.choice(_NUMBERS))])
            changed[at : at + struct.calcsize(form)] = struct.pack(form, number)
        elif at < len(changed):
            changed[at] = choose.choice([0, 1, 0x7F, 0x80, 0xC1, 0xFF])
    return bytes(changed)


_WORDS = re.compile(r"\w+|'[^']*'|\s+|.", re.DOTALL)
_ODD_WORDS = (
    "'", '"', "`", "(", ")", ",", ";", ":", "::", ".", "*", "?", "/*", "--", "$$", "{", "[", "]", "\\", "\0",
    "null", "select", "from", "where", "order by", "limit", "over", "union all", "with", "as", "on", "using",
    "lateral", "distinct", "all", "any", "exists", "in", "interval", "array", "unnest", "1e400", "0.1", "''",
    "9223372036854775808", "-",
)  # fmt: skip


def _other_text(frame: bytes, other: bytes, choose: random.Random) -> bytes:
    words = _WORDS.findall(frame.decode(errors="replace"))
    theirs = _WORDS.findall(other.decode(errors="replace")) or [" "]
    for _ in range(choose.randint(1, _ROUNDS_MAX)):
        at, to = choose.randrange(len(words) + 1), choose.randrange(len(words) + 1)
        what = choose.randrange(6)
        if what == 0:
            del words[at : at + choose.choice([1, 1, 3])]
        elif what == 1:
            words[at:at] = words[at : at + choose.choice([1, 3, 9])]
        elif what == 2 and max(at, to) < len(words):
            words[at], words[to] = words[to], words[at]
        elif what == 3:
            start = choose.randrange(len(theirs))
            words[at:at] = [" ", *theirs[start : start + choose.choice([1, 2, 9])], " "]
        elif what == 4:
            words[at : at + choose.randrange(2)] = [" ", choose.choice(_ODD_WORDS), " "]
        else:
            words[at : at + 1] = [choose.choice(theirs)]
    return "".join(words).encode()


def _spliced(frame: bytes, other: bytes, choose: random.Random) -> bytes:
    return frame[: choose.randrange(len(frame) + 1)] + other[choose.randrange(len(other) + 1) :]


def _other_frames(frames: Frames, choose: random.Random) -> Frames:
    changed = list(frames)
    at = choose.randrange(len(changed)) if changed else 0
    what = choose.randrange(5)
    if what == 0:
        del changed[at : at + 1]
    elif what == 1:
        changed[at:at] = changed[at : at + 1]
    elif what == 2:
        choose.shuffle(changed)
    elif what == 3:
        changed[at : at + 1] = [b""]
    else:
        changed.append(bytes(choose.randrange(256) for _ in range(choose.choice([0, 1, 40]))))
    return changed


def mutated(frames: Frames, other: Frames, choose: random.Random, form: str) -> Frames:
    """`frames`, a valid message, made odd; `other` is a second one to splice with. `form` of the first frame:
    msgpack, json, text or bytes.
    """
    if form == "text" and frames and choose.random() < 0.9:
        return [_other_text(frames[0], other[0] if other else b"", choose)]
    if not frames or choose.random() < 0.08:
        return _other_frames(frames, choose)
    changed = list(frames)
    at = choose.randrange(len(changed))
    what = choose.random()
    if form == "json":
        changed[at] = _other_json(changed[at], choose) if what < 0.7 else _other_bytes(changed[at], choose)
    elif form == "msgpack" and what < 0.6:
        changed[at] = _other_value(changed[at], choose)
    elif what < 0.85 or not other:
        changed[at] = _other_bytes(changed[at], choose)
    else:
        changed[at] = _spliced(changed[at], choose.choice(other), choose)
    return changed
