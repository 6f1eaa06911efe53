"""What every test shares: how many examples Hypothesis tries, one seed, no process left behind, kernels that
are compiled once, and which tests stay together where several processes share the work.

    pytest                                      quick: the same examples every time
    pytest --hypothesis-profile thorough        a thousand of them, another seed at each run
    pytest --seed 918273                        that seed, for Hypothesis and for every simulation

The seed is in the first lines of the output; a failing one is the bug report.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest
from compiled_kernels import compiled_twice
from few_objects import run_apart
from forked_workers import Nurseries, Starts
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import engine
from shared_sessions import in_order, scheduler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import timely

QUICK_SEED = 20_130
SHRINKING_SECONDS = 60
"""How long Hypothesis may shrink failing examples. Its own limit is as long as a test may take: the end of
the test would come in the middle of an example, and be reported as a failure that does not repeat.
"""
SHUTDOWN_GRACE_S = 30.0
SESSION_MARK = "NAIAD_TEST_SESSION"

# No deadline: the first call of a kernel compiles it. No example database: the seed alone decides. So the
# parent is named: where the environment says CI, another one draws examples from the text of each test.
# No explanations: for these Hypothesis traces each line, and slow examples take too long to shrink.
settings.register_profile(
    "quick",
    settings.get_profile("default"),
    max_examples=16,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=1000)
settings.load_profile("quick")
engine.MAX_SHRINKING_SECONDS = SHRINKING_SECONDS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--seed`."""
    parser.addoption("--seed", type=int, default=None, help="seed of Hypothesis and of every simulation")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before Hypothesis reads its own; mark this session's child processes."""
    seed = config.getoption("--seed")
    if seed is None and not _is_thorough(config):
        seed = QUICK_SEED
    config.stash[_SEED] = random.randrange(2**31) if seed is None else seed
    config.option.seed = config.stash[_SEED]  # processes that share the work are given the options
    # 4.1 leaves each of its sockets to Java to the search for garbage.
    if version("pyspark").startswith("4.1."):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(config.stash[_SEED])
    config.addinivalue_line("markers", "few_objects: in a process of its own where many tests are collected")
    os.environ[SESSION_MARK] = str(os.getpid())
    if not _is_thorough(config):
        _draw_no_constants_of_the_code()
    _keep_bytecode()


def _draw_no_constants_of_the_code() -> None:
    """Hypothesis also draws constants that it finds in the code of all modules that are imported so far.

    With them, the examples of a test depend on the tests before it in its process, on where the repository
    lies (Hypothesis skips code in a folder `tests`), and on each constant that somebody changes. The thorough
    profile draws them.
    """
    from hypothesis.internal.conjecture import providers

    vars(providers)["_get_local_constants"] = lambda: providers._local_constants


def _keep_bytecode() -> None:
    """Also where the environment says not to: the tests start some hundreds of Pythons, each of which would
    compile the same four hundred files, and compiled kernels are kept in the same folders anyway.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels once before several processes need them at the same time, each for a minute. While
    tests run already, an archive of classes is made for the twenty times that they start Spark.
    """
    config = session.config
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.stash[_ARCHIVE] = _python("from timely.spark.archive import make_archive; make_archive()")
        if config.args == config.getini("testpaths"):
            _compile_tests_once()
        if _python("from differential.warming import warm_once; warm_once()").wait() != 0:
            raise pytest.UsageError("the kernels cannot be compiled")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Share out files; those that use one Spark stay together."""
    return scheduler(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The process that makes the archive is not left behind."""
    if _ARCHIVE in session.config.stash:
        session.config.stash[_ARCHIVE].wait()


def _compile_tests_once() -> None:
    """Of a fresh clone: each of the processes that share the work collects all tests, and would compile the
    same files at the same time as the others, 15 s of a processor each.
    """
    new = [
        str(file)
        for file in sorted(_TESTS.rglob("test_*.py"))
        if not any((file.parent / "__pycache__").glob(f"{file.stem}.*-pytest-*.pyc"))
    ]
    if len(new) < _COMPILED_BEFOREHAND_MIN:
        return
    count = os.cpu_count() or 1
    collect = [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]
    collecting = [
        subprocess.Popen([*collect, *new[part::count]], cwd=_TESTS.parent, stdout=subprocess.DEVNULL)
        for part in range(count)
    ]
    for process in collecting:
        process.wait()  # what does not compile is told of by those that run tests


def _python(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parent.parent)


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to repeat this run."""
    return f"seed: {config.stash[_SEED]} (replay with --seed {config.stash[_SEED]})"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no process is left with one of them at the end."""
    order = in_order(dict.fromkeys(str(item.path.relative_to(_TESTS)) for item in items))
    items.sort(key=lambda item: order[str(item.path.relative_to(_TESTS))])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes some millions of objects that stay. Looking for garbage among them meanwhile takes a
    sixth of the time, and each of the processes that share the work collects all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What has been collected stays until the end: no search for garbage need go through it, nor is one worth
    its second now. A test makes thousands of small dataflows: by default a fifth of its time is spent on
    looking for garbage.
    """
    gc.freeze()
    gc.set_threshold(_GARBAGE_LOOKED_FOR_AFTER, 20, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Tests of the collector have a process with few objects."""
    return run_apart(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """What the tests of a file leave stays, too. Some parse every file that there is, and keep a million
    parts of them: until they were out of sight, each `uninstall` of an embedded worker, which looks for
    garbage, took 0.8 s for tests that came later.
    """
    yield
    if nextitem is None or nextitem.path != item.path:
        _look_no_more_at_what_is_left()


def _look_no_more_at_what_is_left() -> None:
    gc.collect()
    gc.freeze()


_COMPILED_BEFOREHAND_MIN = 100
_TESTS = Path(__file__).parent
_GARBAGE_LOOKED_FOR_AFTER = 50_000
_SEED = pytest.StashKey[int]()
_ARCHIVE = pytest.StashKey[subprocess.Popen[bytes]]()


def _is_thorough(config: pytest.Config) -> bool:
    return bool(config.getoption("--hypothesis-profile") == "thorough")


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run, for simulations: derive one per schedule from it and name it in the failure."""
    return request.config.stash[_SEED]


@pytest.fixture(scope="session")
def effort(request: pytest.FixtureRequest) -> int:
    """How much more to try than in a quick run: 1, or 20 with the thorough profile."""
    return 20 if _is_thorough(request.config) else 1


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt` here, and ends the processes that this one starts, whatever is said
    outside: a shell that starts the tests in the background lets them ignore SIGINT, as `nohup` may.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def alone_in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No group of workers is in this process but those that join within the test: an embedded cluster of an
    earlier test, which nobody has closed or collected, would hold words.
    """
    from timely.worker import together

    monkeypatch.setattr(together._process, "groups", WeakSet())
    together._process.at_work.clear()
    yield
    together._process.at_work.clear()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session with two cores for all tests: starting it costs more than any of them. A task may be
    tried three times.
    """
    from timely.spark.session import local_session  # Spark takes its time to import

    session = local_session(cores=2, app="tests", attempts=3)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def two_workers() -> Iterator[timely.Cluster]:
    """Two worker processes for all tests that leave no query on them: starting them costs more than most
    queries.
    """
    import timely

    with timely.connect(workers=2) as cluster:
        yield cluster
        assert cluster.flows() == {}, "somebody has left a query behind"


@pytest.fixture(scope="session", autouse=True)
def _kernels_are_compiled_once() -> Iterator[None]:
    """Known only when everything has called them; in each process that ran tests."""
    yield
    if twice := compiled_twice():
        pytest.fail("kernels with more than one signature:\n  " + "\n  ".join(twice))


@pytest.fixture(scope="session", autouse=True)
def _no_worker_is_left_behind() -> Iterator[None]:
    """A worker process that outlives its test holds ports and memory, and a user's machine would keep it."""
    yield
    deadline = time.monotonic() + SHUTDOWN_GRACE_S
    while left := _workers_of_this_session():
        if time.monotonic() > deadline:
            pytest.fail("worker processes were left behind:\n  " + "\n  ".join(left))
        time.sleep(0.05)


@pytest.fixture(scope="session", autouse=True)
def _nurseries(_no_worker_is_left_behind: None) -> Iterator[Nurseries]:
    """The workers and folds that these tests start are forked from a process that has imported everything."""
    from timely.worker import launcher
    from timely.worker.durability.folds import fold_process

    nurseries = Nurseries(Starts(launcher.start_process, fold_process.start_python))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launcher, "start_process", nurseries.start)
        patch.setattr(fold_process, "start_python", nurseries.python)
        yield nurseries
    nurseries.end()


@pytest.fixture
def workers_by_command(_nurseries: Nurseries, monkeypatch: pytest.MonkeyPatch) -> None:
    """All workers are started as a user's are."""
    from timely.worker import launcher

    monkeypatch.setattr(launcher, "start_process", _nurseries.by_command.worker)


def _workers_of_this_session() -> list[str]:
    """Command lines of live processes that carry this session's mark and run `timely.worker`.

    Found by their environment and not by their parent: an orphan belongs to the init process. Where there is
    no /proc (macOS) nothing is found.
    """
    mark = f"{SESSION_MARK}={os.getpid()}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # gone in the meantime, or another user's
            continue
        if mark in environment and "timely.worker" in command:
            found.append(f"{process.name}: {command}")
    return found
