"""Which kernels there are, and which of them were compiled for more than one signature in this process."""

from __future__ import annotations

import ast
import sys
from functools import cache
from typing import TYPE_CHECKING

from house import PACKAGES, Module, modules

if TYPE_CHECKING:
    from progress.compiled.kernel import Kernel

__all__ = ["SEVERAL_SIGNATURES", "compiled_twice", "loaded_kernels", "sources"]

SEVERAL_SIGNATURES: dict[str, str] = {}
"""Kernels, as `module.name`, that are meant to compile more than once, and why."""


def _is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        ast.unparse(decorator) in ("kernel", "large_kernel", "small_kernel")
        for decorator in function.decorator_list
    )


@cache
def sources() -> list[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return every kernel, by the module that defines it. Parses them: half a second of a processor."""
    return [
        (module, function)
        for package in PACKAGES
        for module in modules(package)
        if "kernel\n" in module.source  # else it need not be parsed
        for function in module.functions
        if _is_kernel(function)
    ]


def loaded_kernels() -> dict[str, Kernel]:
    """Return those of modules that are imported, by the name of where they are defined."""
    from progress.compiled.kernel import Kernel

    return {
        f"{module}.{name}": kernel
        for module, loaded in sys.modules.copy().items()
        if module.partition(".")[0] in PACKAGES
        for name, kernel in vars(loaded).items()
        if isinstance(kernel, Kernel) and kernel.__module__ == module
    }


def compiled_twice() -> list[str]:
    """Kernels with more signatures than they are meant to have, with these."""
    return [
        f"{name}: {list(map(str, signatures))}"
        for name, kernel in sorted(loaded_kernels().items())
        for signatures in [kernel.signatures]
        if len(signatures) > 1 and name not in SEVERAL_SIGNATURES
    ]
