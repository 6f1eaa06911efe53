"""What has a job fed to its dataflow in a durable cluster? A file beside the outputs says so.

A job that is started again finds its dataflow with all rows. It goes on with it if the rows that it would
feed now are those that are there; otherwise it begins with a new dataflow. So before it sends epochs, it
writes down a digest of the rows of each.

    _fed.json   {"origin": of the dataflow, "facts": what else has to be the same, "epochs": {number: digest}}

`epochs` has those that were sent and may not be sealed yet, and the one before. Rows that were sent are in
the cluster, also if their epoch was not sealed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from timely.spark.epochs import DIGEST_MODULUS, RowsDigest
from timely.spark.errors import OutputError

__all__ = ["Fed", "joint_digest", "summed_digest"]

_FILE = "_fed.json"


@dataclass
class Fed:
    """The content of the file in `folder`; see above."""

    folder: Path
    origin: str = ""
    facts: str = ""
    epochs: dict[int, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Fed:
        """Return what the file says; nothing if it is missing, or cannot be read."""
        try:
            values = json.loads((folder / _FILE).read_bytes())
            epochs = {int(epoch): str(digest) for epoch, digest in values["epochs"].items()}
            return cls(folder, str(values["origin"]), str(values["facts"]), epochs)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(folder)

    def begin(self, origin: str, facts: str) -> None:
        """Note that a new dataflow was fed nothing yet."""
        self.origin, self.facts, self.epochs = origin, facts, {}
        self._write()

    def note(self, digests: Mapping[int, str]) -> None:
        """Note, before they are sent, which rows these epochs have."""
        if digests:
            first = min(digests)
            # Later ones may have been sent before, by a job that had more epochs in a chunk.
            self.epochs = {epoch: digest for epoch, digest in self.epochs.items() if epoch >= first - 1}
            self.epochs.update(digests)
            self._write()

    def fits(self, opened: int, digests: Mapping[int, str]) -> bool:
        """Return True if the dataflow, whose epoch `opened` is open, has the rows that `digests` say: up to
        the last sealed epoch, and of epochs that were sent, and not sealed.
        """
        sealed = [opened - 1] if opened else []
        sent = [epoch for epoch in self.epochs if epoch >= opened]
        return all(self.epochs.get(epoch, "") == digests.get(epoch) for epoch in (*sealed, *sent))

    def _write(self) -> None:
        """Replace the file. The bytes are on disk before the name, and the name before rows are sent."""
        values = {
            "origin": self.origin,
            "facts": self.facts,
            "epochs": {str(epoch): digest for epoch, digest in self.epochs.items()},
        }
        try:
            unfinished = self.folder / f"{_FILE}.unfinished"
            with unfinished.open("w") as file:
                json.dump(values, file)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.folder / _FILE)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise OutputError(
                f"{self.folder} cannot be written: {error.strerror}. What is committed there stays; make "
                "room, and start again"
            ) from None


def summed_digest(one: RowsDigest, other: RowsDigest) -> RowsDigest:
    """Return the digest of the rows of both."""
    return (one[0] + other[0]) % DIGEST_MODULUS, (one[1] + other[1]) % DIGEST_MODULUS


def joint_digest(digests: Mapping[str, RowsDigest]) -> str:
    """Return one digest of the rows of all inputs, by name."""
    return blake2b(json.dumps(sorted(digests.items())).encode(), digest_size=16).hexdigest()
