"""Names of methods in other libraries, and what to write in their place for a flow, an input or an output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import MisuseError
from ..user_code.spellings import Spellings, like

__all__ = ["OF_CLUSTERS", "OF_FLOWS", "OF_INPUTS", "OF_OUTPUTS", "no_end", "of_rows", "of_snapshot"]

_ROWS: Final = (
    "snapshot() for all rows, or changes() for those that this client has not read yet: tables of Arrow, "
    "which have to_pylist(); to_pylist(), to_arrow() and to_pandas() of the output are those of the snapshot"
)
_FOLLOW: Final = "follow(): for epoch, changes in output.follow()"
_INSERT: Final = "insert(rows), a list of tuples or dicts, or a table; then flow.seal()"
_SEAL: Final = "seal(), which completes the open epoch of all inputs; seal(through=epoch) all up to one"
_ENTER: Final = "input('name').insert(rows)"
_READ: Final = "output('name').snapshot(), or .changes(), or .follow()"
_EXPLAIN: Final = (
    "print(dd.explain(dataflow)) at the end of the query; arrangements() says what is kept for whom"
)
_END: Final = "uninstall(), which ends the dataflow; input('name').close() ends what goes in"

OF_OUTPUTS: Final = Spellings(
    {
        **dict.fromkeys(("toPandas", "toArrow", "to_polars", "df"), _ROWS),
        **dict.fromkeys(
            ("collect", "read", "get", "fetch", "show", "rows", "result", "table", "values"), _ROWS
        ),
        **dict.fromkeys(("count", "num_rows", "to_df", "to_dict", "take", "head", "data", "read_all"), _ROWS),
        **dict.fromkeys(("subscribe", "watch", "listen", "poll", "stream", "iter", "foreach"), _FOLLOW),
    }
)
OF_INPUTS: Final = Spellings(
    {
        **dict.fromkeys(
            ("send", "add", "push", "put", "write", "extend", "feed", "give", "on_next"), _INSERT
        ),
        **dict.fromkeys(("insert_rows", "insert_many", "send_many", "load", "insert_all"), _INSERT),
        **dict.fromkeys(("seal", "commit", "flush", "advance", "advance_to", "advance_by"), "flow.seal()"),
        **dict.fromkeys(
            ("retract", "discard", "drop", "unsend"), "remove(rows); keys of an upsert input: delete"
        ),
        **dict.fromkeys(("schema", "columns", "dtypes", "name"), "repr(input), which shows name and columns"),
        "update": "remove(old) and insert(new), or upsert(rows) at an input of mode='upsert'",
    }
)
OF_FLOWS: Final = Spellings(
    {
        **dict.fromkeys(("commit", "advance", "advance_to", "advance_by", "flush", "step", "tick"), _SEAL),
        **dict.fromkeys(("run", "execute", "start", "next_epoch", "submit"), _SEAL),
        **dict.fromkeys(("insert", "send", "append", "upsert", "push", "put", "add"), _ENTER),
        **dict.fromkeys(("remove", "delete"), "input('name').remove(rows)"),
        **dict.fromkeys(("snapshot", "changes", "follow", "read", "collect", "to_pandas", "result"), _READ),
        **dict.fromkeys(("close", "stop", "cancel", "shutdown", "kill", "terminate"), _END),
        **dict.fromkeys(("explain", "plan", "describe"), _EXPLAIN),
        "stats": "cluster.stats()",
        "schema": "output('name').schema",
    }
)

_OF_A_FLOW: Final = "flow = cluster.install(query), or cluster.flow('name') of one that runs; then flow."
OF_CLUSTERS: Final = Spellings(
    {
        **{name: f"{_OF_A_FLOW}{name}(…)" for name in ("seal", "wait", "input", "output", "iterations")},
        **dict.fromkeys(("insert", "inputs", "outputs"), f"{_OF_A_FLOW}input('name'), or .output('name')"),
        **dict.fromkeys(
            ("uninstall", "remove", "delete", "drop", "cancel", "kill"), "flow('name').uninstall()"
        ),
        **dict.fromkeys(("submit", "run", "execute", "deploy", "add", "start", "dataflow"), "install(query)"),
        **dict.fromkeys(
            ("list", "ls", "dataflows", "list_flows", "queries", "jobs", "status"), "flows(), or stats()"
        ),
        **dict.fromkeys(("stop", "terminate", "disconnect", "exit", "quit"), "close()"),
    }
)


def no_end(flow: str, kind: str, name: object, inputs: Iterable[str], outputs: Iterable[str]) -> MisuseError:
    """Return the error about an input or an output, as `kind` says, that a flow does not have."""
    ends = {"input": list(inputs), "output": list(outputs)}
    other = "output" if kind == "input" else "input"
    message = f"{flow!r} has no {kind} {name!r}: there are {', '.join(map(repr, ends[kind])) or 'none'}"
    if name in ends[other]:
        return MisuseError(f"{message}. {name!r} is an {other}: write {other}({name!r})")
    return MisuseError(message + like(name, ends[kind]))


_DIFFS: Final = {"insert": 1, "upsert": 1, "remove": -1, "delete": -1}


def of_rows(entered: object, call: str, named: Mapping[str, object], error: TypeError) -> MisuseError:
    """Return the error for a `call` of an input with arguments that it does not take. Most often that is the
    epoch, which `append` takes.
    """
    if "epoch" not in named:
        argument = "keys" if call == "delete" else "rows"
        return MisuseError(
            f"{entered!r}: {error}. Write instead: {call}({argument}), or {call}({argument}, writer='load', "
            "sequence=0), which counts once. append(table) takes rows as often as their column 'diff' says"
        )
    epoch = named["epoch"]
    shown = repr(epoch) if isinstance(epoch, str | int) else "'day'"
    return MisuseError(
        f"{entered!r}: {call} takes no epoch: its rows belong to the open one. Write instead: "
        f"append(table, epoch={shown}). That table is one of Arrow with a column 'diff', here {_DIFFS[call]} "
        "in each row; epoch is a number, or the name of a column that says the epoch of each row"
    )


def of_snapshot(output: object, _call: str, _named: Mapping[str, object], error: TypeError) -> MisuseError:
    """Return the error for a snapshot with arguments that it does not take. Most often that is an epoch."""
    return MisuseError(
        f"{output!r}: {error}. snapshot() takes no epoch: it has the rows as of the last epoch that is "
        "sealed. The rows as of an earlier one are the sum of changes(0, epoch + 1); to wait no longer than "
        "some seconds write snapshot(timeout=5)"
    )
