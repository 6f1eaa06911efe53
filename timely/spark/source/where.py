"""The option `where`, in a part of SQL: `.option("where", "day >= DATE '2026-01-01' AND n IN (1, 2)")`.

PySpark passes the filters of a query to a Python data source in a way that cannot be used (see
`docs/spark.md`); a condition in an option holds for every use of the DataFrame. The language is a small part
of SQL: conditions on one column each, joined by AND, which the workers evaluate before they send a row.

    =  ==  <>  !=  <=>  <  <=  >  >=       column, operator, value
    [NOT] IN (…)   BETWEEN … AND …   IS [NOT] NULL
    [NOT] LIKE 'text%'                     % at either end or at both, and no other sign of a pattern
    column, NOT column                     of booleans

Values are numbers, 'texts', TRUE, FALSE, DATE '2026-01-31' and TIMESTAMP '2026-01-31 12:00:00'; times of
columns with a zone are written with one (Z, +02:00). A condition means the same as in Spark, or is refused:
so a number has to be one that the column can hold. To Spark a number with an exponent is a float, and makes
it compare all values as floats: such a number is accepted only if no two values of the column are the same
float.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Final

import pyarrow as pa

from timely.errors import MisuseError

__all__ = ["Conditions", "conditions"]

Conditions = list[list[object]]
"""Conditions as workers take them: [column, what, value], see `operators/outputs/conditions.py`."""

_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<text>'(?:[^'\\]|'')*')
             | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
             | (?P<name>`(?:[^`]|``)+`|[^\W\d]\w*)
             | (?P<sign><=>|<=|>=|<>|!=|==|[=<>(),]) )""",
    re.VERBOSE,
)
_SIGNS: Final = {
    "=": "=",
    "==": "=",
    "<>": "not =",
    "!=": "not =",
    **{sign: sign for sign in ("<=>", "<", "<=", ">", ">=")},
}
_WORDS: Final = frozenset(["and", "or", "not", "in", "between", "is", "null", "like", "true", "false"])
"""Words that name a column only in backquotes. `date` needs none: no condition begins with a value."""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT: Final = re.compile(
    _DAY.pattern + r"(?:[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_DIGITS_MAX: Final = 38
"""The largest number of digits of a number without an exponent, as in Spark."""
_FLOAT_DIGITS: Final = 15
"""Different decimals of at most this many digits are different floats."""
_FLOAT_WHOLES: Final = 1 << 53
"""Different whole numbers below it are different floats."""
_EXACT: Final = Context(prec=4 * _DIGITS_MAX)
_EPOCH_BEGAN: Final = dt.datetime(1970, 1, 1)
_INT64: Final = range(-(1 << 63), 1 << 63)


def conditions(text: str, schema: pa.Schema) -> Conditions:
    """Return the conditions of `text` on rows with the columns `schema`.

    Raises `MisuseError`, which says where reading stops, if the text is malformed or does not fit the
    columns.
    """
    return _Reading(text, schema).all()


def _is_short(number: Decimal) -> bool:
    """Return True if it has no more digits than Spark's decimals, zeros at both ends included."""
    _, digits, exponent = number.as_tuple()
    return isinstance(exponent, int) and max(len(digits), -exponent, len(digits) + exponent) <= _DIGITS_MAX


class _Reading:
    """One pass over the words of a text."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._words: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._refused(f"{text[at:].strip()[:20]!r} cannot be read")
            self._words.append((str(match.lastgroup), str(match[str(match.lastgroup)])))
            at = match.end()
        self._at = 0

    def all(self) -> Conditions:
        """Return all conditions, to the end of the text."""
        read = self._one()
        while self._at < len(self._words):
            if not self._take("and"):
                raise self._refused(f"{self._here()} stands where AND is expected")
            read += self._one()
        return read

    def _one(self) -> Conditions:
        if self._take("not"):
            return [[self._column(pa.types.is_boolean).name, "=", False]]
        field = self._column()
        if self._take("is"):
            word = "set" if self._take("not") else "null"
            self._expect("null")
            return [[field.name, word, None]]
        is_not = "not " if self._take("not") else ""
        if self._take("in"):
            return [[field.name, is_not + "in", self._list(field)]]
        if self._take("between"):
            if is_not:
                raise self._refused("NOT BETWEEN is two ranges")
            low = self._value(field)
            self._expect("and")
            return [[field.name, ">=", low], [field.name, "<=", self._value(field)]]
        if self._take("like"):
            return [[field.name, is_not + word, part] for word, part in self._pattern(field, is_not)]
        if not is_not and self._at < len(self._words) and self._words[self._at][1] in _SIGNS:
            what = _SIGNS[self._next()[1]]
            return [[field.name, what, self._value(field)]]
        if not is_not and pa.types.is_boolean(field.type):
            return [[field.name, "=", True]]
        raise self._refused(f"{self._here()} stands where a comparison of {field.name!r} is expected")

    def _column(
        self, fits: Callable[[pa.DataType], bool] = lambda kind: not pa.types.is_nested(kind)
    ) -> pa.Field:
        kind, word = self._next()
        if kind != "name" or word.lower() in _WORDS:
            raise self._refused(f"{word!r} stands where a column is expected")
        name = word[1:-1].replace("``", "`") if word.startswith("`") else word
        same = [name] if name in self._schema.names else []
        same = same or [each for each in self._schema.names if each.lower() == name.lower()]
        if len(same) != 1:
            raise self._refused(f"there is no column {name!r}; there are {', '.join(self._schema.names)}")
        field = self._schema.field(same[0])
        if not fits(field.type):
            raise self._refused(f"the column {field.name!r} is {field.type}, which has no such condition")
        return field

    def _list(self, field: pa.Field) -> list[object]:
        self._expect("(")
        values = [self._value(field)]
        while self._take(","):
            values.append(self._value(field))
        self._expect(")")
        return values

    def _pattern(self, field: pa.Field, is_not: str) -> list[tuple[str, str]]:
        """Return a pattern of LIKE as conditions that all have to hold."""
        kind, word = self._next()
        if kind != "text" or not pa.types.is_string(field.type):
            raise self._refused(
                f"LIKE compares a column of texts with a text, not {field.name!r} with {word}"
            )
        pattern = word[1:-1].replace("''", "'")
        inner = pattern.strip("%")
        if "%" in inner or "_" in inner:
            raise self._refused(f"LIKE takes % at either end or both, and no _, not {word}")
        begins, ends = pattern.startswith("%"), pattern.endswith("%")
        if begins and ends:
            return [("holds", inner)]
        return [("ends" if begins else "begins" if ends else "=", inner)]

    def _value(self, field: pa.Field) -> object:
        kind, word = self._next()
        if kind == "name" and word.lower() in ("date", "timestamp") and self._at < len(self._words):
            kind, text = self._next()
            if kind == "text":
                return self._moment(field, word.lower(), text[1:-1])
            word = f"{word} {text}"
        elif kind == "number" and (number := self._number(field, word)) is not None:
            return number
        elif kind == "text" and pa.types.is_string(field.type):
            return word[1:-1].replace("''", "'")
        elif word.lower() in ("true", "false") and pa.types.is_boolean(field.type):
            return word.lower() == "true"
        raise self._refused(f"{word} is no value of the column {field.name!r}, which is {field.type}")

    def _number(self, field: pa.Field, word: str) -> object:
        """Return the number as a value of the column; None if the column cannot have it."""
        number, is_float = Decimal(word), "e" in word.lower()
        if pa.types.is_floating(field.type):
            value = float(number)
            return value if math.isfinite(value) and (is_float or _is_short(number)) else None
        if not _is_short(number):
            return None
        if pa.types.is_integer(field.type):
            whole = int(number) if number == number.to_integral_value() else _INT64.stop
            return whole if whole in _INT64 and not (is_float and abs(whole) >= _FLOAT_WHOLES) else None
        if pa.types.is_decimal(field.type):
            precision, scale = field.type.precision, field.type.scale
            scaled = number.scaleb(scale, _EXACT)
            is_there = scaled == scaled.to_integral_value(context=_EXACT) and abs(scaled) < 10**precision
            if is_there and not (is_float and precision > _FLOAT_DIGITS):
                return format(number.quantize(Decimal(1).scaleb(-scale), context=_EXACT), "f")
        return None

    def _moment(self, field: pa.Field, word: str, text: str) -> int:
        """Return the days of a date, or the microseconds of a time, since 1970."""
        try:
            if not (_DAY if word == "date" else _MOMENT).fullmatch(text):
                raise ValueError("write 2026-01-31, and for a time 2026-01-31 12:00:00")
            if word == "date" and pa.types.is_date(field.type):
                return (dt.date.fromisoformat(text) - _EPOCH_BEGAN.date()).days
            if word == "timestamp" and pa.types.is_timestamp(field.type):
                time = dt.datetime.fromisoformat(text)
                if (time.tzinfo is None) == (field.type.tz is None):
                    time = time if time.tzinfo is None else time.astimezone(dt.UTC).replace(tzinfo=None)
                    return (time - _EPOCH_BEGAN) // dt.timedelta(microseconds=1)
                zone = "a zone (Z, +02:00)" if time.tzinfo is None else "no zone"
                raise self._refused(f"{text!r} is compared with {field.name!r}, so it needs {zone}")
        except (ValueError, OverflowError) as error:
            raise self._refused(f"{text!r} is no {word}: {error}") from error
        raise self._refused(f"{word.upper()} {text!r} is no value of {field.name!r}, which is {field.type}")

    def _take(self, word: str) -> bool:
        """Skip the next word if it is this one; return True if it is."""
        if self._at < len(self._words) and self._words[self._at][1].lower() == word:
            self._at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._refused(f"{self._here()} stands where {word.upper()} is expected")

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._words):
            raise self._refused("it ends too early")
        self._at += 1
        return self._words[self._at - 1]

    def _here(self) -> str:
        return repr(self._words[self._at][1]) if self._at < len(self._words) else "the end"

    def _refused(self, why: str) -> MisuseError:
        return MisuseError(
            f"the option 'where', {self._text!r:.200}: {why}. It takes comparisons of a column with a "
            "value, IN, BETWEEN, LIKE and IS NULL, joined by AND; for all else write df.where(…)"
        )
