"""The stored code of a kernel that others call, and how it becomes machine code.

A *part* is LLVM's intermediate code of one kernel, hardly optimised, without that of the kernels which it
calls; it has a list of these. *Whole* code has been optimised together with all that it reaches, and is
machine code. Two kinds of code are whole: that which takes the arguments of a kernel apart for Python, and a
*large* kernel. The optimiser does not look into a large kernel: code that reaches one is linked to its
machine code, which is made once, perhaps by another process.

Numba links everything that a kernel calls into it, and again into each of its callers: for sixty kernels deep
in one another it copies and optimises the same code sixty times.
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
    """The kernel's compile result, as numba has it."""
    machine_code: Callable[[], bytes] | None = None
    """For a large kernel: compiles its machine code, or loads it."""

    def __init__(self, name: str) -> None:
        super().__init__(cpu_target.target_context.codegen(), name)
        self.calls: list[Part] = []
        """The parts of the kernels that it calls."""

    @classmethod
    def of_bitcode(cls, name: str, code: bytes, calls: list[Part]) -> Part:
        """Return a part from its stored code."""
        part = cls(name)
        part._final_module = part._shared_module = parse_bitcode(code)
        part._finalized = True
        part.calls = calls
        return part

    def add_linking_library(self, library: CodeLibrary) -> None:
        """Add a library that this one calls: helpers of numba become part of it, kernels do not."""
        if not isinstance(library, Part):
            super().add_linking_library(library)
        elif library not in self.calls:
            if (again := getattr(library, "_reload_init", None)) is not None:  # numba 0.62 has none
                self._reload_init.update(again)
            self.calls.append(library)

    def _optimize_final_module(self) -> None:
        """Optimise just enough for a part of another; the rest is done there."""
        cheap, passes = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        cheap.run(self._final_module, passes)

    def _finalize_final_module(self) -> None:
        """Finish without handing the code to the engine, which would compile all of it to machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    @property
    def symbol(self) -> str:
        """The name of its function."""
        return cast("str", self.code.fndesc.llvm_func_name)

    def symbols(self) -> list[str]:
        """Return the names of this kernel and of all that it reaches.

        Machine code refers to large kernels by name, and each process that compiles counts names for itself.
        """
        return [each.symbol for each in _reached([self], enters_large=True)]

    @property
    def own(self) -> ModuleRef:
        """Its own code, to be linked with that of others."""
        return super()._get_module_for_linking()

    def bitcode(self) -> bytes:
        """Return the code to store, as `of_bitcode` takes it."""
        return cast("bytes", self.own.as_bitcode())

    def _get_module_for_linking(self) -> ModuleRef:
        """Return its code with all that it reaches: for kernels that numba compiles by itself."""
        module = self.own.clone()
        for each in _reached(self.calls, enters_large=True):
            module.link_in(each.own, preserve=True)
        return module

    def object(self) -> bytes:
        """Return machine code to which others can be linked."""
        module = self.own.clone()
        module.get_function(self.symbol).linkage = _EXTERNAL
        whole = _Whole(f"all of {self.name}")
        whole._final_module.link_in(module)
        return whole.object(_reached(self.calls, enters_large=False))


class _Whole(JITCodeLibrary):
    """Code that becomes machine code: a function, and all that it reaches except large kernels."""

    def __init__(self, name: str) -> None:
        super().__init__(cpu_target.target_context.codegen(), name)

    _finalize_final_module = Part._finalize_final_module

    def object(self, parts: Iterable[Part]) -> bytes:
        """Return machine code, including these parts."""
        for each in parts:
            self._final_module.link_in(each.own, preserve=True)
        self.add_linking_library(rtsys.library)
        self.finalize()
        return cast("bytes", self._codegen._tm.emit_object(self._final_module))

    def _optimize_final_module(self) -> None:
        """Optimise as numba does, but make counting ordinary code between numba's two steps: see
        `counting.py`.

        Pairs of counts that cancel out are gone by then.
        """
        codegen, module = self._codegen, self._final_module
        for function in module.functions:
            if function.name in COUNTING and not function.is_declaration:
                function.linkage = _ELSEWHERE  # numba's own; LLVM drops it once it has inlined its uses
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
    """Return what Python can call, and its constants. Raises `UnknownCodeError` where that is impossible."""
    module, constants = code_that_calls(part.code)
    calling = _Whole(f"calling {part.name}")
    calling.add_ir_module(module)
    objects = [calling.object(_reached([part], enters_large=False))]
    for each in _reached([part], enters_large=True):
        if each.machine_code is not None:
            objects.append(each.machine_code())
    return link(objects, ENTRY), constants


def _reached(parts: Iterable[Part], *, enters_large: bool) -> list[Part]:
    """Return these parts, those that they call, and so on, each once, and each behind all that call it.

    LLVM links what earlier code refers to, and leaves out the rest. Unless `enters_large`, large kernels are
    left out, and with them what only they reach.
    """
    reached: dict[Part, None] = {}

    def visit(part: Part) -> None:
        if part not in reached and (enters_large or part.machine_code is None):
            for each in part.calls:
                visit(each)
            reached[part] = None

    for part in parts:
        visit(part)
    return list(reversed(reached))
