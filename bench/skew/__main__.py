"""The third seed's evaluation, simulated: messages, moves, imbalance, storage and work, against skew and
units.

    python -m bench.skew [FOLDER] [--quick] [--json] [--write bench/results/skew.md]

FOLDER holds the data sets tpch-sf0.02 and linear-road-20min; it is ../shared/data if it is left out.
Everything but the seconds is exact, and the same on every machine. `--json` prints an object for each run, as
it is made.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench.machine import versions

from .charts import draw
from .figures import Extent, measure_all
from .tables import tables


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="figures of joins of skewed streams, by counting")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="few skews and units: about a minute")
    parser.add_argument("--json", action="store_true", help="an object for each run, and no tables")
    parser.add_argument("--write", type=Path, metavar="FILE", help="tables to FILE, plots beside it")
    options = parser.parse_args()
    road = options.folder / "linear-road-20min"
    extent = Extent.quick() if options.quick else Extent()
    made = []
    for each in measure_all(options.folder / "tpch-sf0.02", road if road.exists() else None, extent):
        made.append(each)
        if options.json:
            print(json.dumps(each.as_object(), ensure_ascii=False), flush=True)
    shown = "\n".join(table.markdown() for table in tables(made))
    if options.write is not None:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        plots = options.write.parent / options.write.stem
        plots.mkdir(exist_ok=True)
        links = "\n".join(f"![{path.stem}]({plots.name}/{path.name})" for path in draw(made, plots))
        options.write.write_text(
            f"# Joins of skewed streams, by counting\n\n{shown}\n{links}\n\n{versions()}\n"
        )
    elif not options.json:
        print(shown)


if __name__ == "__main__":
    main()
