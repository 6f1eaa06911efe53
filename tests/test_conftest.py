"""How tests are configured: the seed alone decides which examples Hypothesis tries, wherever they run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

PROGRAM = """
import conftest
from hypothesis import settings
from hypothesis.internal.conjecture import engine

for name in ("quick", "thorough"):
    profile = settings.get_profile(name)
    assert not profile.derandomize and profile.database is None and profile.deadline is None, profile
assert settings.default == settings.get_profile("quick")
assert engine.MAX_SHRINKING_SECONDS == conftest.SHRINKING_SECONDS
"""


def test_examples_do_not_depend_on_where_tests_run() -> None:
    """Hypothesis has other defaults where the environment says that it runs in continuous integration."""
    environment = {**os.environ, "CI": "true", "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=120)
