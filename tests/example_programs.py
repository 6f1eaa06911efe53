"""A program of `examples/` as a module: they are run by their paths, and are in no package of the tests."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from house import ROOT

__all__ = ["example"]


def example(name: str) -> ModuleType:
    """The program `examples/NAME.py`, imported anew and not run; it finds what lies beside it."""
    folder = ROOT / "examples"
    spec = importlib.util.spec_from_file_location(f"{name}_example", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
