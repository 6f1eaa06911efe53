"""A table in a notebook that shows the rows of an output as they change: a widget, by anywidget.

The kernel is not blocked: a thread reads, and each frame goes to the notebook as one value, which the page
draws when it is visible. A click on the head of a column sorts by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import MisuseError
from .live_feed import Followed, LiveFeed
from .live_rows import Frame, LiveRows, RowOrder

if TYPE_CHECKING:
    from anywidget import AnyWidget

__all__ = ["live_table"]

_MODULE: Final = Path(__file__).with_name("live_table.js")
_STYLE: Final = Path(__file__).with_name("live_table.css")


@cache
def _widget_class() -> type[AnyWidget]:
    """Return the class of the widget, which is made when a user first wants one: anywidget takes 0.4 s."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise MisuseError(f"live() needs anywidget ({error}): pip install 'naiad[notebook]'") from None

    class LiveTable(anywidget.AnyWidget):
        """A live table. `close()` ends it; so does the end of the cluster."""

        _esm = _MODULE
        _css = _STYLE
        frame = traitlets.Dict().tag(sync=True)
        order: traitlets.List[object] = traitlets.List().tag(sync=True)

        def follow(self, feed: LiveFeed) -> None:
            """Show what a feed reads, from now on."""
            self._feed = feed
            self.observe(self._sort, "order")
            feed.start()

        def show(self, frame: Frame) -> None:
            """Show a frame."""
            self.frame = dict(frame)

        def _sort(self, change: Mapping[str, object]) -> None:
            match change.get("new"):
                case [str(column), bool(descending)]:
                    self._feed.sort(RowOrder(column, descending))

        def close(self) -> None:
            """Read no more, and remove the table from the notebook."""
            self._feed.close()
            super().close()

    return LiveTable


def live_table(output: Followed, rows: LiveRows) -> AnyWidget:
    """Return a table that follows an output, which has a position of its own."""
    table = _widget_class()()
    table.follow(LiveFeed(output, rows, table.show))
    return table
