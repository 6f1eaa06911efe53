"""Many random SQL texts, each against DuckDB: the long form of `test_random_texts.py`.

    ./scripts/queries --texts 20000 --seed 7

It goes on behind a text that differs, prints it, and says in the end how many ran. One text runs again with
its seed: `--texts 1 --seed SEED`, but for the rows, which are those of its portion.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import traceback

from sql.judge import Judge
from sql.random_texts.comparing import compared
from sql.random_texts.wider_texts import WIDER_TABLES, wider_text

_PORTION = 40
"""Texts in one dataflow, whose tables have the same rows."""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Return 0 if all texts that ran are what DuckDB says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--refused", action="store_true", help="print texts that only DuckDB takes, too")
    arguments = parser.parse_args()
    judge, ran, wrong, refused, unneeded, optimised = Judge(), 0, 0, 0, 0, 0
    begin = time.monotonic()
    for start in range(arguments.seed, arguments.seed + arguments.texts, _PORTION):
        end = min(start + _PORTION, arguments.seed + arguments.texts)
        texts = {seed: wider_text(random.Random(seed), 1 + seed % 3) for seed in range(start, end)}
        try:
            outcome = compared(judge, texts, WIDER_TABLES, 1 + start // _PORTION % 2)
        except Exception:
            wrong += 1
            _say(f"--- the portion of {start} ended\n{traceback.format_exc()[-3000:]}")
            continue
        ran, wrong, refused = ran + outcome.count, wrong + len(outcome.wrong), refused + len(outcome.refused)
        unneeded, optimised = unneeded + outcome.unneeded, optimised + outcome.optimised
        for each in outcome.wrong:
            _say(f"--- DIFFERS {each}")
        for each in outcome.refused if arguments.refused else ():
            _say(f"--- REFUSED {each}")
        _say(f"{ran} ran, {wrong} differ, {refused} refused, {time.monotonic() - begin:.0f} s, up to {end}")
        gc.collect()
    _say(
        f"{ran} texts, {wrong} differ; {unneeded} scalars had several rows that no row needed, "
        f"{optimised} answers are DuckDB's where it optimises nothing"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
