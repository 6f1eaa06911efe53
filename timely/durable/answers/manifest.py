"""A stored answer: all that an output holds as of an epoch, the files in which it is, and why there is no
later one.

    answers/0-totals.000003.json                     the manifest of answer 3 of output `totals` of dataflow 0
    answers/0-totals.000003-epoch-12-a1b2c3d4/…      its files: Parquet, and nothing else

The file names are part-0000.parquet and so on; each has the epoch in its metadata, as `timely.epoch`.

The manifest comes last, by `put_new`, and files never change. So a reader that goes by the newest manifest
has a whole answer, and goes on reading that when another one is there.

An output that has no answer as of an epoch stores nothing new. Then there is a manifest that names the files
of the answer before, if there is one, and says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple
from zlib import crc32

from ...errors import StoreError
from ..records import FORMAT
from ..store import Store, store_errors

__all__ = [
    "ANSWER_FOLDER",
    "Answer",
    "AnswerFile",
    "answer_folder",
    "answer_numbers",
    "answers_by_place",
    "declare",
    "manifest_path",
    "newest_answer",
    "place_of",
    "read_answer",
    "stored_bytes",
    "write_answer",
]

ANSWER_FOLDER: Final = "answers"
_MANIFEST: Final = re.compile(r"(\d+-[A-Za-z0-9_-]+)\.(\d{6,})\.json")
_NAME_CHARS: Final = 40
_NOT_YET: Final = "nothing is stored yet: that happens with the next fold"


class AnswerFile(NamedTuple):
    """A file of an answer: its path in the store, size, CRC-32, and number of rows."""

    path: str
    size_bytes: int
    crc: int
    rows: int


@dataclass(frozen=True)
class Answer:
    """What is stored of an output.

    number       counts the manifests of the output
    key          the name under which the dataflow is installed
    epoch        the answer is as of this one; -1: there is none
    incarnation  the one that has computed it
    folder       its path in the store; "" if there is none
    stored_at    seconds since 1970
    why          why there is no answer as of the epoch `why_epoch`, which is a later one; "" if none was
                 missed
    """

    number: int
    dataflow: int
    key: str
    output: str
    epoch: int = -1
    incarnation: int = 0
    folder: str = ""
    files: tuple[AnswerFile, ...] = ()
    stored_at: float = 0.0
    why: str = ""
    why_epoch: int = -1

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.size_bytes for file in self.files)


def place_of(dataflow: int, output: str) -> str:
    """Return the beginning of the names of all that is stored of an output."""
    plain = re.sub("[^A-Za-z0-9_]", "_", output)[:_NAME_CHARS]
    # Outputs of one dataflow may have names that look alike here.
    return f"{dataflow}-{plain}" if plain == output else f"{dataflow}-{plain}-{crc32(output.encode()):08x}"


def manifest_path(place: str, number: int) -> str:
    """Return the path of a manifest."""
    return f"{ANSWER_FOLDER}/{place}.{number:06}.json"


def answer_folder(place: str, number: int, epoch: int, unique: str) -> str:
    """Return the folder of the files of an answer; `unique` tells folds apart that make the same one."""
    return f"{ANSWER_FOLDER}/{place}.{number:06}-epoch-{epoch}-{unique}"


def answer_numbers(store: Store) -> dict[str, list[int]]:
    """Return, by place, the numbers of all manifests, ascending."""
    numbers: dict[str, list[int]] = {}
    for name in store.list(ANSWER_FOLDER):
        if match := _MANIFEST.fullmatch(name):
            numbers.setdefault(match[1], []).append(int(match[2]))
    return {place: sorted(each) for place, each in numbers.items()}


def write_answer(store: Store, answer: Answer) -> bool:
    """Put the manifest of an answer, whose files are there; return False if there is one of its number."""
    values = asdict(answer)
    packed = json.dumps(values)
    text = json.dumps({"format": FORMAT, "crc": crc32(packed.encode()), "answer": values}, indent=1)
    return store.put_new(
        manifest_path(place_of(answer.dataflow, answer.output), answer.number), text.encode()
    )


def declare(store: Store, dataflow: int, key: str, output: str) -> None:
    """Note that an output is to be stored, so that readers find out that nothing is stored yet."""
    with store_errors(store):
        write_answer(store, Answer(0, dataflow, key, output, why=_NOT_YET))


def read_answer(store: Store, place: str, number: int) -> Answer:
    """Return a stored answer. Raise `StoreError` if its manifest is damaged."""
    path = manifest_path(place, number)
    data = store.read(path)
    try:
        whole = json.loads(b"" if data is None else bytes(data))
        if whole["format"] != FORMAT:
            raise StoreError(
                f"{store.name}/{path} has format {whole['format']}, and this release reads format {FORMAT}: "
                "read it with the release that wrote it"
            )
        values = whole["answer"]
        if crc32(json.dumps(values).encode()) != whole["crc"]:
            raise ValueError("its CRC is another one")
        files = tuple(AnswerFile(*file) for file in values.pop("files"))
        return Answer(**values, files=files)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{store.name}/{path} is damaged: {error}. Remove it: the answer before counts then, and the "
            "next fold stores another one"
        ) from error


def newest_answer(store: Store, place: str, numbers: Iterable[int]) -> Answer | None:
    """Return what is stored of an output by the newest of these manifests that can be read; None if none
    can.
    """
    for number in sorted(numbers, reverse=True):
        try:
            return read_answer(store, place, number)
        except StoreError:
            continue  # `verify` tells of it
    return None


def stored_bytes(store: Store) -> int:
    """Return the bytes of the newest answers of all outputs, as far as their manifests can be read."""
    newest = (newest_answer(store, place, numbers) for place, numbers in answer_numbers(store).items())
    return sum(answer.size_bytes for answer in newest if answer is not None)


def answers_by_place(store: Store) -> dict[str, Answer]:
    """Return what is stored of each output. Raise `StoreError` for damage."""
    return {place: read_answer(store, place, numbers[-1]) for place, numbers in answer_numbers(store).items()}
