"""Stop a worker under full load, and print how much each process has grown.

PYTHONPATH=tests python -m soak.stopped --seconds 20 tables     one scene; without a name, all of them
"""

from __future__ import annotations

import argparse

from soak.stopped.scenes import SCENES, measure


def main() -> None:
    """Run scenes, and print what they came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", default=list(SCENES))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--before", type=float, default=3.0)
    parser.add_argument("--goes-on", action="store_true", help="stop no worker, to compare")
    asked = parser.parse_args()
    for name in asked.scenes:
        growth = measure(SCENES[name], asked.seconds, asked.workers, asked.before, not asked.goes_on)
        grown = ", ".join(
            f"{who} {mib:+.0f} MiB ({growth.mib_behind[who]:+.0f} behind)" for who, mib in growth.mib.items()
        )
        print(f"{name}: {grown}; calls {growth.calls}, right {growth.seconds_behind:.1f} s later", flush=True)


if __name__ == "__main__":
    main()
