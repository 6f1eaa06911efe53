"""The shape of the house: who may import whom, how long things may be, what every file must have.

  layer_*      the arrows of CONTRIBUTING.md, no other direction
  only_*       what exists in one place only
  size_*       what a reader can hold
  complete_*   what every module, function or document must come with

Each test collects every violation before it fails, so that one run shows all of them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from house import PACKAGES, ROOT, Import, Module, modules, python_files, report

ALLOWED = {
    "progress": set[str](),
    "timely": {"progress"},
    "differential": {"progress", "timely"},
}
IMPURE = {"asyncio", "multiprocessing", "queue", "random", "select", "selectors", "signal", "socket"} | {
    "subprocess",
    "threading",
    "time",
}
"""What `progress` may not import: it takes counts and returns frontiers, others talk to the world."""
PURE_BUT_FOR = {("progress/compiled/cache_folder.py", "time"), ("progress/compiled/kernel.py", "time")}
"""Files in the cache are of some age."""
MAY_PICKLE = {"progress/compiled/machine_code/compiling.py"}
"""What numba has made of a kernel, and the cache gives back: whole, and written by this user or by root."""

ROOMS = {
    "progress": [
        "errors records thresholds",
        "compiled",
        "times",
        "graph",
        "tracking checking",
        "check",
    ],
    "timely": [
        "other_packages",
        "own_files counted cores dictionaries errors forking limits failure giving_back mapped spilling "
        "thresholds",
        "user_code wire",
        "keys",
        "durable",
        "operators",
        "building",
        "routing",
        "running",
        "worker",
        "client",
        "console metrics spark sql testing top why",
    ],
    "differential": [
        "other_packages",
        "errors thresholds",
        "other_spellings",
        "kernels",
        "columns",
        "group_statistics aggregates expressions",
        "spelled",
        "linear trace",
        "operators",
        "compiled_loops",
        "skew",
        "plan",
        "collections",
        "queries relational",
        "algorithms functions testing",
        "warming",
    ],
}
"""The rooms of a package from the lowest up, and single files at its top; those of one line have no order
among them, but may not be in a circle. A room imports from its own line and those before it."""

ROOM_FILES_MAX = 12
WITHOUT_A_ROOM_LIMIT = {"tests"}
"""Folders that hold more: what all tests share lies beside the rules of the house."""

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 600

ASSERTIONS_PER_FUNCTION_MIN = 0.5
"""For `progress`, over functions of more than one statement, kernels aside. The aim is 2; raise this towards
it, never lower it. The present figure: `pytest tests/test_layers.py -k asserts -s`."""

WITHOUT_A_TEST_FILE = {
    "timely/running/checking/explorer.py": "simulation/test_explored.py",
    "timely/running/checking/reached.py": "simulation/test_explored.py",
    "timely/running/checking/prefixes_heard.py": "simulation/modes/test_held_back.py",
    "progress/compiled/kernel.py": "test_kernels_are_uniform.py",
    "timely/operators/compiled_loop.py": "timely/running/stages/test_compiled_loop.py",
    "timely/running/stages/loop_making.py": "timely/running/stages/test_compiled_loop.py",
    "differential/thresholds.py": "test_thresholds.py",
    "progress/thresholds.py": "test_thresholds.py",
    "timely/thresholds.py": "test_thresholds.py",
    "timely/client/reports/served.py": "timely/console/test_serving.py",
    "timely/console/content/reading.py": "timely/console/test_serving.py",
    **{
        f"timely/console/web/{name}.py": "timely/console/test_serving.py"
        for name in ("app", "connections", "guarding")
    },
    "timely/running/owner.py": "timely/running/test_instance.py",
    "differential/kernels/compiled_loops/round_layout.py": (
        "differential/kernels/compiled_loops/test_rounds.py"
    ),
    **{
        f"differential/relational/spark_functions/{name}.py": "spark/functions/test_functions_in_texts.py"
        for name in ("by_class", "by_name", "formats")
    },
    "differential/expressions/pending.py": "differential/relational/test_texts_of_expressions.py",
    "differential/relational/reading/texts_read.py": ("differential/relational/test_texts_of_expressions.py"),
    "differential/plan/decoding.py": "differential/plan/test_encoding.py",
    **{
        f"differential/relational/{name}.py": "differential/relational/test_door.py"
        for name in (
            *(f"lowering/{name}" for name in ("applies", "domains", "groups", "joins", "lowerer")),
            *(
                f"reading/{name}"
                for name in ("groupings", "queries", "reading", "recursions", "selects", "sources")
            ),
            *(
                f"reading/expressions/{name}"
                for name in ("arithmetic", "calls", "functions", "scopes", "special")
            ),
            *(f"reading/expressions/{name}" for name in ("stages", "types", "values")),
            "algebra/relations",
        )
    },
    "differential/relational/lowering/periods.py": "differential/relational/test_now.py",
    "differential/relational/reading/expressions/moments.py": "differential/relational/test_now.py",
    **{
        f"differential/relational/statements/{name}.py": (
            "differential/relational/statements/test_session.py"
        )
        for name in ("parameters", "reads", "showing", "writing")
    },
    **{
        f"differential/relational/spark_plans/{name}.py": "spark/plans/test_frame_programs.py"
        for name in (
            *("casts", "plan_aggregates", "plan_door", "plan_expressions", "plan_leaves", "plan_nodes"),
            *("plan_relations", "plan_scopes", "plan_types", "plan_windows"),
            "spark_times",
        )
    },
    **{
        f"timely/spark/plans/{name}.py": "spark/plans/test_planned.py"
        for name in ("analysed", "left_out", "marking", "sites", "stand_ins")
    },
    **{
        f"differential/plan/nodes/{name}.py": "differential/plan/nodes/test_node.py"
        for name in ("effects", "leaves", "linear", "loops", "patterns", "stateful", "timed")
    },
}
"""Modules whose tests are elsewhere, and where. `__init__.py` and `__main__.py` hold no logic."""


def _ours() -> list[Module]:
    return [module for package in PACKAGES for module in modules(package)]


def _is_in(module: Module, folder: str) -> bool:
    return module.path.as_posix().startswith(folder.rstrip("/") + "/")


def _imports(files: Iterable[Module], package: str) -> list[tuple[Module, Import]]:
    return [(module, used) for module in files for used in module.imports if used.is_from(package)]


# layer_


def test_layer_packages_import_downwards_only() -> None:
    report(
        f"{module.where(used.line)}: {package} may not import {used.top}"
        for package in PACKAGES
        for module in modules(package)
        for used in module.imports
        if used.top in PACKAGES and used.top != package and used.top not in ALLOWED[package]
    )


def test_layer_rooms_import_downwards_only() -> None:
    report(
        f"{module.where(used.line)}: {room} may not import {package}.{other}"
        for package, lines in ROOMS.items()
        for module in modules(package)
        if (room := _room(module.name)) is not None
        for used in module.imports
        if used.top == package and (other := _room(_imported(used))) is not None
        if _height(lines, other) > _height(lines, room)
    )


def test_layer_rooms_are_all_in_the_order() -> None:
    for package, lines in ROOMS.items():
        found = {_room(module.name) for module in modules(package)} - {None}
        assert found == set(" ".join(lines).split()), package


def test_layer_no_files_import_one_another_in_a_circle() -> None:
    """Late imports count, and those for types: whoever reads one file of a circle must read them all."""
    report(f"{' → '.join(sorted(circle))} → …" for circle in _circles())


def _imported(used: Import) -> str:
    """The file that an import reads: that of the name if there is one, else that of the module."""
    whole = used.module if used.name is None else f"{used.module}.{used.name}"
    return whole if whole in _files() else used.module


def _room(module_name: str) -> str | None:
    """The folder or file in its package that a module belongs to; `None` for the package itself."""
    _, _, inside = module_name.partition(".")
    return inside.partition(".")[0] or None


def _height(lines: list[str], room: str) -> int:
    return next(height for height, line in enumerate(lines) if room in line.split())


@cache
def _files() -> dict[str, Module]:
    return {module.name: module for module in _ours()}


def _circles() -> list[set[str]]:
    """The largest sets of files of which each imports each other, by whatever way."""
    files = _files()
    reached = {
        name: {_imported(used) for used in module.imports} & set(files) for name, module in files.items()
    }
    while True:  # until one more round of going on from what is reached reaches nothing new
        further = {name: seen.union(*(reached[other] for other in seen)) for name, seen in reached.items()}
        if further == reached:
            break
        reached = further
    circles = {frozenset(b for b in reached[a] if a in reached[b]) for a in files if a in reached[a]}
    return [set(circle) for circle in circles if len(circle) > 1]


def test_layer_packages_never_import_tests_examples_or_benchmarks() -> None:
    outside = {"bench", "conftest", "examples", "house", "reference", "strategies", "tests"}
    report(
        f"{module.where(used.line)}: imports {used.module}"
        for module in _ours()
        for used in module.imports
        if used.top in outside
    )


def test_layer_timely_and_differential_know_nothing_of_spark() -> None:
    core = [module for module in _ours() if not _is_in(module, "timely/spark")]
    report(f"{module.where(used.line)}: timely.spark" for module, used in _imports(core, "timely.spark"))


def test_layer_spark_knows_nothing_of_collections() -> None:
    spark = [module for module in modules("timely") if _is_in(module, "timely/spark")]
    report(f"{module.where(used.line)}: differential" for module, used in _imports(spark, "differential"))


def test_layer_progress_is_pure() -> None:
    report(
        f"{module.where(used.line)}: {used.module}"
        for module in modules("progress")
        for used in module.imports
        if used.top in IMPURE and (module.path.as_posix(), used.top) not in PURE_BUT_FOR
    )


def test_layer_no_package_uses_private_names_of_another() -> None:
    """`progress.compiled.kernel` is the exception: it has the decorator for our own kernels, which users do
    not see.
    """
    report(
        f"{module.where(used.line)}: {used.module}.{used.name or ''}"
        for module in _ours()
        for used in module.imports
        if used.top in PACKAGES and used.top != module.path.parts[0]
        if any(part.startswith("_") for part in [*used.module.split("."), used.name or ""])
        if used.module != "progress.compiled.kernel"
    )


# only_


def test_only_one_folder_imports_zmq() -> None:
    report(
        module.where(used.line)
        for module, used in _imports(_ours(), "zmq")
        if not _is_in(module, "timely/wire/transport")
    )


def test_only_one_folder_imports_pyspark() -> None:
    report(
        module.where(used.line)
        for module, used in _imports(_ours(), "pyspark")
        if not _is_in(module, "timely/spark")
    )


def test_only_six_files_import_numba() -> None:
    """What compiles and what calls, and the machine instructions (unchecked loads, products of 128
    bits) that Python has no words for."""
    users = {module.path.as_posix() for module, _ in _imports(_ours(), "numba")}
    kernels = {"differential/kernels/rows/memory.py", "differential/kernels/overflow.py"}
    compiler = {
        f"progress/compiled/machine_code/{name}.py" for name in ("calling", "compiling", "parts", "shortcuts")
    }
    assert users <= compiler | kernels, users


def test_only_the_kernel_decorator_compiles() -> None:
    """How everything compiles is decided once: without the interpreter lock, cached, no fastmath."""
    ways = {"cfunc", "guvectorize", "jit", "jitclass", "njit", "stencil", "vectorize"}
    report(
        f"{module.where(part.lineno)}: numba.{part.attr}"
        for module in _ours()
        if module.path.as_posix() != "progress/compiled/machine_code/compiling.py"
        for part in module.parts
        if isinstance(part, ast.Attribute) and part.attr in ways and ast.unparse(part.value) == "numba"
    )


def test_only_precise_types_are_used() -> None:
    """No `Any`: what comes out of an untyped library is given its type where it enters."""
    report(
        module.where(used.line)
        for module, used in _imports([*_ours(), *modules("tests")], "typing.Any")
        if used.name == "Any"
    )


def test_only_messages_are_pickled_nowhere() -> None:
    banned = ("pickle", "cloudpickle", "dill", "marshal", "shelve")
    core = [
        module
        for module in _ours()
        if not _is_in(module, "timely/spark") and module.path.as_posix() not in MAY_PICKLE
    ]
    report(module.where(used.line) for package in banned for module, used in _imports(core, package))


# size_


def test_size_functions_fit_on_a_screen() -> None:
    report(
        f"{module.where(function.lineno)}: {function.name} has {length} lines, {FUNCTION_LINES_MAX} allowed"
        for module in python_files()
        for function in module.functions
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    )


def test_size_modules_answer_one_question() -> None:
    report(
        f"{module.path}: {module.line_count} lines, {MODULE_LINES_MAX} allowed"
        for module in python_files()
        if module.line_count > MODULE_LINES_MAX
    )


def test_size_a_room_holds_a_dozen_files() -> None:
    counts = Counter(
        module.path.parent.as_posix()
        for package in (*PACKAGES, "tests")
        for module in modules(package)
        if not module.is_package
    )
    report(
        f"{folder}: {count} files, {ROOM_FILES_MAX} allowed; which of them belong together?"
        for folder, count in counts.items()
        if count > ROOM_FILES_MAX and folder not in WITHOUT_A_ROOM_LIMIT
    )


# complete_


def test_complete_every_file_says_what_it_is_for() -> None:
    report(str(module.path) for module in python_files() if not ast.get_docstring(module.tree))


def test_complete_packages_are_marked_as_typed() -> None:
    report(f"{package}/py.typed" for package in PACKAGES if not (ROOT / package / "py.typed").is_file())


def test_complete_folders_of_tests_are_no_packages() -> None:
    """`tests/progress/__init__.py` would make `import progress` find the tests instead of the package."""
    report(
        f"tests/{package}/__init__.py"
        for package in PACKAGES
        if (ROOT / "tests" / package / "__init__.py").exists()
    )


def test_complete_every_module_has_its_test_file() -> None:
    report(
        f"{module.path}: no tests/{module.path.parts[0]}/**/test_{_plain_name(module)}.py"
        for module in _ours()
        if module.path.name not in ("__init__.py", "__main__.py")
        if module.path.as_posix() not in WITHOUT_A_TEST_FILE
        if not _test_files(module)
    )


def test_complete_modules_excused_from_a_test_file_exist_and_are_tested_where_it_says() -> None:
    for path, tested_in in WITHOUT_A_TEST_FILE.items():
        assert (ROOT / path).exists(), path
        assert (ROOT / "tests" / tested_in).exists(), tested_in


def _plain_name(module: Module) -> str:
    return module.path.stem.strip("_")


def _test_files(module: Module) -> list[str]:
    """`timely` is also tested on real processes, in simulation and with Spark: those folders count too."""
    package = module.path.parts[0]
    folders = [package, "processes", "simulation", "spark"] if package == "timely" else [package]
    name = f"test_{_plain_name(module)}.py"
    return [str(found) for folder in folders for found in _files_of_tests(folder) if found.name == name]


@cache
def _files_of_tests(folder: str) -> list[Path]:
    return list((ROOT / "tests" / folder).rglob("test_*.py"))


def test_complete_progress_asserts_what_it_relies_on() -> None:
    assertions = functions = 0
    for module in modules("progress"):
        counted = [function for function in module.functions if _has_a_body_to_guard(function)]
        functions += len(counted)
        assertions += sum(isinstance(part, ast.Assert) for function in counted for part in ast.walk(function))
    if functions == 0:
        return
    figure = assertions / functions
    print(f"progress: {assertions} assertions in {functions} functions, {figure:.2f} each")  # noqa: T201
    assert figure >= ASSERTIONS_PER_FUNCTION_MIN, f"{figure:.2f} assertions per function, 2 is the aim"


def _has_a_body_to_guard(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """More than one statement, and no kernel: the caller asserts what a kernel needs, once per batch."""
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    decorators = {ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list}
    return len(statements) > 1 and not {"kernel", "small_kernel"} & decorators


def test_complete_every_file_of_the_journey_exists() -> None:
    """`docs/journey_of_a_record.md` leads a newcomer through the files; a renamed one must not lose him."""
    journey = ROOT / "docs" / "journey_of_a_record.md"
    assert journey.exists(), "docs/journey_of_a_record.md is missing"
    path_of_ours = r"`((?:progress|timely|differential|examples|tests|bench)/[\w./]*)`"
    named = re.findall(path_of_ours, journey.read_text())
    assert named, "the journey names no file"
    report(path for path in named if not (ROOT / path).exists())


def test_complete_every_limit_names_its_unit() -> None:
    """A limit ends in what it counts and a bound: `frame_bytes_max`, `flush_interval_ms_max`."""
    limits = ROOT / "timely" / "limits.py"
    if not limits.exists():
        return
    counted = "bits|bytes|calls|count|depth|epochs|frames|iterations|levels|messages|peers|rows|workers"
    good = re.compile(rf"\w*_?({counted}|us|ms|s|seconds)_(max|min|default)", re.IGNORECASE)
    names = Module(limits.relative_to(ROOT)).defined_names
    units = re.compile(r"[KMG]I?B|\w+_BYTES_MAX", re.IGNORECASE)
    report(name for name in names if not good.fullmatch(name) and not units.fullmatch(name))
