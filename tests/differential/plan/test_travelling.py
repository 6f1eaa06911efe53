"""travelling.py: functions by import name or as source.

law_*       what arrives does the same
refused_*   what cannot travel, and why; who may send code
"""

from __future__ import annotations

import ast
import datetime as dt
import enum
import linecache
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import cast

import msgpack
import pytest

from differential.errors import SchemaError
from differential.plan.functions import UserFunction
from differential.plan.travelling import FUNCTION_BYTES_MAX, packed_functions, unpacked_functions
from timely.errors import MisuseError

COUNTED = 0
FACTOR = 3
TABLE = {"a": [1, (2, None)], 3: b"x"}


def closed_over(o: object) -> Callable[[int], object]:
    return lambda x: (x, o)


def at_the_top(x: int) -> int:
    return x * FACTOR


Packed = list[list[list[object]]]
"""Functions, and sources."""


def packed(function: object) -> Packed:
    return cast("Packed", packed_functions([UserFunction.of(function)]))


def there_and_back(function: object) -> Callable[..., object]:
    sent = msgpack.unpackb(msgpack.packb(packed(function)), strict_map_key=False)
    (found,) = unpacked_functions(sent, is_trusted=True)
    assert found.digest == UserFunction.of(function).digest and callable(found.function)
    return found.function


def renamed() -> Callable[[int], int]:
    def step(x: int) -> int:
        return step(x) + 1

    first, step = step, lambda x: x * FACTOR
    return first


def made_here() -> dict[str, Callable[..., object]]:
    """Functions that cannot be imported."""
    one, scale = 1, (2, 3)

    def helper(x: int) -> int:
        return x + one

    def recursive(x: int) -> int:
        return 1 if x < 2 else x * recursive(x - 1)

    def with_defaults(x: int, by: int = one + 1, *, plus: int | None = FACTOR) -> int:
        """What it does."""
        return x * by + (plus or 0)

    by_another_name = lambda x: 1 if x < 2 else x * by_another_name(x - 1)  # noqa: E731

    def is_even(x: int) -> bool:
        return x == 0 or is_odd(x - 1)

    def is_odd(x: int) -> bool:
        return x != 0 and is_even(x - 1)

    def on_several_lines(
        x: int,
    ) -> object:
        text = """
        kept as it is
"""
        return (text, x)

    def with_imports(x: int) -> object:
        import math as m

        return m.floor(x / 2), math.isqrt(x)

    return {
        "lambda": lambda x: x + one,
        "lambda over lines": (
            lambda x: (
                x,
                scale,
            )
        ),
        "helper": lambda x: helper(x) + len(TABLE),
        "at the top": lambda x: at_the_top(x),
        "recursive": recursive,
        "recursive lambda": by_another_name,
        "one another": is_even,
        "uses another of its name": renamed(),
        "defaults": with_defaults,
        "several lines": on_several_lines,
        "imports": with_imports,
        "nested": lambda x: sorted((y + one for y in range(x)), key=lambda z: -z),
        "table": lambda x: TABLE,
        "bare": lambda x, *rest, k=4, **more: (x, rest, k, more),
    }  # fmt: skip


@pytest.mark.parametrize("name", made_here())
def test_law_what_arrives_does_the_same(name: str) -> None:
    function = made_here()[name]
    again = there_and_back(function)
    assert [again(x) for x in range(1, 9)] == [function(x) for x in range(1, 9)]


@pytest.mark.parametrize(
    "value",
    [
        {1, 2.5, "a", b"a"},
        frozenset({(1, 2), None}),
        dt.date(2024, 2, 29),
        dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.timedelta(0),
        dt.timedelta(days=-1, microseconds=1),
        Decimal("-1.50"),
        [{"a": (dt.date.min, Decimal("NaN"))}],
    ],
)
def test_law_plain_values_arrive_as_they_are(value: object) -> None:
    arrived = cast("tuple[object, object]", there_and_back(closed_over(value))(1))[1]
    assert type(arrived) is type(value) and repr(arrived) == repr(value) or arrived == value


@pytest.mark.parametrize("name", made_here())
def test_law_what_has_arrived_travels_on_as_it_came(name: str) -> None:
    """A plan that was read is written again: no file has the source that its functions were made of."""
    once = packed(made_here()[name])
    (read,) = unpacked_functions(once, is_trusted=True)
    twice = packed_functions([read])
    assert msgpack.packb(twice) == msgpack.packb(once)


def test_law_a_set_has_one_form() -> None:
    one, other = (packed(closed_over(set(values))) for values in ((8, 16, 0), (16, 0, 8)))
    assert one[1][0][-1] == other[1][0][-1]


def test_law_what_can_be_imported_travels_by_name() -> None:
    (function,), sources = packed(math.isqrt)
    assert function[-1] == ["import", "math:isqrt"] and not sources
    assert there_and_back(math.isqrt)(17) == 4


def test_law_a_traceback_names_the_line_that_was_written() -> None:
    function = lambda x: 1 // x  # noqa: E731
    with pytest.raises(ZeroDivisionError) as caught:
        there_and_back(function)(0)
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == (__file__, function.__code__.co_firstlineno)


def test_law_modules_within_modules_come_along() -> None:
    import xml.etree.ElementTree

    function = lambda x: xml.etree.ElementTree.fromstring(f"<a{x}/>").tag  # noqa: E731
    _, (source,) = packed(function)
    names = cast("list[object]", source[-1])
    assert ["xml", ["module", "xml", "xml.etree", "xml.etree.ElementTree"]] in names
    assert there_and_back(function)(1) == "a1"


def test_law_imports_of_names_within_a_function_travel() -> None:
    def root(x: int) -> float:
        from math import sqrt

        return sqrt(x)

    assert there_and_back(root)(16) == 4.0


x = object()
"""Called like a column."""


def test_law_a_global_that_is_called_like_an_attribute_does_no_harm() -> None:
    assert there_and_back(lambda row: row.real)(3) == 3
    _, (source,) = packed(lambda row: row.x)
    assert source[-1] == []


def over(one: Callable[[int], int], other: Callable[[int], int]) -> Callable[[int], int]:
    return lambda x: (one if x % 2 else other)(x // 2) + 1


def test_law_what_many_use_is_sent_once() -> None:
    """Written out, thirty layers of a function that uses the one below twice would be 2^30 functions."""
    ladder = over(at_the_top, at_the_top)
    for _ in range(29):
        ladder = over(ladder, ladder)
    _, sources = packed(ladder)
    assert len(sources) == 30 and len(cast("bytes", msgpack.packb(sources))) < 30 * 300
    assert [there_and_back(ladder)(x) for x in range(9)] == [ladder(x) for x in range(9)]


def test_law_functions_of_one_plan_share_what_they_use() -> None:
    scale = 7
    shared = lambda x: x * scale  # noqa: E731
    functions = [UserFunction.of(lambda x: shared(x) + 1), UserFunction.of(lambda x: shared(x) + 2)]
    sent = cast("Packed", packed_functions(functions))
    assert len(sent[1]) == 3
    one, two = unpacked_functions(sent, is_trusted=True)
    assert callable(one.function) and callable(two.function) and (one.function(1), two.function(1)) == (8, 9)


class Colour(enum.IntEnum):
    RED = 1


def keeping() -> Callable[[int], int]:
    n = 0

    def count(x: int) -> int:
        nonlocal n
        n += x
        return n

    return count


def keeping_within() -> Callable[[int], int]:
    n = 0

    def count(x: int) -> int:
        def add() -> None:
            nonlocal n
            n += x

        add()
        return n

    return count


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (closed_over(Colour.RED), "Colour"),
        (closed_over(2**70), "64 bits"),
        (closed_over(dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))), "datetime"),
        (keeping(), r"keeps something from call to call \(n\)"),
        (keeping_within(), r"keeps something from call to call \(n\)"),
    ],
    ids=["enum", "large", "zone", "nonlocal", "nonlocal within"],
)
def test_refused_is_what_would_be_another_one_there(function: object, why: str) -> None:
    with pytest.raises(MisuseError, match=why):
        packed(function)


def test_refused_is_what_has_no_text() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise KeyError("text")

    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    for thing, why in [
        (Silent(), "a Silent whose __repr__ raised KeyError"),
        (deep, "a list whose __repr__ raised RecursionError is nested more than 16 deep"),
        ("\ud800", r"'\\ud800' is no text that can be sent"),
        (10**5_000, "a number of 16,610 bits is beyond 64 bits"),
    ]:
        with pytest.raises(MisuseError, match=why):
            packed(closed_over(thing))


def test_refused_a_function_that_counts_in_its_module() -> None:
    def counts(x: int) -> int:
        def again() -> int:
            global COUNTED  # noqa: PLW0603  # that it does is the point
            COUNTED += x
            return COUNTED

        return again()

    with pytest.raises(MisuseError, match=r"keeps something from call to call \(COUNTED\)"):
        packed(counts)


def test_refused_a_name_of_the_module_that_something_around_it_has_too() -> None:
    def around(COUNTED: int) -> Callable[[int], tuple[int, int]]:
        def both(x: int) -> tuple[int, int]:
            def of_the_module() -> int:
                global COUNTED  # noqa: PLW0602  # or it would be the one around it
                return COUNTED

            return COUNTED + x, of_the_module()

        return both

    assert around(7)(1) == (8, COUNTED)
    with pytest.raises(MisuseError, match="means two things by 'COUNTED'"):
        packed(around(7))


def test_refused_private_names_of_a_class_that_the_source_does_not_say() -> None:
    class Prices:
        @staticmethod
        def function() -> Callable[[int], int]:
            __rate = 3
            return lambda x: x * __rate

    assert Prices.function()(2) == 6
    with pytest.raises(
        MisuseError, match=r"uses '_Prices__rate', which has another name outside of its class"
    ):
        packed(Prices.function())


def test_law_what_is_new_at_every_call_may_be_changed_by_a_function_within() -> None:
    n = 3

    def summed(x: int) -> int:
        total = 0

        def add(y: int) -> None:
            nonlocal total
            total += y * n

        add(x)
        add(x)
        return total

    assert there_and_back(summed)(5) == 30


def test_refused_source_that_is_not_what_runs(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text("def make():\n    def f(x):\n        return x * 10\n    return f\n")
    space: dict[str, object] = {"__name__": "edited"}
    exec(compile(file.read_text(), str(file), "exec"), space)
    file.write_text(file.read_text().replace("10", "99"))
    with pytest.raises(MisuseError, match="the source of make.<locals>.f .* is not there"):
        packed(cast("Callable[[], object]", space["make"])())


class Unknown:
    def method(self, x: int) -> int:
        return x

    def __call__(self, x: int) -> int:
        return x


def decorated() -> object:
    def twice(function: Callable[[int], int]) -> Callable[[int], int]:
        def run(x: int) -> int:
            return function(function(x))

        return run

    @twice
    def inner(x: int) -> int:
        return x + 1

    return inner


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (Unknown(), "Unknown"),
        (Unknown().method, "method"),
        (partial(at_the_top, 1), "partial"),
        (closed_over(Unknown()), r"uses 'o': .*Unknown.*cannot be sent"),
        (eval("lambda x: x"), "source of <lambda> .*none of what comes by -c, exec or eval"),
    ],
    ids=["object", "method", "partial", "closed over", "no source"],
)  # fmt: skip
def test_refused_is_what_has_no_name_and_no_source(function: object, why: str) -> None:
    with pytest.raises(MisuseError, match=rf"(?s){why}.*[pP]ut .*in a module"):
        packed(function)


def test_law_what_a_decorator_made_travels_as_such() -> None:
    """`inner` is `run` now, whose source is there and undecorated; what it decorates is not."""
    with pytest.raises(MisuseError, match="inner.*is decorated"):
        packed(decorated())


def test_refused_source_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.plan.travelling.FUNCTION_BYTES_MAX", 10)
    with pytest.raises(MisuseError, match="longer than 10 bytes"):
        packed(made_here()["lambda"])
    assert FUNCTION_BYTES_MAX == 65_536


@pytest.mark.parametrize("name", ["lambda", "helper"])
def test_refused_code_of_a_stranger(name: str) -> None:
    with pytest.raises(MisuseError, match=r"started them.*mark its builder by @timely.builder"):
        unpacked_functions(packed(made_here()[name]), is_trusted=False)
    with pytest.raises(MisuseError, match="code that this cluster was not started with"):
        unpacked_functions(packed(math.isqrt), is_trusted=False)


def test_refused_a_function_that_is_another_one_here() -> None:
    ((name, digest, *rest),), sources = packed(at_the_top)
    assert cast("list[object]", rest[-1])[0] == "import", rest
    with pytest.raises(MisuseError, match="at_the_top is another function on this worker"):
        unpacked_functions([[[name, "0" * len(str(digest)), *rest]], sources], is_trusted=True)


@pytest.mark.parametrize(
    "form",
    [
        None, [], ["value"], ["value", [1]], ["import", "math"], ["import", 7], ["import", "a:b:c"],
        ["date", "2024"], ["date", 1], ["decimal", "x"], ["timedelta", "x=1"], ["timedelta", "days"], ["set"],
        ["module"], ["source"], ["source", 1], ["source", -1], ["source", False], ["source", "lambda x: x"],
        ["tuple", 3], ["dict", [[1]]], ["value", 3], ["list", [["value", 1]]],
    ],
    ids=repr,
)  # fmt: skip
def test_refused_bytes_that_are_no_function(form: object) -> None:
    sources = [["lambda x: x", True, "f", 1, []]]
    assert unpacked_functions([[["f", "00", True, None, ["source", 0]]], sources], is_trusted=True)
    with pytest.raises(SchemaError):
        unpacked_functions([[["f", "00", True, None, form]], sources], is_trusted=True)


@pytest.mark.parametrize(
    "source",
    [
        None, [], ["1 + 1", False, "f", 1, []], ["lambda x: (", True, "f", 1, []],
        ["import os", False, "f", 1, []], ["", False, "f", 1, []], ["lambda x: x", True, "f", 1, [["a"]]],
        ["lambda x: x", True, "f", 1, [[1, ["value", 1]]]],
        ["lambda x: x", True, "f", 1, [["a", ["source", 1]]]],
    ],
    ids=repr,
)  # fmt: skip
def test_refused_bytes_that_are_no_source(source: object) -> None:
    with pytest.raises(SchemaError):
        unpacked_functions([[], [source]], is_trusted=True)


def test_refused_nesting_has_an_end() -> None:
    form: list[object] = ["value", 1]
    for _ in range(100):
        form = ["list", [form]]
    with pytest.raises(SchemaError, match="nested too deep"):
        unpacked_functions([[["f", "00", True, None, form]], []], is_trusted=True)


def test_law_a_function_of_a_cell_travels_if_the_cell_imports_what_it_uses() -> None:
    """A notebook compiles each statement by itself: Python calls `math.sqrt` by other instructions then."""
    text, name = "import math\nf = lambda x: math.sqrt(x) + 1\n", "<cell with an import>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space: dict[str, object] = {"__name__": "__main__"}
    for statement in ast.parse(text).body:
        exec(compile(ast.Module([statement], []), name, "exec", dont_inherit=True), space)
    assert there_and_back(space["f"])(4) == 3.0
