"""One sale, as the tables of TPC-H have it: an open order that was shipped at home, in ASIA."""

from __future__ import annotations

import gzip
from pathlib import Path

__all__ = ["write_sales"]

LINES = {
    "customer": "7|Ann|street|1|phone|0.00|BUILDING|none|",
    "orders": "1|7|O|9.00|1994-03-02|5-LOW|Clerk|4|none|",
    "lineitem": "1|5|3|1|17|120.50|0.04|0.02|N|O|1995-03-16|1996-02-12|1996-03-22|SHIP|TRUCK|none|",
    "supplier": "3|Sup|street|1|phone|0.00|none|",
    "nation": "1|INDIA|2|none|",
    "region": "2|ASIA|none|",
}


def write_sales(folder: Path) -> None:
    """Write a file of one line for each table into `folder`."""
    for table, line in LINES.items():
        with gzip.open(folder / f"{table}.tbl.gz", "wt") as file:
            file.write(line + "\n")
