"""The cache folder: what is written is found whole, what others could have written is not read, and a place
where nothing can be written stops nobody.

Most tests run a fresh process that calls two small kernels, with a cache of the test's own. What it answers
is the result, and how many kernels it has compiled.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fresh_processes import python
from house import ROOT

import progress.compiled.cache_folder as module
from progress.compiled.cache_folder import cache_folder, can_write, has_files, read, sweep, write

OTHER_USER = 12_345
NOT_KEPT = "compiled kernels are not kept"
KERNELS = """
from progress.compiled.kernel import kernel

@kernel
def step(x: int) -> int:
    return x + 1

@kernel
def two_steps(x: int) -> int:
    return step(step(x))
"""
PROGRAM = """
import sys
from progress.compiled.kernel import kernels_compiled, on_compile
on_compile(None)
from steps import step, two_steps
sys.stdout.write(f"{two_steps(1)} {step(5)} {kernels_compiled()}")
"""
COMPILED, LOADED = "3 6 2", "3 6 0"
LARGE_KERNELS = """
from progress.compiled.kernel import kernel, large_kernel

@large_kernel
def many(x: int) -> int:
    for _ in range(4):
        x += 1
    return x

@kernel
def many_more(x: int) -> int:
    return many(many(x))
"""
RECORDS = """
import sys
import timely
from progress.compiled.kernel import kernels_compiled
from large import many_more

def build(flow):
    flow.output("lines", flow.input("lines").map(str.upper))

with timely.connect(embedded=True) as cluster:
    flow = cluster.install(build)
    for line in "ab":
        flow.input("lines").insert([line])
        flow.wait(flow.seal())
    assert flow.output("lines").changes() == [(0, "A"), (1, "B")]
assert many_more(1) == 9
sys.stdout.write(str(kernels_compiled()))
"""
FLOW = """
import sys
import differential as dd, timely
from progress.compiled.kernel import kernels_compiled

def build(flow):
    rows = dd.input(flow, "rows", "k: int, v: str")
    rows.distinct().output("rows")

with timely.connect(embedded=True) as cluster:
    flow = cluster.install(build)
    flow.input("rows").insert([(1, "a"), (1, "a"), (2, "a long text " * 9)])
    flow.wait(flow.seal())
    flow.input("rows").remove([(2, "a long text " * 9)])
    flow.wait(flow.seal())
    assert flow.output("rows").snapshot().to_pylist() == [{"k": 1, "v": "a"}]
sys.stdout.write(str(kernels_compiled()))
"""
AS_OTHER_USER = [
    *("setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"),
    *(
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    ),  # Python may lie where only root looks
]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can become another user"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter, with a module of two kernels."""
    made = Path(tempfile.mkdtemp(prefix="naiad-test-"))
    made.chmod(0o755)
    (made / "steps.py").write_text(KERNELS)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the two kernels are."""
    made = tmp_path_factory.mktemp("compiled")
    (made / "steps.py").write_text(KERNELS)
    assert run(made) == (COMPILED, "")
    return made / "cache"


@pytest.fixture
def filled(place: Path, compiled: Path) -> Path:
    """The place, with such a cache of its own."""
    shutil.copytree(compiled, place / "cache")
    assert run(place) == (LOADED, "")
    return place


def run(
    place: Path,
    program: str = PROGRAM,
    prefix: Sequence[str] = (),
    path: Path = ROOT,
    without: tuple[str, ...] = (),
    **environment: str,
) -> tuple[str, str]:
    """What a fresh process writes to both streams; with the cache in `place` unless another one is named."""
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    variables = {
        **inherited,
        "PYTHONPATH": os.pathsep.join([str(path), str(place)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NAIAD_CACHE": str(place / "cache"),
        **environment,
    }
    process = python(program, variables, place, prefix)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return printed, errors


def is_said_once(said: str) -> bool:
    """That what is compiled is not kept, and where to set another place."""
    return said.count(NOT_KEPT) == 1 and said.count("NAIAD_CACHE") == 1


def files(place: Path) -> list[Path]:
    """Those of kernels."""
    return sorted(each for each in (place / "cache" / "kernels").iterdir() if "-" in each.name)


# ------------------------------------------------------------------ where nothing can be written


def test_without_a_home_each_process_compiles_in_memory(place: Path) -> None:
    no_home = "import os, pwd\nfor name in ('HOME', 'XDG_CACHE_HOME'): os.environ.pop(name, None)\n"
    unknown = no_home + "def nobody(uid): raise KeyError(uid)\npwd.getpwuid = nobody\n"
    for _ in range(2):
        answer, said = run(place, unknown + PROGRAM, NAIAD_CACHE="")
        assert answer == COMPILED and is_said_once(said) and "no home" in said


@pytest.mark.parametrize("home", ["file", "file/below", "/proc/none"])
def test_with_a_home_that_cannot_be_written_each_process_compiles_in_memory(place: Path, home: str) -> None:
    (place / "file").write_text("")
    for _ in range(2):
        answer, said = run(place, NAIAD_CACHE="", XDG_CACHE_HOME="", HOME=str(place / home))
        assert answer == COMPILED and is_said_once(said)


NO_LARGE_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""


def test_a_file_that_cannot_be_written_to_its_end_leaves_nothing(place: Path) -> None:
    for _ in range(2):
        answer, said = run(place, NO_LARGE_FILES + PROGRAM)
        assert answer == COMPILED and is_said_once(said)
        assert not list((place / "cache").rglob("*.unfinished")) and not files(place)
    assert run(place) == (COMPILED, "")
    assert run(place) == (LOADED, "")


@needs_root
def test_on_a_full_disk_each_process_compiles_in_memory(place: Path) -> None:
    (place / "cache").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k,mode=755", "none", str(place / "cache")]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        for _ in range(2):
            answer, said = run(place)
            assert answer.startswith("3 6 ") and is_said_once(said) and "No space left" in said
            assert not list((place / "cache").rglob("*.unfinished"))
    finally:
        subprocess.run(["umount", str(place / "cache")], check=True)


@needs_root
def test_a_container_under_any_user_compiles_in_memory_and_reads_what_root_has_put_there(place: Path) -> None:
    """The package belongs to root, there is no home, and the user has no name."""
    nowhere = {"NAIAD_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/"}
    answer, said = run(place, PROGRAM, AS_OTHER_USER, **nowhere)
    assert answer == COMPILED and is_said_once(said)
    run(place)
    assert run(place, PROGRAM, AS_OTHER_USER, without=("HOME",)) == (LOADED, "")


@needs_root
def test_a_dataflow_runs_under_any_user_without_a_place_for_files(place: Path) -> None:
    (place / "large.py").write_text(LARGE_KERNELS)
    nowhere = {"NAIAD_CACHE": "", "XDG_CACHE_HOME": "", "TMPDIR": "/nowhere"}
    compiled, said = run(place, RECORDS, AS_OTHER_USER, without=("HOME",), **nowhere)
    assert int(compiled) > 2 and is_said_once(said)


# ------------------------------------------------------------------------------ a package in a zip


def zipped(place: Path) -> Path:
    """Our packages, as `sys.path` may name them."""
    made = place / "packages.zip"
    with zipfile.ZipFile(made, "w") as archive:
        for package in ("progress", "timely", "differential"):
            for file in sorted((ROOT / package).rglob("*.py")):
                archive.write(file, file.relative_to(ROOT))
        archive.writestr("steps.py", KERNELS)
    (place / "steps.py").unlink()
    return made


def test_kernels_in_a_zip_are_compiled_once_and_share_the_code_of_a_folder(filled: Path) -> None:
    place, made = filled, zipped(filled)
    for _ in range(2):
        assert run(place, path=made) == (LOADED, "")
    shutil.rmtree(place / "cache")
    assert run(place, path=made) == (COMPILED, "")
    assert run(place, path=made) == (LOADED, "")


def test_a_dataflow_runs_from_a_zip(place: Path) -> None:
    made = zipped(place)
    same_cache = {"NAIAD_CACHE": os.environ.get("NAIAD_CACHE", "")}
    run(place, FLOW, **same_cache)
    assert run(place, FLOW, path=made, **same_cache)[0] == "0", "the code of the folder is that of the zip"


# ---------------------------------------------------------------------------------- what others wrote


@needs_root
@pytest.mark.parametrize("what", ["folder", "files"])
def test_what_belongs_to_another_user_is_not_read(filled: Path, what: str) -> None:
    place = filled
    others = [place / "cache" / "kernels"] if what == "folder" else files(place)
    for each in others:
        os.chown(each, OTHER_USER, OTHER_USER)
    answer, said = run(place)
    assert answer == COMPILED
    if what == "folder":
        assert is_said_once(said) and "belongs to the user 12345" in said
        assert run(place)[0] == COMPILED, "nor is anything written there"
    else:
        assert said == "" and run(place) == (LOADED, ""), "they are replaced"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(filled: Path, mode: int) -> None:
    place = filled
    kernels = place / "cache" / "kernels"
    before = [each.read_bytes() for each in files(place)]
    kernels.chmod(mode)
    for _ in range(2):
        answer, said = run(place)
        assert answer == COMPILED and is_said_once(said) and "other users may write to it" in said
    assert [each.read_bytes() for each in files(place)] == before
    kernels.chmod(0o755)
    assert run(place) == (LOADED, "")


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_can_write_to_is_replaced_unread(filled: Path, mode: int) -> None:
    place = filled
    for each in files(place):
        each.chmod(mode)
    assert run(place) == (COMPILED, "")
    assert run(place) == (LOADED, "")
    assert not any(each.stat().st_mode & 0o022 for each in files(place))


def test_links_are_not_followed(filled: Path) -> None:
    place = filled
    for each in files(place):
        each.rename(place / each.name)
        each.symlink_to(place / each.name)
    assert run(place) == (COMPILED, "")
    (place / "cache" / "kernels").rename(place / "elsewhere")
    (place / "cache" / "kernels").symlink_to(place / "elsewhere")
    assert run(place)[0] == COMPILED


def test_a_process_that_lets_all_write_to_its_files_lets_nobody_write_to_these(place: Path) -> None:
    run(place, "import os\nos.umask(0)\n" + PROGRAM)
    made = [place / "cache" / "kernels", *(place / "cache" / "kernels").iterdir()]
    assert len(made) > 4
    assert not any(each.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) for each in made)
    assert run(place) == (LOADED, "")


# -------------------------------------------------------------------------------------------- damage


def damage(file: Path, random_number: random.Random) -> str:
    """As bad disks, lost power and untidy programs leave files."""
    how = random_number.choice(["cut", "empty", "flip", "zeros", "other", "pickle", "pipe", "gone"])
    data = bytearray(file.read_bytes())
    at = random_number.randrange(len(data)) if data else 0
    if how == "flip" and data:
        data[at] ^= 1 << random_number.randrange(8)
    elif how == "zeros":
        data[at:] = bytes(len(data) - at)
    file.unlink()
    if how == "pipe":
        os.mkfifo(file)
    elif how != "gone":
        others = {
            "cut": data[:at],
            "empty": b"",
            "other": random_number.randbytes(99),
            "pickle": b"cos\n_exit\n(I7\ntR.",
        }
        file.write_bytes(others.get(how, data))
    return f"{file.name}: {how}"


def test_damaged_files_are_as_none(filled: Path, seed: int) -> None:
    place, random_number = filled, random.Random(seed)
    for _ in range(4):
        some = random_number.sample(files(place), random_number.randint(1, len(files(place))))
        done = [damage(each, random_number) for each in some]
        answer, said = run(place)
        assert answer.startswith("3 6 ") and said == "", done
        assert run(place) == (LOADED, ""), done


@pytest.mark.timeout(300)
def test_a_dataflow_answers_with_damaged_files(place: Path, seed: int) -> None:
    random_number = random.Random(seed)
    here = cache_folder()
    assert here is not None
    run(place, FLOW, NAIAD_CACHE=os.environ.get("NAIAD_CACHE", ""))
    (place / "cache" / "kernels").mkdir(parents=True)
    for each in here.iterdir():
        age(Path(shutil.copy(each, place / "cache" / "kernels")), 2)
    assert run(place, FLOW)[0] == "0"
    # What a process reads it marks. What that is made of is damaged as well, for it could be linked anew.
    used = [each for each in files(place) if time.time() - each.stat().st_mtime < 86_400]
    kernels = {each.name.partition("-")[0] for each in random_number.sample(used, len(used) // 10)}
    whole = [each for each in files(place) if each.is_file()]
    struck = [each for each in whole if each.name.partition("-")[0] in kernels]
    done = [damage(each, random_number) for each in struck]
    assert run(place, FLOW)[0] != "0", done
    assert run(place, FLOW)[0] == "0", done


# -------------------------------------------------------------------------------------- size and age


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this process, for a test."""
    monkeypatch.setenv("NAIAD_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "_reasons", [])
    return tmp_path / "kernels"


def age(file: Path, days: float) -> None:
    """As if it was written, and used, that long ago."""
    then = time.time() - days * 86_400
    os.utime(file, (then, then))


def test_files_that_were_not_used_for_long_go_and_those_that_were_read_stay(cache: Path) -> None:
    for name in ("old", "read", "listed", "new"):
        assert write(name, b"x")
        age(cache / name, 0 if name == "new" else 61)
    assert read("read") == b"x" and has_files(["listed"])
    sweep()
    assert sorted(each.name for each in cache.iterdir()) == ["listed", "new", "read", "swept"]


def test_of_too_many_files_those_go_that_were_used_least_recently(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 1_000)
    for number in range(20):
        assert write(f"{number}", bytes(84))
        age(cache / f"{number}", 20 - number)
    sweep()
    assert sorted(int(each.name) for each in cache.iterdir() if each.name != "swept") == list(range(10, 20))


def test_a_sweep_comes_once_a_day_and_takes_what_a_dead_writer_has_left(cache: Path) -> None:
    assert write("one", b"x")
    sweep()
    for name, days in (("dead.unfinished", 0.1), ("writing.unfinished", 0.0), ("old", 99)):
        (cache / name).write_bytes(b"x")
        age(cache / name, days)
    sweep()
    assert len(list(cache.iterdir())) == 5
    age(cache / "swept", 1.1)
    sweep()
    assert sorted(each.name for each in cache.iterdir()) == ["one", "swept", "writing.unfinished"]


def test_who_compiles_sweeps(filled: Path) -> None:
    place = filled
    age(place / "cache" / "kernels" / "swept", 2)
    old = place / "cache" / "kernels" / "old-file.part"
    old.write_bytes(b"x")
    age(old, 99)
    assert run(place) == (LOADED, "") and old.exists(), "who only loads has no time for that"
    for each in files(place):
        if each.suffix == ".machine":
            each.unlink()
    run(place)
    assert not old.exists()


# ------------------------------------------------------------------------------------------- at once


def test_two_writers_leave_the_content_of_one(cache: Path) -> None:
    writers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys\nfrom progress.compiled.cache_folder import read, write\n"
                "for _ in range(300):\n"
                "    assert write('name', sys.argv[1].encode() * 50_000)\n"
                "    found = read('name')\n"
                "    assert found is not None and len(found) == 50_000 and len(set(found)) == 1\n",
                letter,
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for letter in "ab"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert [each.name for each in cache.iterdir()] == ["name"]


def test_a_folder_that_is_not_there_yet_can_be_written_and_is_made(cache: Path) -> None:
    assert read("name") is None and not has_files(["name"])
    assert can_write() and cache.is_dir()
    assert write("name", b"") and read("name") == b""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NAIAD_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a/kernels"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/naiad/kernels"),
        ({"XDG_CACHE_HOME": "b", "HOME": "/c"}, "/c/.cache/naiad/kernels"),
        ({"HOME": "/c"}, "/c/.cache/naiad/kernels"),
    ],
)
def test_where_the_folder_is(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NAIAD_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, environment.get(name, ""))
    assert cache_folder() == Path(expected)
