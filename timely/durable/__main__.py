"""The entry point of `python -m timely.durable`: see `commands.py`."""

import sys

from .commands import main

if __name__ == "__main__":
    sys.exit(main())
