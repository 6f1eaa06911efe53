"""Which kernels there are, and which of them were compiled for more than one signature in this process."""

from __future__ import annotations

import ast
import sys
from typing import cast

from house import PACKAGES, modules

__all__ = ["SEVERAL_SIGNATURES", "SOURCES", "compiled_twice", "loaded_kernels"]

SEVERAL_SIGNATURES: dict[str, str] = {}
"""Kernels, as `module.name`, that are meant to compile more than once, and why."""


def _is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        ast.unparse(decorator) in ("kernel", "large_kernel", "small_kernel")
        for decorator in function.decorator_list
    )


SOURCES = [
    (module, function)
    for package in PACKAGES
    for module in modules(package)
    if "kernel\n" in module.source  # else it need not be parsed
    for function in module.functions
    if _is_kernel(function)
]
"""Every kernel, by the module that defines it."""


def loaded_kernels() -> dict[str, object]:
    """Those of modules that are imported, by the name of where they are defined."""
    return {
        f"{module.name}.{function.name}": vars(sys.modules[module.name])[function.name]
        for module, function in SOURCES
        if module.name in sys.modules
    }


def compiled_twice() -> list[str]:
    """Kernels with more signatures than they are meant to have, with these."""
    return [
        f"{name}: {list(map(str, signatures))}"
        for name, kernel in sorted(loaded_kernels().items())
        for signatures in [cast("list[object]", getattr(kernel, "signatures", []))]
        if len(signatures) > 1 and name not in SEVERAL_SIGNATURES
    ]
