"""Exports of running dataflows, for dataflows that import them; and the end of importers with their owner.

An owner is named by its number, by its name, or by the last part of the name: `mentions` for
`my_queries:mentions`. Every worker looks for itself, and worker 0 compares the results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import MisuseError, TimelyError, UninstalledError, class_names, revive
from ..failure import full_text_of
from ..operators.failures import EXPORTED_BESIDE
from ..operators.imported import Exported
from .instance import Instance

__all__ = ["exported_by", "importers_of", "lost_owner", "named", "readings_of"]


def exported_by(instances: Mapping[int, Instance], owner: int | str, export: str) -> Exported:
    """Return what the dataflow `owner` exports as `export`; raise `MisuseError`, which lists its exports,
    if it exports no such thing.
    """
    instance = instances[named(instances, owner)]
    if instance.is_standby:
        raise MisuseError(
            f"dataflow {instance.index} ({instance.frozen.name}) is being replaced: wait for that"
        )
    title = f"dataflow {instance.index} ({instance.frozen.name})"
    declared = instance.frozen.exports.get(export)
    if declared is None:
        names = sorted(name for name in instance.frozen.exports if not name.endswith(EXPORTED_BESIDE))
        offered = ", ".join(map(repr, names)) or "nothing"
        raise MisuseError(
            f"{title} does not export {export!r}: it exports {offered}. Its query has to say "
            f"collection.export({export!r}, by='key'), or stream.export({export!r})"
        )
    vertex = instance.runners[instance.frozen.stage_of[declared.stage]].vertex
    assert vertex is not None, "a stage that exports has a vertex"
    return Exported(instance.index, instance.frozen.name, export, declared.of_input, vertex)


def named(instances: Mapping[int, Instance], owner: int | str) -> int:
    """Return the number of the running dataflow with this name or number; raise `MisuseError` if there is not
    exactly one.
    """
    if isinstance(owner, int):
        matches = [owner] if owner in instances else []
    else:
        # Leave out a version that is being replaced, or not in place yet.
        names = {index: one.frozen.name for index, one in instances.items() if not one.is_standby}
        matches = [index for index, name in names.items() if name == owner]
        matches = matches or [index for index, name in names.items() if _short(name) == owner]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise MisuseError(
            f"several dataflows are called {owner!r}: {', '.join(map(str, matches))}. Say which by its number"
        )
    running = ", ".join(f"{index} ({one.frozen.name})" for index, one in instances.items())
    raise MisuseError(f"no dataflow {owner!r} runs here: there are {running or 'none'}")


def _short(name: str) -> str:
    return re.split(r"[:.]", name)[-1]


def importers_of(instances: Mapping[int, Instance], owner: int) -> list[Instance]:
    """Return the dataflows that read an export of `owner`."""
    return [one for one in instances.values() if owner in one.reads]


def readings_of(importer: Instance) -> dict[int, str]:
    """Return in words what a dataflow reads, by the number of the owner."""
    who = f"dataflow {importer.index} ({importer.frozen.name}) reads"
    readings: dict[int, str] = {}
    for one in (*importer.imports, *importer.feeds.values()):
        readings.setdefault(one.exported.dataflow, f"{who} {one.exported.title()}")
    return readings


def lost_owner(reading: str, error: TimelyError) -> TimelyError:
    """Return the error that ends an importer when an owner has ended with `error`. `reading`: in words what
    it reads of that one.
    """
    if isinstance(error, UninstalledError):
        return UninstalledError(f"{reading}, which was uninstalled")
    return revive(class_names(error), f"{reading}, which has ended: {full_text_of(error)}")
