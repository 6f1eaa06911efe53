"""Requests about inputs that name an older version of a dataflow: a newer one has the inputs now.

The client knows the columns that the older version has. If the newer one has others, rows that came without
names of columns get them here, and the codec of the newer version takes the table if it can: it widens
values, and fills columns that have a default. Otherwise the client gets one error, which says where to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from ...errors import InputClosedError, MisuseError, ReplacedError, RequestError
from ...operators.inputs.plain_rows import table_of_plain
from ...wire.requests import Decide, Deliver, Describe, Drop, Missing, Reply, Request, Uninstall
from ..replacing import Replacements
from .inputs import inputs_named
from .later import Later

__all__ = ["OF_INPUTS", "OlderClients"]

OF_INPUTS = (Deliver, Decide, Missing, Drop, Describe, Uninstall)
"""The requests that go to the version of a dataflow that has the inputs now."""

_Handle: TypeAlias = Callable[[Request, pa.Table | None], Reply | Later]


class OlderClients:
    """Hands requests on to the version that has the inputs now. `handle` carries one out."""

    def __init__(self, replacements: Replacements, handle: _Handle) -> None:
        self._replacements = replacements
        self._handle = handle

    def handle(self, request: Request, table: pa.Table | None) -> Reply | Later:
        """Carry a request out, addressed to the newest version; as it is, if it is not about inputs."""
        if not isinstance(request, OF_INPUTS):
            return self._handle(request, table)
        current = self._replacements.inputs_of(request.dataflow)
        if current == request.dataflow:
            return self._handle(request, table)
        for name in inputs_named(request):
            self._replacements.check_input(request.dataflow, name)
        newer = replace(request, dataflow=current)
        if isinstance(newer, Deliver):
            form = self._replacements.older_form(request.dataflow, newer.input)
            if form is not None:
                self._replacements.check_runs(current)
                return self._delivered(request.dataflow, newer, table, form)
        return self._handle(newer, table)

    def _delivered(
        self, older: int, request: Deliver, table: pa.Table | None, form: pa.Schema
    ) -> Reply | Later:
        """Take rows of a client that knows the columns `form` of the version `older`."""
        if request.rows:
            table = table_of_plain(request.rows, form, request.input, keys_only=request.diff < 0)
            request = replace(request, rows=[])
        try:
            return self._handle(request, table)
        except (InputClosedError, RequestError):  # whatever the columns: an append may be there already
            raise
        except MisuseError as error:
            raise ReplacedError(
                f"dataflow {older} was replaced by dataflow {request.dataflow}, whose input "
                f"{request.input!r} has other columns: {error}\n  Ask for the new version, "
                f"cluster.flow({request.dataflow}), and send its columns. An input that declares "
                "defaults={…} fills columns that such tables lack"
            ) from error
