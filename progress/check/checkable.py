"""What can be checked from the command line, and how it is found in a file.

`progress` knows no vertices, so it cannot run a dataflow. It takes whatever can explore and simulate itself:
`timely.testing.Scenario` does.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Protocol, runtime_checkable

from progress.errors import MisuseError, TimelyError

__all__ = ["Checkable", "load"]


@runtime_checkable
class Checkable(Protocol):
    """Something that can go through all its orders, or through one that a seed decides.

    Both raise `Counterexample` if something is not as it must be, and return what to print. An option that is
    None leaves it as the object says.
    """

    def explore(self, *, workers: int | None, orders: str | None, states_max: int | None) -> object:
        """Go through all orders."""
        ...

    def simulate(self, seed: int, *, workers: int | None, crash: bool | None) -> object:
        """Go through one of them."""
        ...


def load(target: str) -> Checkable:
    """Return what `FILE:NAME` names; raise `MisuseError`, in one line, if there is no such thing."""
    file, _, name = target.rpartition(":")
    if not file or not name.isidentifier():
        raise MisuseError(f"{target!r} names no scenario: write FILE:NAME, such as flows.py:scenario")
    path = Path(file)
    if not path.is_file():
        raise MisuseError(f"there is no file {file!r}")
    thing = _carried_out(path, name)
    if not isinstance(thing, Checkable):
        raise MisuseError(
            f"{name!r} of {file} is a {type(thing).__name__}, which cannot be explored: write "
            f"{name} = timely.testing.Scenario(…)"
        )
    return thing


def _carried_out(path: Path, name: str) -> object:
    """Carry out a file, as Python does with its folder on the path; return what it calls `name`."""
    assert path.is_file() and name, (path, name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise MisuseError(f"{path} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except TimelyError:
        raise
    except (Exception, SystemExit) as error:  # whatever the file of a user raises
        raise MisuseError(f"{path} cannot be carried out: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        names = sorted(each for each, value in vars(module).items() if isinstance(value, Checkable))
        raise MisuseError(f"{path} has no {name!r}: its scenarios are {', '.join(names) or 'none'}")
    return getattr(module, name)
