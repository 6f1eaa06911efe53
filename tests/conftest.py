"""What every test shares: how many examples Hypothesis tries, one seed, and no process left behind.

    pytest                                      quick: the same examples every time
    pytest --hypothesis-profile thorough        twenty times as many, another seed at each run
    pytest --seed 918273                        that seed, for Hypothesis and for every simulation

The seed is in the first lines of the output; a failing one is the bug report.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

QUICK_SEED = 20_130
SHUTDOWN_GRACE_S = 5.0
SESSION_MARK = "NAIAD_TEST_SESSION"

# No deadline: the first call of a kernel compiles it. No example database: the seed alone decides.
settings.register_profile(
    "quick", max_examples=50, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=1000)
settings.load_profile("quick")


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
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(config.stash[_SEED])
    os.environ[SESSION_MARK] = str(os.getpid())


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to repeat this run."""
    return f"seed: {config.stash[_SEED]} (replay with --seed {config.stash[_SEED]})"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whether kernels stayed uniform is known only when everything else has called them."""
    items.sort(key=lambda item: item.path.name == "test_kernels_are_uniform.py")


_SEED = pytest.StashKey[int]()


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


@pytest.fixture(scope="session", autouse=True)
def _no_worker_is_left_behind() -> Iterator[None]:
    """A worker process that outlives its test holds ports and memory, and a user's machine would keep it."""
    yield
    deadline = time.monotonic() + SHUTDOWN_GRACE_S
    while left := _workers_of_this_session():
        if time.monotonic() > deadline:
            pytest.fail("worker processes were left behind:\n  " + "\n  ".join(left))
        time.sleep(0.05)


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
