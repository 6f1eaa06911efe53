"""What stubs of a cluster's workers have in common: there are always the same workers."""

from __future__ import annotations

from timely.client.installed import Makes, Members, Requests
from timely.limits import REPLY_SECONDS_MAX
from timely.wire.requests import Reply

__all__ = ["FixedMembers"]


class FixedMembers:
    """Makes requests for `count` workers, and asks them by `ask`."""

    count: int
    incarnation: int = 0

    def ask(self, requests: Requests, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """See `Workers`."""
        raise NotImplementedError

    @property
    def members(self) -> Members:
        """See `Workers`."""
        return Members(self.count, self.incarnation)

    def ask_members(self, makes: Makes, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """See `Workers`."""
        return self.ask(makes(self.members), timeout_seconds)
