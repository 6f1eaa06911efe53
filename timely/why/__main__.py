"""`python -m timely.why`: see `command.py`."""

from __future__ import annotations

import sys

from ..errors import TimelyError
from .command import run_command


def main(arguments: list[str]) -> int:
    """Run the command and print its result; return the exit status: 0 if it succeeded, otherwise 1."""
    try:
        for line in run_command(arguments):
            print(line)
    except TimelyError as error:
        print(f"timely.why: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
