"""written_text.py: the text that a function was compiled from, whoever compiled it.

cell_*    compiled as IPython does: each statement by itself, the last expression to be shown
magic_*   what `%time` runs
file_*    compiled as a whole
"""

from __future__ import annotations

import ast
import linecache
import sys
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace

import pytest

from timely.user_code.written_text import written_text

Taken = list[FunctionType]

CELLS = {
    "an import of a module": "import math\ntake(lambda r: math.sqrt(r))",
    "under another name": "import math as m\ntake(lambda r: m.sqrt(r))",
    "of a module in a package": "from os import path\ntake(lambda r: path.join('a', r))",
    "an import behind it": "take(lambda r: math.sqrt(r))\nimport math",
    "in a def": "import math\ndef f(r):\n    return math.sqrt(r)\ntake(f)",
    "in a comprehension": "import math\n[take(lambda r, i=i: math.sqrt(r)) for i in range(2)]",
    "in another lambda": "import math\ntake((lambda: lambda r: math.sqrt(r))())",
    "several on a line": "import math\ntake(lambda r: math.sqrt(r)); take(lambda r: math.floor(r))",
    "in text": "import math\nx = f'{take(lambda r: math.sqrt(r))}'",
    "a walrus": "import math\n(g := lambda r: [y := math.sqrt(r), y])\ntake(g)",
    "in a with": "import math, contextlib\nwith contextlib.nullcontext():\n    take(lambda r: math.sqrt(r))",
    "the same constant elsewhere": "x = (1, 'some text')\ntake(lambda r: (1, 'some text'))",
    "an await": "import math, asyncio\nawait asyncio.sleep(0)\ntake(lambda r: math.sqrt(r))",
}


def run_cell(text: str, name: str, flags: int = 0) -> Taken:
    """Run a cell as IPython does, and return the functions that it gives to `take`."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return run_statements(text, name, flags)


def run_statements(text: str, name: str, flags: int = 0) -> Taken:
    taken: Taken = []
    space: dict[str, object] = {"take": taken.append}
    statements = ast.parse(text).body
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for statement in statements:
        is_last = statement is statements[-1] and isinstance(statement, ast.Expr)
        unit: ast.Interactive | ast.Module
        unit = ast.Interactive([statement]) if is_last else ast.Module([statement], [])
        code = compile(unit, name, "single" if is_last else "exec", flags, dont_inherit=True)
        found = eval(code, space)
        if found is not None:  # a coroutine, as IPython runs it: here it waits for nothing
            with pytest.raises(StopIteration):
                while True:
                    found.send(None)
    return taken


def code_of(function: object) -> CodeType:
    assert isinstance(function, FunctionType)
    return function.__code__


@pytest.mark.parametrize("name", CELLS)
def test_cell_of_any_kind_is_what_its_functions_come_from(name: str) -> None:
    functions = run_cell(CELLS[name], f"<cell {name}>")
    assert functions
    for function in functions:
        assert written_text(code_of(function), {}) == CELLS[name]


def test_cell_behind_one_that_imports_from_the_future() -> None:
    import __future__

    text = "import math\ndef f(r: Unknown) -> Unknown:\n    return math.sqrt(r)\ntake(f)"
    (function,) = run_cell(text, "<future cell>", __future__.annotations.compiler_flag)
    assert written_text(code_of(function), {}) == text


def test_cell_that_was_changed_is_not_what_runs() -> None:
    (function,) = run_cell("import math\ntake(lambda r: math.sqrt(r))", "<edited cell>")
    text = "import math\ntake(lambda r: math.sqrt(r + 1))"
    linecache.cache["<edited cell>"] = len(text), None, text.splitlines(keepends=True), "<edited cell>"
    assert written_text(code_of(function), {}) is None


def test_magic_has_its_text_in_the_cell_that_ran_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The magic takes off empty lines before it compiles, as all of IPython does."""
    inside = "import math\ntake(lambda r: math.sqrt(r))\n"
    argument = "\n" + inside
    cells = [f"get_ipython().run_cell_magic('time', '', {argument!r})\n", "(no Python", "x = 1"]
    history = SimpleNamespace(input_hist_parsed=cells)
    shell = SimpleNamespace(history_manager=history, transform_cell=lambda text: text.lstrip("\n"))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    (function,) = run_statements(inside, "<timed exec>")
    assert written_text(code_of(function), {}) == inside
    (other,) = run_statements("take(lambda r: r)", "<timed exec>")
    assert written_text(code_of(other), {}) is None


def test_magic_without_a_shell_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    (function,) = run_statements("take(lambda r: r)", "<timed exec>")
    assert written_text(code_of(function), {}) is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert written_text(code_of(function), {}) is None


def test_file_is_the_text_as_long_as_it_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("import math\n\n\ndef f(r):\n    return math.sqrt(r)\n")
    space: dict[str, object] = {"__name__": "module"}
    exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), space)
    function = space["f"]
    assert written_text(code_of(function), space) == file.read_text()
    file.write_text("import math\n\n\ndef f(r):\n    return math.floor(r)\n")
    linecache.checkcache(str(file))
    assert written_text(code_of(function), space) is None
