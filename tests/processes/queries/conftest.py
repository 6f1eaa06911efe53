"""Clusters of every kind, on which nothing is left from one test to the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timely


@pytest.fixture(scope="module")
def processes() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


@pytest.fixture(params=["embedded 1", "embedded 2", "embedded 3", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    kind, _, count = str(request.param).partition(" ")
    if kind == "processes":
        found = request.getfixturevalue("processes")
        yield found
        for flow in sorted(found.flows(), reverse=True):
            found.flow(flow).uninstall(cascade=True)
        return
    with timely.connect(workers=int(count), embedded=True) as cluster:
        yield cluster
