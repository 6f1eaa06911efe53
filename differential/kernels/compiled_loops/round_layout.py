"""How does a kernel know what workers exchange of a loop that several of them run?

What `layout.py` says of a loop that runs alone holds here, too; see `rounds.py`.
"""

from __future__ import annotations

from typing import Final

# the state of rounds: see `rounds.py`
R_PHASE: Final = 0
"""The next phase: `LISTENS`, `WORKS` or `VOTES`."""
R_TURNS: Final = 1
"""Rounds that may be taken up before the call ends."""
R_LOOKS: Final = 2
"""How often the kernel looks for a message that is not there yet."""
R_KEPT: Final = 3
"""The least time of what is kept for barriers outside of slots; FAR: nothing is."""
R_ANCHOR: Final = 4
"""The epoch from which time words count, and where epochs begin in them."""
R_SHIFT: Final = 5
R_WORD: Final = 6
"""The time word of round messages that bring rows."""
R_ENDED: Final = 7
"""The number of ports; for each of them a vote says whether more rows will come."""
R_FIRST_OF_ALL: Final = 8
"""The first epoch in which anything is outstanding with any worker, as of the last round that was taken up.
"""
R_ARE_ALIKE: Final = 9
"""Whether in that round no worker kept anything, and all said the same of what has ended."""
R_VOTE: Final = 10
"""The last vote of this worker, in the order of the wire: 7 words, then two of 0 or 1, then how many bytes
say what has ended.
"""
ROUND: Final = R_VOTE + 10

V_WORKER: Final = 0
V_NUMBER: Final = 1
V_BOUND: Final = 2
V_FIRST: Final = 3
V_BARRIER: Final = 4
V_COUNTERS: Final = 5
V_PARTS: Final = 6
V_PASSES: Final = 7
V_IS_EMPTY: Final = 8
V_ENDED: Final = 9

LISTENS: Final = 0
WORKS: Final = 1
VOTES: Final = 2

# outs
O_SLOT: Final = 0
"""Where rows for another worker wait, which line leads to it, and where they wait there."""
O_LINE: Final = 1
O_TARGET: Final = 2
O_BARRIER: Final = 3
"""The barrier that they wait for there; -1: none."""
O_SYMBOLS: Final = 4
"""Whether words of theirs are symbols."""
OUT: Final = 5

# why a call has ended, beside the reasons in `layout.py`
WAITS: Final = 8
"""Messages of others are not there yet."""
HEARS_ELSEWHERE: Final = 12
"""Python takes up what comes next: no round message, not the one that is expected, or after too many rounds.
"""
SOMEBODY_SLEEPS: Final = 9
VOTES_ELSEWHERE: Final = 10
"""Python sends the next vote: rings have no room for it, or symbols go with it."""
ENDS: Final = 11
"""The span has ended, by the last round that was taken up."""
