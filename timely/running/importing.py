"""Who exports what a dataflow wants to import, and what becomes of importers when their owner ends.

An owner is named by its number, by its name, or by the last part of that: `mentions` for
`my_queries:mentions`. Every worker looks for itself, and worker 0 compares what they have found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import MisuseError, TimelyError, UninstalledError, class_names, revive
from ..failure import story_of
from ..operators.failures import EXPORTED_BESIDE
from ..operators.imported import Exported
from .instance import Instance

__all__ = ["exported_by", "importers_of", "lost_owner", "named"]


def exported_by(instances: Mapping[int, Instance], owner: int | str, export: str) -> Exported:
    """What the dataflow `owner` exports as `export`; `MisuseError` says what there is instead."""
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
        raise MisuseError(f"{title} does not export {export!r}: it exports {offered}")
    vertex = instance.runners[instance.frozen.stage_of[declared.stage]].vertex
    assert vertex is not None, "a stage that exports has a vertex"
    return Exported(instance.index, instance.frozen.name, export, declared.of_input, vertex)


def named(instances: Mapping[int, Instance], owner: int | str) -> int:
    """The number of the running dataflow that is called so."""
    if isinstance(owner, int):
        found = [owner] if owner in instances else []
    else:
        # A version that is on its way in or out is not the one that is meant.
        names = {index: one.frozen.name for index, one in instances.items() if not one.is_standby}
        found = [index for index, name in names.items() if name == owner]
        found = found or [index for index, name in names.items() if _short(name) == owner]
    if len(found) == 1:
        return found[0]
    if found:
        raise MisuseError(
            f"several dataflows are called {owner!r}: {', '.join(map(str, found))}. Say which by its number"
        )
    running = ", ".join(f"{index} ({one.frozen.name})" for index, one in instances.items())
    raise MisuseError(f"no dataflow {owner!r} runs here: there are {running or 'none'}")


def _short(name: str) -> str:
    return re.split(r"[:.]", name)[-1]


def importers_of(instances: Mapping[int, Instance], owner: int) -> list[Instance]:
    """The dataflows that read something of `owner`."""
    return [one for one in instances.values() if owner in one.reads]


def lost_owner(importer: Instance, owner: int, error: TimelyError) -> TimelyError:
    """What ends an importer when its owner has ended with `error`."""
    read = (*importer.imports, *importer.feeds.values())
    (first, *_) = [one.exported for one in read if one.exported.dataflow == owner]
    who = f"dataflow {importer.index} ({importer.frozen.name}) reads {first.title()}"
    if isinstance(error, UninstalledError):
        return UninstalledError(f"{who}, which was uninstalled")
    return revive(class_names(error), f"{who}, which has ended: {story_of(error)}")
