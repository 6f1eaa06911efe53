"""What a digest tells apart, and what it does not.

differs_*   whatever a function does differently
same_*      in every process, and whatever does not change what is done
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import combinations

import pytest
from house import ROOT

from timely.user_code.code_digest import ClassTexts, calls_hash, digest_of

Namespace = dict[str, object]


def made(source: str, name: str = "f") -> object:
    """What `source`, a module of its own, calls `name`."""
    namespace: Namespace = {"__name__": "some_module"}
    exec(compile(source, "some_module.py", "exec"), namespace)
    return namespace[name]


def digest(source: str) -> str:
    return digest_of(made(source))


DIFFERENT = {
    "constant": ("def f(x): return x + 1", "def f(x): return x + 2"),
    "type of a constant": ("def f(x): return x + 1", "def f(x): return x + 1.0"),
    "instructions": ("def f(x): return x + 1", "def f(x): return x - 1"),
    "attribute": ("def f(x): return x.real", "def f(x): return x.imag"),
    "default": ("def f(x, y=1): return x + y", "def f(x, y=2): return x + y"),
    "keyword default": ("def f(x, *, y=1): return x + y", "def f(x, *, y=2): return x + y"),
    "name of a keyword": ("def f(x, *, y=1): return x", "def f(x, *, z=1): return x"),
    "called helper": (
        "def g(x): return x + 1\ndef f(x): return g(x)",
        "def g(x): return x + 2\ndef f(x): return g(x)",
    ),
    "helper of a helper": (
        "def h(x): return x + 1\ndef g(x): return h(x)\ndef f(x): return g(x)",
        "def h(x): return x + 2\ndef g(x): return h(x)\ndef f(x): return g(x)",
    ),
    "helper called in a comprehension": (
        "def g(x): return x + 1\ndef f(xs): return [g(x) for x in xs]",
        "def g(x): return x + 2\ndef f(xs): return [g(x) for x in xs]",
    ),
    "helper called in a function within": (
        "def g(x): return x + 1\ndef f(xs):\n  def each(x): return g(x)\n  return map(each, xs)",
        "def g(x): return x + 2\ndef f(xs):\n  def each(x): return g(x)\n  return map(each, xs)",
    ),
    "function within": (
        "def f(xs): return map(lambda x: x + 1, xs)",
        "def f(xs): return map(lambda x: x + 2, xs)",
    ),
    "closure": (
        "def make(n):\n  return lambda x: x + n\nf = make(1)",
        "def make(n):\n  return lambda x: x + n\nf = make(2)",
    ),
    "list closed over": (
        "def make(n):\n  return lambda x: x in n\nf = make([1, [2]])",
        "def make(n):\n  return lambda x: x in n\nf = make([1, [3]])",
    ),
    "value of a dict closed over": (
        "def make(n):\n  return lambda x: n[x]\nf = make({'a': 1})",
        "def make(n):\n  return lambda x: n[x]\nf = make({'a': 2})",
    ),
    "key of a dict closed over": (
        "def make(n):\n  return lambda x: n[x]\nf = make({'a': 1})",
        "def make(n):\n  return lambda x: n[x]\nf = make({'b': 1})",
    ),
    "set of constants": ("def f(x): return x in {1, 2, 3}", "def f(x): return x in {1, 2, 4}"),
    "function closed over": (
        "def make(n):\n  return lambda x: n(x)\nf = make(lambda x: x + 1)",
        "def make(n):\n  return lambda x: n(x)\nf = make(lambda x: x + 2)",
    ),
    "method": (
        "class f:\n  def __call__(self, x): return x + 1",
        "class f:\n  def __call__(self, x): return x + 2",
    ),
    "method of a base": (
        "class g:\n  def on(self, x): return x + 1\nclass f(g): pass",
        "class g:\n  def on(self, x): return x + 2\nclass f(g): pass",
    ),
    "constant of a class": ("class f:\n  n = 1", "class f:\n  n = 2"),
    "class of an object that is called": (
        "class g:\n  def __call__(self, x): return x + 1\nf = g()",
        "class g:\n  def __call__(self, x): return x + 2\nf = g()",
    ),
    "what an object that is called holds": (
        "class g:\n  def __init__(self, n): self.n = n\n  def __call__(self, x): return x + self.n\nf = g(1)",
        "class g:\n  def __init__(self, n): self.n = n\n  def __call__(self, x): return x + self.n\nf = g(2)",
    ),
    "static method": (
        "class f:\n  @staticmethod\n  def g(x): return x + 1",
        "class f:\n  @staticmethod\n  def g(x): return x + 2",
    ),
    "bound argument": (
        "from functools import partial\nf = partial(pow, 2)",
        "from functools import partial\nf = partial(pow, 3)",
    ),
    "value closed over": (
        "import datetime as dt\nf = (lambda d: lambda x: x > d)(dt.date(2024, 1, 1))",
        "import datetime as dt\nf = (lambda d: lambda x: x > d)(dt.date(2024, 1, 2))",
    ),
    "bound pattern": (
        "import re\nfrom functools import partial\nf = partial(re.sub, re.compile('a'))",
        "import re\nfrom functools import partial\nf = partial(re.sub, re.compile('b'))",
    ),
    "function of C": ("f = len", "f = max"),
    "method of C": ("f = str.upper", "f = str.lower"),
    "operation of C": ("f = int.__add__", "f = int.__sub__"),
    "method of a text": ("f = 'a'.join", "f = 'b'.join"),
    "method of a table": ("f = {1: 2}.get", "f = {1: 3}.get"),
    "entry": (
        "from operator import itemgetter as i\nf = i(0)",
        "from operator import itemgetter as i\nf = i(1)",
    ),
    "name of a method": (
        "from operator import methodcaller\nf = methodcaller('split', sep='a')",
        "from operator import methodcaller\nf = methodcaller('split', sep='b')",
    ),
    "function of arrays": ("import numpy\nf = numpy.sin", "import numpy\nf = numpy.cos"),
    "cached": (
        "from functools import cache\n@cache\ndef f(x): return x + 1",
        "from functools import cache\n@cache\ndef f(x): return x + 2",
    ),
    "bound keyword": (
        "from functools import partial\nf = partial(int, base=2)",
        "from functools import partial\nf = partial(int, base=3)",
    ),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_differs_whatever_is_done_differently(one: str, other: str) -> None:
    assert digest(one) != digest(other)
    assert digest(one) == digest(one), "the same source, compiled twice, is the same function"


def test_differs_between_lambdas_on_one_line() -> None:
    lambdas: list[Callable[[int], int]] = [lambda x: x + 1, lambda x: x + 2, lambda x: x * 1, lambda y: y + 1]
    assert all(digest_of(one) != digest_of(other) for one, other in combinations(lambdas, 2))


def test_differs_between_methods_of_one_class_and_bound_arguments() -> None:
    class Counts:
        def up(self, x: int) -> int:
            return x + 1

        def down(self, x: int) -> int:
            return x - 1

    counts = Counts()
    assert digest_of(counts.up) != digest_of(counts.down)
    assert digest_of(counts.up) == digest_of(Counts().up)
    assert digest_of(partial(pow, 2)) == digest_of(partial(pow, 2)) != digest_of(partial(pow, 2, 3))


SAME = {
    "list to which a method adds": ("f = [1].append", "f = [2].append"),
    "comment": ("def f(x):\n  # one\n  return x + 1", "def f(x):\n  # another\n  return x + 1"),
    "line": ("def f(x): return x + 1", "\n\n\ndef f(x): return x + 1"),
    "helper that is not called": (
        "def g(x): return x + 1\ndef f(x): return x",
        "def g(x): return x + 2\ndef f(x): return x",
    ),
    "order in which a set was filled": (
        "def make(n):\n  return lambda x: x in n\nf = make({'a', 'b', 'c'})",
        "def make(n):\n  return lambda x: x in n\nf = make({'c', 'b', 'a'})",
    ),
    "order in which a dict was filled": (
        "def make(n):\n  return lambda x: n[x]\nf = make({'a': 1, 'b': 2})",
        "def make(n):\n  return lambda x: n[x]\nf = make({'b': 2, 'a': 1})",
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_same_whatever_does_not_change_what_is_done(one: str, other: str) -> None:
    assert digest(one) == digest(other)


def test_same_in_the_file_of_another_name() -> None:
    source = "def f(x): return x + 1"
    namespace: Namespace = {"__name__": "some_module"}
    exec(compile(source, "elsewhere/some_module.py", "exec"), namespace)
    assert digest_of(namespace["f"]) == digest(source)


PROGRAM = """
from timely.user_code.code_digest import ClassTexts, calls_hash, digest_of
def helper(x): return x in {"a", "b", "c", "d"}
def make(names, table): return lambda x: helper(x) and x in names and table[x] and x in {"p", "q", "r"}
class Called:
    def __call__(self, x, unset=frozenset(["x", "y", "z"])): return x in {"k", "l", "m"}
print(digest_of(make({"one", "two", "three"}, {"x": {"u", "v"}})), digest_of(Called), digest_of(Called()))
"""


def test_same_in_processes_that_hash_differently() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(said) == 1 and len(said.pop().split()) == 3


def test_same_comes_to_an_end_for_what_refers_to_itself() -> None:
    def again(n: int) -> int:
        return again(n - 1) if n else 0

    endless: list[object] = [again]
    endless.append(endless)
    loop: dict[str, object] = {}
    loop["loop"] = loop
    for thing in (again, endless, loop):
        assert digest_of(thing) == digest_of(thing)
    recursive = "def f(x): return g(x)\ndef g(x): return f(x - 1) if x else 0"
    assert digest(recursive) == digest(recursive)


def test_same_for_a_name_that_has_no_value_yet() -> None:
    def make() -> Callable[[], int]:
        def early() -> int:
            return late

        digests.append(digest_of(early))
        late = 1
        digests.append(digest_of(early))
        return early

    digests: list[str] = []
    make()
    assert digests[0] != digests[1] and all(len(found) == 8 for found in digests)


def _calls_another(record: object) -> int:
    return _hashes(record)


def _hashes(record: object) -> int:
    return hash(record) % 7


class _Hashing:
    def __call__(self, record: object) -> int:
        return self.number(record)

    def number(self, record: object) -> int:
        return hash(record)


def _shadowed() -> Callable[[object], int]:
    def hash(record: object) -> int:  # a name of its own
        return len(str(record))

    return lambda record: hash(record)


def test_what_calls_hash_is_known() -> None:
    chosen = hash
    calling: list[object] = [
        hash, _hashes, _calls_another, partial(_calls_another), partial(lambda known, x: known(x), hash),
        lambda x: hash(x), lambda x: [hash(one) for one in x], lambda x: chosen(x),
        _Hashing(), _Hashing().number, str.__hash__, "a".__hash__, lambda x: x.__hash__(),
    ]  # fmt: skip
    assert [calls_hash(thing) for thing in calling] == [True] * len(calling)
    others: list[object] = [len, str, lambda record: len(record), _shadowed(), partial(len), _Hashing, 7]
    assert [calls_hash(thing) for thing in others] == [False] * len(others)


def test_same_with_texts_of_classes_remembered() -> None:
    """A class that appears twice, or in what was described before, is described as without them."""
    vertex = made(
        "class Base:\n  def f(self): return 1\nclass V(Base):\n  a = 2\n  def g(self): return 3", "V"
    )
    assert isinstance(vertex, type)
    (base,) = vertex.__bases__
    other = type("W", (base,), {"__module__": "some_module"})
    texts = ClassTexts()
    for thing in (
        vertex,
        other,
        base,
        partial(vertex, 1),
        partial(other, vertex),
        [base, vertex],
        [vertex, base],
    ):
        assert digest_of(thing, texts) == digest_of(thing, texts) == digest_of(thing), thing
