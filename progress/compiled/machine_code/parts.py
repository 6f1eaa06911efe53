"""What is kept of a kernel that others call, and how does machine code come of it?

A *part* is LLVM's intermediate code of one kernel, hardly optimised, without that of the kernels which it
calls: it knows these. What is *whole* has been optimised together with all that it reaches, and is machine
code. Two kinds of things are: what takes the arguments of a kernel apart for Python, and a *large* kernel.
Nobody looks into a large kernel: who reaches one is linked to its machine code, which is made once, and by
another process perhaps.

Numba links everything that a kernel calls into it, and again into each that calls this one: for sixty
kernels deep in one another the same code is copied and looked through sixty times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, cast

from llvmlite.binding import parse_assembly, parse_bitcode
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from .calling import ENTRY, code_that_calls
from .counting import COUNTING, define_counting
from .image import Image, link

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef
    from numba.core.compiler import CompileResult

__all__ = ["Part", "image_that_calls"]

_EXTERNAL: Final = "external"
_ELSEWHERE: Final = "available_externally"


class Part(JITCodeLibrary):
    """The code of one kernel."""

    code: CompileResult
    """What numba knows of it."""
    machine_code: Callable[[], bytes] | None = None
    """Of a large kernel: makes it, or finds it."""

    def __init__(self, name: str) -> None:
        super().__init__(cpu_target.target_context.codegen(), name)
        self.calls: list[Part] = []
        """Kernels."""

    @classmethod
    def found(cls, name: str, code: bytes, calls: list[Part]) -> Part:
        """That was kept."""
        part = cls(name)
        part._final_module = part._shared_module = parse_bitcode(code)
        part._finalized = True
        part.calls = calls
        return part

    def add_linking_library(self, library: CodeLibrary) -> None:
        """What this one calls: helpers of numba become part of it, kernels do not."""
        if not isinstance(library, Part):
            super().add_linking_library(library)
        elif library not in self.calls:
            if (again := getattr(library, "_reload_init", None)) is not None:  # numba 0.62 has none
                self._reload_init.update(again)
            self.calls.append(library)

    def _optimize_final_module(self) -> None:
        """Enough to become a part of another: the rest is done there."""
        cheap, passes = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        cheap.run(self._final_module, passes)

    def _finalize_final_module(self) -> None:
        """Without handing it to the engine, which makes machine code of all that it is given."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    @property
    def symbol(self) -> str:
        """The name of its function."""
        return cast("str", self.code.fndesc.llvm_func_name)

    def symbols(self) -> list[str]:
        """Of this kernel, and of all that it reaches: machine code refers to large ones by name, and each
        process that compiles counts names for itself.
        """
        return [each.symbol for each in _reached([self], enters_large=True)]

    @property
    def own(self) -> ModuleRef:
        """Its code, to be linked with that of others."""
        return super()._get_module_for_linking()

    def kept(self) -> bytes:
        """What `found` takes."""
        return cast("bytes", self.own.as_bitcode())

    def _get_module_for_linking(self) -> ModuleRef:
        """With all that it reaches: for what numba compiles in its own way."""
        module = self.own.clone()
        for each in _reached(self.calls, enters_large=True):
            module.link_in(each.own, preserve=True)
        return module

    def object(self) -> bytes:
        """Machine code to which others are linked."""
        module = self.own.clone()
        module.get_function(self.symbol).linkage = _EXTERNAL
        whole = _Whole(f"all of {self.name}")
        whole._final_module.link_in(module)
        return whole.object(_reached(self.calls, enters_large=False))


class _Whole(JITCodeLibrary):
    """What becomes machine code: a function, and all that it reaches but what is large."""

    def __init__(self, name: str) -> None:
        super().__init__(cpu_target.target_context.codegen(), name)

    _finalize_final_module = Part._finalize_final_module

    def object(self, parts: Iterable[Part]) -> bytes:
        """Machine code, with these parts."""
        for each in parts:
            self._final_module.link_in(each.own, preserve=True)
        self.add_linking_library(rtsys.library)
        self.finalize()
        return cast("bytes", self._codegen._tm.emit_object(self._final_module))

    def _optimize_final_module(self) -> None:
        """As numba does, but that between its two steps counting becomes code like any other: see
        `counting.py`. What cancels out by then is gone.
        """
        codegen, module = self._codegen, self._final_module
        for function in module.functions:
            if function.name in COUNTING and not function.is_declaration:
                function.linkage = _ELSEWHERE  # numba's, which goes when all is inlined that will be
        cheap, passes = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
        )
        cheap.run(module, passes)
        counting = codegen._create_empty_module("counting")
        define_counting(counting)
        module.link_in(parse_assembly(str(counting)), preserve=True)
        full, passes = codegen._module_pass_manager()
        full.run(module, passes)


def image_that_calls(part: Part) -> tuple[Image, list[object]]:
    """What Python can call, and the constants in it. Raises `UnknownCodeError` where that cannot be made."""
    module, constants = code_that_calls(part.code)
    calling = _Whole(f"calling {part.name}")
    calling.add_ir_module(module)
    objects = [calling.object(_reached([part], enters_large=False))]
    for each in _reached([part], enters_large=True):
        if each.machine_code is not None:
            objects.append(each.machine_code())
    return link(objects, ENTRY), constants


def _reached(parts: Iterable[Part], *, enters_large: bool) -> list[Part]:
    """These parts, what they call, what that calls, and so on, each once, and behind all that call it: LLVM
    links what is referred to by then, and leaves out the rest.
    """
    found: dict[Part, None] = {}

    def find(part: Part) -> None:
        if part not in found and (enters_large or part.machine_code is None):
            for each in part.calls:
                find(each)
            found[part] = None

    for part in parts:
        find(part)
    return list(reversed(found))
