"""`python -m timely.sql`: see `command.py`."""

from __future__ import annotations

import sys

from .command import run_command

if __name__ == "__main__":
    sys.exit(run_command(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr))
