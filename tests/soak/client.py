"""A client that may be killed at any moment.

python -m soak.client ADDRESS DATAFLOW FIRST_TAG INPUT SIZE
"""

from __future__ import annotations

import sys

import timely

from .queries import rows_of_stranger


def main(address: str, dataflow: str, first_tag: str, name: str, is_small: str) -> None:
    """Insert and seal without an end."""
    with timely.connect(address) as cluster:
        flow = cluster.flow(int(dataflow))
        for tag in range(int(first_tag), int(first_tag) + 10_000):
            if tag % 16 == 15 and is_small == "small":
                continue
            flow.input(name).insert(rows_of_stranger(tag))
            if tag % 3 == 0:
                flow.seal()


if __name__ == "__main__":
    main(*sys.argv[1:])
