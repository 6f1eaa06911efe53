"""`python -m timely.console`: see `command.py`."""

from __future__ import annotations

import sys

from ..errors import TimelyError
from ..giving_back import limit_arenas
from .command import run_command


def main(arguments: list[str]) -> int:
    """Run the command; return the exit status: 0 if it was interrupted, otherwise 1."""
    limit_arenas()  # each live table has threads of its own
    try:
        run_command(arguments, sys.stdout)
    except TimelyError as error:
        print(f"timely.console: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
