"""The tables for the messages of workers that run a loop together.

They supplement `layout.py`, which is about a loop on one worker; see `rounds.py`.
"""

from __future__ import annotations

from typing import Final

# the state of rounds: see `rounds.py`
R_PHASE: Final = 0
"""The next phase: `LISTENS`, `WORKS` or `VOTES`."""
R_TURNS: Final = 1
"""Most rounds before the call ends."""
R_LOOKS: Final = 2
"""How often the kernel looks for a message that is not there yet."""
R_KEPT: Final = 3
"""The least time of rows that wait for barriers outside of slots; FAR: none wait."""
R_ANCHOR: Final = 4
"""The epoch from which time words count, and the position of the epoch in them."""
R_SHIFT: Final = 5
R_WORD: Final = 6
"""The time word of round messages with rows."""
R_ENDED: Final = 7
"""Number of ports; for each of them a vote says whether more rows will come."""
R_FIRST_OF_ALL: Final = 8
"""The first epoch in which any worker has something outstanding, as of the last round."""
R_ARE_ALIKE: Final = 9
"""1 if in that round no worker had waiting rows, and the votes of all agreed on which ports have ended."""
R_VOTE: Final = 10
"""The last vote of this worker, in the order of the wire: 7 words, then two of 0 or 1, then the number of
bytes about ended ports.
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
"""The slot in which rows for another worker wait, the line of its rings, and their slot at that worker."""
O_LINE: Final = 1
O_TARGET: Final = 2
O_BARRIER: Final = 3
"""The barrier for which they wait there; -1: none."""
O_SYMBOLS: Final = 4
"""1 if some of their words are symbols."""
OUT: Final = 5

# further reasons why a call has ended, beside those in `layout.py`
WAITS: Final = 8
"""Messages of other workers have not come yet."""
HEARS_ELSEWHERE: Final = 12
"""Python takes the next message: it is no round message, or an unexpected one, or the rounds are used up."""
SOMEBODY_SLEEPS: Final = 9
VOTES_ELSEWHERE: Final = 10
"""Python sends the next vote: rings have no room for it, or symbols go with it."""
ENDS: Final = 11
"""The span has ended with the last round."""
