"""Callbacks of a vertex that cannot do what their author means: by their parameters, or by their results.

A callback with other parameters would fail with the first record, or, as `on_end`, only write to a log. A
callback that returns its records in place of sending them would lose them without a word.
"""

from __future__ import annotations

import inspect
from types import GeneratorType
from typing import Final

from progress.errors import MisuseError

__all__ = ["check_parameters", "check_result"]

_PARAMETERS: Final = {
    "on_recv": "edge, message, time",
    "on_notify": "time",
    "on_open": "capability",
    "on_end": "reason",
    "on_start": "",
    "on_activate": "",
    "on_resume": "",
    "on_frontier": "",
}
_NO_RESULTS: Final = (list, tuple, set, dict, GeneratorType)
"""What a callback returns by mistake. Other values, such as the number of bytes that a file has written, are
left alone: a callback may end in any call.
"""


def check_parameters(kind: type, base: type, where: str) -> None:
    """Raise MisuseError, which begins with `where`, if a callback of the class `kind` that is not that of the
    class `base` cannot be called as it is.
    """
    for name, parameters in _PARAMETERS.items():
        callback = inspect.getattr_static(kind, name)
        if callback is inspect.getattr_static(base, name) or not inspect.isfunction(callback):
            continue
        written = f"self, {parameters}".removesuffix(", ")
        # What is called is the wrapper: it may hand in what the function within takes besides.
        signature = inspect.signature(callback, follow_wrapped=False)
        try:
            signature.bind(*written.split(", "))
        except TypeError as error:
            raise MisuseError(
                f"{where}: {kind.__name__}.{name}{signature} cannot be called as it is "
                f"({error}). Write def {name}({written})"
            ) from None


def check_result(vertex: object, call: str, result: object) -> None:
    """Raise MisuseError if a callback has returned what looks like records."""
    if result is not None and isinstance(result, _NO_RESULTS):
        raise MisuseError(
            f"{vertex!r}: {call} returned a {type(result).__name__}, which nobody takes. Records are sent: "
            "self.send_by(0, records, time), and time may be that of the callback"
        )
