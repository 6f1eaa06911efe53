"""Tables of foreign names: what works, what is answered, and with what."""

from __future__ import annotations

import pytest

from timely.user_code.spellings import Same, Spelled, Spellings, like

TABLE = Spellings(
    {"toUpper": Same("upper"), "shout": "upper() + '!'", "far": Same("inner.count")}, [(r"to_\w+", "a file")]
)


class Text(Spelled):
    """A thing with a table."""

    _spellings = TABLE

    def __init__(self) -> None:
        self.inner = [1, 1, 2]

    def upper(self) -> str:
        return "TEXT"

    def _missing(self, name: str) -> str:
        return TABLE.message(f"a text has no {name!r}", name, dir(type(self)))


def test_what_means_the_same_works_though_there_is_one_method() -> None:
    text = Text()
    assert text.toUpper() == "TEXT"  # type: ignore[attr-defined]
    assert text.far(1) == 2, "an attribute of an attribute"  # type: ignore[attr-defined]
    assert "toUpper" not in dir(text) and dir(text) == ["inner", "upper"]


def test_the_class_answers_as_its_objects_do() -> None:
    assert Text.toUpper is Text.upper  # type: ignore[attr-defined]
    assert Text.far(Text(), 1) == 2  # type: ignore[attr-defined]
    with pytest.raises(
        AttributeError, match="^type object 'Text' has no attribute 'shout'. Write instead: up"
    ):
        _ = Text.shout  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="^type object 'Spelled' has no attribute '_spellings'$"):
        _ = Spelled._spellings


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shout", "a text has no 'shout'. Write instead: upper() + '!'"),
        ("to_csv", "a text has no 'to_csv'. Write instead: a file"),
        ("uper", "a text has no 'uper'. Did you mean 'upper'?"),
        ("zzz", "a text has no 'zzz'"),
        ("_repr_html_", "a text has no '_repr_html_'"),
    ],
)
def test_all_else_is_answered_with_what_to_write(name: str, said: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(Text(), name)
    assert str(caught.value) == said
    trace = caught.value.__traceback__
    assert trace is not None and trace.tb_next is None, "no frame of ours"


def test_what_to_write_is_known_of_every_name() -> None:
    assert TABLE.write("toUpper") == "upper(…)" and TABLE.write("shout") == "upper() + '!'"
    assert TABLE.write("to_csv") == "a file" and TABLE.write("zzz") is None
    assert TABLE.message("none", "zzz", ["zz"], otherwise=": ask") == "none: ask"


def test_names_like_one_that_is_not_there() -> None:
    assert like("K", ["x", "k"]) == ". Did you mean 'k'?", "capitals aside it is the same"
    assert like("entirely", ["user"]) == like(7, ["user"]) == ""
    assert like("_idd", ["_id"]) == ". Did you mean '_id'?", "a column may be called so"
