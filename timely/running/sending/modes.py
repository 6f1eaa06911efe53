"""The names of the ways in which workers tell one another of progress (`telling.py`): a program that starts
workers needs the names, and none of the code.
"""

from typing import Final

__all__ = ["PROGRESS_MODES"]

PROGRESS_MODES: Final = ("eager", "demand", "host")
