"""Who holds a time: where was a capability made?

Nobody keeps a list of capabilities, which would cost each of them something. So the garbage collector says
which capabilities refer to a vertex. That takes tens of milliseconds in a process with millions of objects,
and happens only if somebody asks what holds an epoch, and a vertex holds it. A worker process that rests then
looks through all objects once more.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

from progress.times.timestamp import Timestamp

from ...operators.capability import Capability
from ...operators.vertex import Vertex
from ...user_code.call_site import CallSite
from ..collecting import thaw

__all__ = ["capability_sites"]


def capability_sites(vertices: Sequence[Vertex]) -> dict[tuple[int, Timestamp], CallSite]:
    """Return the line that has made the capability at a time, by the `id` of the vertex and the time; of
    several at one time, one of them.
    """
    sites: dict[tuple[int, Timestamp], CallSite] = {}
    wanted = {id(vertex) for vertex in vertices}
    if vertices:
        thaw()  # the collector says nothing of objects that are frozen
    for one in gc.get_referrers(*vertices) if vertices else ():
        if type(one) is Capability and one.is_held and one.site.line:
            for vertex in wanted.intersection(map(id, gc.get_referents(one))):
                sites[vertex, one.time] = one.site
    return sites
