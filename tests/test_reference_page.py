"""docs/reference.md names what there is, all of it, as it is.

whole_*      every public name of the module, of collections, groups, orders and expressions, every type,
             operator and function is on the page, and nothing else is
written_*    each with the parameters that it has; what it costs, in words that the page explains
reader_*     the reader of the page finds what is wrong
"""

from __future__ import annotations

import inspect
import re
from typing import cast, get_args

import pytest
from house import ROOT, report
from reference_pages import differences, lines_of, names_in

import differential as dd
from differential import col
from differential.collections.grouping_sets import GroupedBySets
from differential.collections.in_order.ordered import Ordered
from differential.columns.column_types import Kind
from differential.expressions.expression import Expr
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.namespaces import ListMethods, NumberMethods, StringMethods
from differential.expressions.tree import BinaryOp
from timely.user_code.spellings import Same

PAGE = (ROOT / "docs" / "reference.md").read_text()
WRITTEN_AS = {
    "dd": dd,
    "c": dd.Collection,
    "g": dd.Grouped,
    "o": Ordered,
    "s": GroupedBySets,
    "x": Expr,
    "x.str": type(col.x.str),
    "x.dt": type(col.x.dt),
    "x.list": type(col.x.list),
}


LINES = lines_of(PAGE)
NAMES = [name for line in LINES for name in names_in(line, WRITTEN_AS)]


def public_of(owner: object) -> set[str]:
    """Names that users may write behind a dot."""
    if owner is dd:
        return set(dd.__all__)
    cls = cast(type, owner)
    own = cls.__mro__ if cls is not Expr else (Expr, NumberMethods)
    fields = set(getattr(cls, "__dataclass_fields__", ())) if cls is not Expr else set()
    names = fields.union(*(vars(each) for each in own), second_of(cls))
    return {name for name in names if not name.startswith("_")}


def second_of(owner: object) -> dict[str, Same]:
    """Second spellings of the methods of a class, which the page names, too."""
    table = getattr(owner, "_spellings", None)
    return {name: each for name, each in table.names.items() if isinstance(each, Same)} if table else {}


def attribute_of(owner: object, name: str) -> object:
    """What is called `name` there, by whatever spelling."""
    for part in second_of(owner).get(name, Same(name)).attribute.split("."):
        found = inspect.getattr_static(owner, part, None)
        accessors = {"str": StringMethods, "list": ListMethods, "schema": dd.Schema}
        owner = accessors.get(part, found) if isinstance(found, property) else found
    return owner


@pytest.mark.parametrize("prefix", WRITTEN_AS)
def test_whole_every_public_name_is_there_and_no_other(prefix: str) -> None:
    public = public_of(WRITTEN_AS[prefix])
    named = {name for of, name, _ in NAMES if of == prefix}
    report(f"docs/reference.md lacks {prefix}.{name}" for name in public - named)
    report(f"docs/reference.md has {prefix}.{name}, which does not exist" for name in named - public)


def test_whole_every_type_and_every_operator_is_there() -> None:
    spans = {span for line in LINES for span in re.findall(r"`([^`]+)`", line.cells[0])}
    kinds = {"decimal(p, s)" if kind == "decimal" else kind for kind in get_args(Kind)}
    report(f"the type {kind}" for kind in kinds - spans)
    operators = {f"x {op} y".replace("|", r"\|") for op in get_args(BinaryOp) if not op.isalnum()}
    report(f"the operator {written}" for written in operators - spans)


def test_whole_every_function_says_what_its_table_says() -> None:
    told = {
        (*line.cells[:3], *(cell.replace("`", "") for cell in line.cells[3:5]))
        for line in LINES
        if line.head == ("method", "function", "gives", "in PySpark", "in Polars")
    }
    for function in FUNCTIONS.values():
        form = re.compile(rf"`(x|dd)(\.{function.accessor})?\.{function.name}\(")
        said = [rest for method, name, *rest in told if form.match(method or name)]
        assert [function.says, function.spark, function.polars] in said, function.name


@pytest.mark.parametrize("prefix", WRITTEN_AS)
def test_written_with_the_parameters_that_it_has(prefix: str) -> None:
    for of, name, written in NAMES:
        if of != prefix:
            continue
        what = attribute_of(WRITTEN_AS[prefix], name)
        what = what.__func__ if isinstance(what, staticmethod) else what
        if written is not None:
            assert callable(what), f"{prefix}.{name} is not called"
            report(f"{prefix}.{name}: {found}" for found in differences(written, what))
        else:
            assert not inspect.isfunction(what), f"{prefix}.{name}: write its parameters"


def test_written_costs_are_in_words_that_the_page_explains() -> None:
    explained = {line.cells[0] for line in LINES if line.head[0] == "cost"}
    assert len(explained) > 5
    for line in LINES:
        if "cost" in line.head[1:]:
            cost = line.cells[line.head.index("cost")]
            words = set(re.findall(r"[a-z]+", cost.split(":")[0])) - {
                "or",
                "as",
                "step",
                "and",
                "the",
                "session",
                "sessions",
                "by",
            }
            assert words <= explained | {"aggregate"}, line


def test_written_every_family_says_where_to_read_more() -> None:
    for section in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)[1:]:
        if "\n| here " in section and "builders of operators" not in section:
            assert "](" in section, section.splitlines()[0]


def test_reader_sees_parameters_that_are_not_there() -> None:
    def function(a: int, b: int = 1, *, c: str = "x") -> None: ...

    assert differences('a, b=1, *, c="x"', function) == []
    assert differences("a, b=…, *, c=…", function) == []
    assert differences("a, c", function) == ["(a, c) is (a, b, c)"]
    assert differences('a, b=2, c="x"', function) == [
        "b is 1 if it is left out",
        "c is written behind *, or is not",
    ]


def test_reader_finds_names_in_the_cells_that_are_about_them() -> None:
    page = "| here | is |\n|---|---|\n| `c.a(x \\| y)`, `c.b` | `c.z` |\n"
    assert [list(names_in(line, ["c"])) for line in lines_of(page)] == [
        [("c", "a", r"x \| y"), ("c", "b", None)]
    ]
