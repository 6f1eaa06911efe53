"""Reading a file of timed interactions into a DataFrame.

The form: one interaction a line, `source target unix_seconds [kind]`, separated by spaces or tabs, which may
also stand around it; empty lines and lines that begin with `#` are passed over; plain text, or gzip if the
name ends in `.gz`. Lines end in LF, CR LF or CR, the last one perhaps in nothing; a byte order mark in front
of the first is no part of it. Ids and times are whole numbers from 0 to 2^63 - 1, in the digits 0 to 9; zeros
or a plus may stand in front. A kind has no blanks and no control characters. The lines may be in any order.

Spark parses, because it is quick and splits large files; but Spark does not know line numbers. So the good
case costs one count of malformed lines. Only if there are any, this module reads the file again, by
`parse_line`, the plain twin of the expressions, to find the line and what is wrong with it.

Spark's conversion to a number is not enough of a check: it ignores control characters at both ends. So each
line must match `_LINE`, and the conversion only finds numbers that are too large.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from timely.counted import counted
from timely.spark.errors import InputFormatError, first_line
from timely.spark.lost import java_watched

__all__ = ["Interactions", "checked_file", "line_of_time", "parse_line", "read_interactions"]

_FORM = "source target unix_seconds [kind]"
_IDS_AND_TIME = ("source", "target", "time")
_BLANKS = " \t\r"
_LINE = r"\A\+?[0-9]+([ \t]+\+?[0-9]+){2}([ \t]+[^\x00-\x20\x7f]+)?\z"
"""A well-formed line, as Java writes it; a plain `$` would overlook a line separator at the end."""
_INT64_MAX = 2**63 - 1
_GZIP_MAGIC = b"\x1f\x8b"
_SHOWN_CHARACTERS = 80
_SHOWN_KINDS = 20


@dataclass(frozen=True)
class Interactions:
    """The interactions of one file, as a DataFrame, with facts about them.

    `rows` has the columns source, target and time (bigint, seconds) of the chosen kind, `times` the times of
    all kinds; both are cached. `first_time` and `last_time` are those of the whole file, whatever its kind;
    `count` is the number of `rows`, `total` the number of interactions in the file.
    """

    path: Path
    kind: str | None
    rows: DataFrame
    times: DataFrame
    first_time: int
    last_time: int
    count: int
    total: int


@java_watched()
def read_interactions(spark: SparkSession, path: str | Path, kind: str | None = None) -> Interactions:
    """Read `path` (on this machine), keep the interactions of `kind` (all if None), and check every line.

    Raises `InputFormatError` for a file that is missing, empty, damaged or not of this form, and for a kind
    that does not occur.
    """
    file = checked_file(Path(path))
    # Spark answers equal plans from its cache: without the stamp, also for a file that was mended meanwhile.
    stamp = f"{file.stat().st_mtime_ns} {file.stat().st_size}"
    parsed = _parsed(spark.read.text(_as_literal(file)).where(F.lit(stamp) != F.lit(""))).persist()
    bad = ~F.col("well_formed") | F.isnull("source") | F.isnull("target") | F.isnull("time")
    chosen = F.lit(True) if kind is None else F.coalesce(F.col("kind") == kind, F.lit(False))
    try:
        facts = parsed.agg(
            F.count("*"), F.count_if(bad), F.min("time"), F.max("time"), F.count_if(chosen)
        ).collect()[0]
        total, malformed, first_time, last_time, count = facts
        if malformed:
            raise _first_malformed_line(file, malformed)
        if total == 0:
            raise InputFormatError(
                f"{file} holds no interactions: it has only comments and empty lines.\n{_expected()}"
            )
        if count == 0:
            raise _unknown_kind(file, kind, parsed)
    except InputFormatError:
        parsed.unpersist()
        raise
    except Exception as error:  # PySpark's own, or one of the JVM that PySpark passes on as it is
        parsed.unpersist()
        raise _why_unreadable(file, error) from error
    rows = parsed.where(chosen).select("source", "target", "time")
    return Interactions(file, kind, rows, parsed.select("time"), first_time, last_time, count, total)


def _parsed(text: DataFrame) -> DataFrame:
    """Every line that is neither empty nor a comment: source, target, time (null where too large), kind,
    well_formed.

    Splitting at a single space is four times cheaper than splitting at a pattern, and nearly all lines allow
    it.
    """
    line = F.col("line")
    has_other_blanks = line.contains("\t") | line.contains("  ")
    fields = F.when(has_other_blanks, F.split(line, "[ \\t]+")).otherwise(F.split(line, " "))
    return (
        text.select(F.btrim("value", F.lit(_BLANKS)).alias("line"))
        .where("line <> '' AND NOT startswith(line, '#')")
        .select(fields.alias("field"), F.rlike("line", F.lit(_LINE)).alias("well_formed"))
        .select(
            *(
                F.get("field", F.lit(at)).try_cast("bigint").alias(name)
                for at, name in enumerate(_IDS_AND_TIME)
            ),
            F.get("field", F.lit(3)).alias("kind"),
            "well_formed",
        )
    )


def parse_line(line: str) -> tuple[int, int, int, str | None] | None:
    """One line as (source, target, unix seconds, kind), or None if it is empty or a comment.

    Raises `ValueError` with what is wrong with it.
    """
    text = line.strip(_BLANKS + "\n")
    if not text or text.startswith("#"):
        return None
    control = re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text)
    if control:
        raise ValueError(f"it has the control character {ord(control[0]):#04x}")
    fields = re.split("[ \t]+", text)
    if not 3 <= len(fields) <= 4:
        raise ValueError(f"it has {counted(len(fields), 'field')}, not 3 or 4")
    source, target, time = (
        _whole_number(what, field) for what, field in zip(_IDS_AND_TIME, fields[:3], strict=True)
    )
    return source, target, time, fields[3] if len(fields) == 4 else None


def _whole_number(what: str, field: str) -> int:
    if re.fullmatch(r"-\d+", field, flags=re.ASCII):
        raise ValueError(f"the {what} {field} is negative")
    if not re.fullmatch(r"\+?\d+", field, flags=re.ASCII):
        raise ValueError(f"the {what} {field[:_SHOWN_CHARACTERS]!r} is not a whole number")
    if int(field) > _INT64_MAX:
        raise ValueError(f"the {what} {field[:_SHOWN_CHARACTERS]} is beyond {_INT64_MAX}")
    return int(field)


def checked_file(path: Path) -> Path:
    """The absolute path, if there is a readable file whose name tells whether it is compressed."""
    file = path.expanduser().absolute()
    if not file.exists():
        raise InputFormatError(
            f"there is no file {file}. Give the path of one file, not a pattern, with lines of the form "
            f"{_FORM}."
        )
    if not file.is_file():
        raise InputFormatError(
            f"{file} is not a file. Give the path of one file with lines of the form {_FORM}."
        )
    if file.name.startswith(("_", ".")) or file.name.endswith("._COPYING_"):
        raise InputFormatError(
            f"{file} has a name that Spark passes over: it takes names that begin with _ or . (or end in "
            "._COPYING_) for files in the making. Rename the file, or give a link to it with another name."
        )
    try:
        with file.open("rb") as stream:
            is_gzip = stream.read(2) == _GZIP_MAGIC
            is_empty = file.stat().st_size == 0
    except OSError as error:
        raise InputFormatError(f"{file} cannot be read: {error.strerror}.") from error
    if is_empty:
        raise InputFormatError(f"{file} is empty.\n{_expected()}")
    if is_gzip != (file.suffix == ".gz"):
        told = (
            "compressed with gzip, but its name does not end"
            if is_gzip
            else "not compressed with gzip, but its name ends"
        )
        raise InputFormatError(f"{file} is {told} in .gz. Rename it, so that the name says what it is.")
    return file


def _as_literal(file: Path) -> str:
    """The path, escaped so that Spark takes none of its characters for a pattern."""
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file))


def _lines(file: Path) -> Iterator[str]:
    with file.open("rb") as stored, gzip.open(stored) if file.suffix == ".gz" else stored as plain:
        yield from io.TextIOWrapper(plain, encoding="utf-8-sig", errors="replace")


def line_of_time(file: Path, since: int | None, until: int | None) -> tuple[int, str]:
    """Number and text of the first interaction not before `since` and not after `until` (None: any)."""
    for number, line in enumerate(_lines(file), 1):
        parsed = parse_line(line)
        if parsed and (since is None or parsed[2] >= since) and (until is None or parsed[2] <= until):
            return number, _shown(line)
    raise InputFormatError(f"{file} has changed while it was read. Start again when nobody writes to it.")


def _shown(line: str) -> str:
    """A line for a message: cut, and without characters that would move the cursor."""
    text = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line.rstrip("\r\n"))
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"


def _first_malformed_line(file: Path, malformed: int) -> InputFormatError:
    for number, line in enumerate(_lines(file), 1):
        try:
            parse_line(line)
        except ValueError as reason:
            more = "1 more after it is" if malformed == 2 else f"{malformed - 1:,} more after it are"
            others = f" {more} malformed too." if malformed > 1 else ""
            return InputFormatError(
                f"{file}, line {number}: {reason}.\n  {number} | {_shown(line)}\n{_expected()}\n"
                f"Mend the line, or begin it with # to leave it out.{others}"
            )
    return InputFormatError(f"{file}: Spark finds {counted(malformed, 'malformed line')}.\n{_expected()}")


def _expected() -> str:
    return f"Expected: {_FORM}, separated by spaces or tabs, whole numbers from 0 to {_INT64_MAX}."


def _why_unreadable(file: Path, error: Exception) -> InputFormatError:
    """The error that Python gets at the same file, if any; otherwise the first line of Spark's error."""
    number = 0
    try:
        for number, _ in enumerate(_lines(file), 1):  # noqa: B007  the last good line is part of the message
            pass
    except (OSError, EOFError, zlib.error) as reason:
        return InputFormatError(
            f"{file} is damaged after line {number}: {reason}. Fetch or make the file again."
        )
    return InputFormatError(f"{file} cannot be read by Spark: {first_line(error)}")


def _unknown_kind(file: Path, kind: str | None, parsed: DataFrame) -> InputFormatError:
    found = [row[0] for row in parsed.select("kind").distinct().limit(_SHOWN_KINDS).collect()]
    kinds = (
        ", ".join(sorted(name for name in found if name is not None)) or "none: its lines have three fields"
    )
    return InputFormatError(f"{file} has no interaction of kind {kind!r}. Kinds in it: {kinds}.")
