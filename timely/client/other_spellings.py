"""Names of methods in other libraries, and what to write in their place for a cluster, a flow, an input, an
output, a probe, the worker of a program, or the module `timely`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import MisuseError
from ..user_code.spellings import Same, Spellings, like

__all__ = [
    "OF_CLUSTERS",
    "OF_FLOWS",
    "OF_INPUTS",
    "OF_MODULE",
    "OF_OUTPUTS",
    "OF_PROBES",
    "OF_PROGRAM_WORKERS",
    "OF_SEQUENCERS",
    "no_end",
    "of_rows",
    "of_snapshot",
]

_ROWS: Final = (
    "snapshot() for all rows, or changes() for those that this client has not read yet: tables of Arrow, "
    "which have to_pylist(); to_pylist(), to_arrow(), to_pandas() and show() of the output are those of the "
    "snapshot"
)
_FOLLOW: Final = "follow(): for epoch, changes in output.follow()"
_INSERT: Final = "insert(rows), a list of tuples or dicts, or a table; then flow.seal()"
_SEAL: Final = "seal(), which completes the open epoch of all inputs; seal(through=epoch) all up to one"
_ENTER: Final = "input('name').insert(rows)"
_READ: Final = "output('name').snapshot(), or .changes(), or .follow()"
_EXPLAIN: Final = (
    "print(explain()) for the stages that run; print(dd.explain(dataflow)) in the query for its plan"
)
_PROBE: Final = "probe('name').less_than(time), of a probe that dataflow.probe(name, stream) has placed"
_WORKS: Final = "nothing: workers work by themselves; wait for an epoch by "
_IN_BUILDER: Final = "dataflow.input(name) where the dataflow is built; flow.input(name) for its clients"
_REPLAYED: Final = "stream.capture(folder), where the dataflow is built; dataflow.replay(folder) reads it"
_BELL: Final = "self.activator() in a callback of a vertex: its activate() wakes that vertex from any thread"
_BUILT: Final = (
    "dataflow.source(name, Vertex), where the dataflow is built, for records at times that you choose"
)
_LOGGED: Final = "Python's own logging and time; stats() of a cluster, and flow.why(epoch)"
_KEYWORDS: Final = "the keywords of timely.connect(workers=2, progress='eager')"
_FRONTIER: Final = "why(epoch), probe('name').less_than(time), or output('name').complete_before()"
_END: Final = "uninstall(), which ends the dataflow; input('name').close() ends what goes in"

OF_OUTPUTS: Final = Spellings(
    {
        "toPandas": Same("to_pandas"),
        "toArrow": Same("to_arrow"),
        "collect": Same("to_pylist"),
        "df": _ROWS,
        **dict.fromkeys(("read", "get", "fetch", "rows", "result", "table", "values"), _ROWS),
        **dict.fromkeys(("count", "num_rows", "to_df", "to_dict", "take", "head", "data", "read_all"), _ROWS),
        **dict.fromkeys(("subscribe", "watch", "listen", "poll", "stream", "iter", "foreach"), _FOLLOW),
        **dict.fromkeys(("extract", "recv", "try_recv", "next", "Subscribe"), "changes(), or follow()"),
        **dict.fromkeys(("less_than", "less_equal", "done", "frontier"), "complete_before(), an epoch"),
        **dict.fromkeys(("wait", "Sync", "Join"), "flow.wait(epoch)"),
        **dict.fromkeys(("OnNext", "OnRecv", "inspect", "OnCompleted"), _FOLLOW),
        **dict.fromkeys(("capture", "capture_into", "replay_into"), _REPLAYED),
        "probe": "dataflow.probe(name, stream), where the dataflow is built; then flow.probe(name)",
        **dict.fromkeys(("cursor", "trace"), _ROWS),
        **dict.fromkeys(
            ("as_collection", "arrange", "import_"),
            "collection.export(name), and dd.imported(dataflow, 'owner', 'name', schema) in another builder",
        ),
    }
)
OF_INPUTS: Final = Spellings(
    {
        **dict.fromkeys(
            ("send", "add", "push", "put", "write", "extend", "feed", "give", "on_next"), _INSERT
        ),
        **dict.fromkeys(("send_batch", "give_vec", "session", "OnNext", "send_by"), _INSERT),
        **dict.fromkeys(("OnCompleted", "OnError", "finish"), "close(); of all inputs flow.finish()"),
        **dict.fromkeys(("time", "now", "current_epoch"), "epoch, the open one"),
        **dict.fromkeys(("to_stream", "handle"), "dataflow.input(name), in the function that builds"),
        "wait": "flow.wait(epoch)",
        **dict.fromkeys(("insert_rows", "insert_many", "send_many", "load", "insert_all"), _INSERT),
        **dict.fromkeys(("commit", "flush", "advance", "advance_by"), "flow.seal()"),
        **dict.fromkeys(
            ("retract", "discard", "drop", "unsend"), "remove(rows); keys of an upsert input: delete"
        ),
        **dict.fromkeys(("schema", "columns", "dtypes", "name"), "repr(input), which shows name and columns"),
        **dict.fromkeys(("new", "new_with_builder", "to_collection", "RegisterInput"), _IN_BUILDER),
        **dict.fromkeys(("send_frames", "buffer", "OnRecv", "OnStreamingRecv"), _INSERT),
        **dict.fromkeys(("StartBatch", "CompleteBatch", "SubBatch", "OnStreamingNotify"), "flow.seal()"),
        **dict.fromkeys(("MaximumValidEpoch", "MinimumValidEpoch", "CurrentEpoch"), "epoch, the open one"),
        **dict.fromkeys(("less_than", "less_equal", "done"), "flow.probe(name).less_than(time)"),
        "IsCompleted": "flow.why(epoch); what is inserted behind close() raises an error",
        "downgrade": "advance_to(epoch)",
        **dict.fromkeys(("activate", "allocate", "capability", "unordered", "unordered_input"), _BUILT),
        "update_at": "append(table), whose column 'diff' says how often each row is added, and epoch= when",
        "result": "flow.output(name): what goes in is read behind the dataflow",
        "update": "remove(old) and insert(new), or upsert(rows) at an input of mode='upsert'",
    }
)
OF_FLOWS: Final = Spellings(
    {
        **dict.fromkeys(("commit", "advance", "advance_to", "advance_by", "flush", "tick"), _SEAL),
        "step": "seal(wait=True), which also waits until the epoch is complete: workers work by themselves",
        **dict.fromkeys(("run", "execute", "start", "next_epoch", "submit"), _SEAL),
        **dict.fromkeys(("insert", "send", "append", "upsert", "push", "put", "add"), _ENTER),
        **dict.fromkeys(("remove", "delete"), "input('name').remove(rows)"),
        **dict.fromkeys(("snapshot", "changes", "follow", "read", "collect", "to_pandas", "result"), _READ),
        **dict.fromkeys(("close", "stop", "cancel", "shutdown", "kill", "terminate"), _END),
        **dict.fromkeys(("plan", "describe"), _EXPLAIN),
        **dict.fromkeys(("step_while", "step_or_park", "Sync", "Join"), f"{_WORKS}wait(epoch)"),
        "Activate": "nothing: it runs since cluster.install(build)",
        **dict.fromkeys(("less_than", "less_equal", "done", "probes"), _PROBE),
        **dict.fromkeys(("OnNext", "OnCompleted", "NewInput", "new_input"), _ENTER),
        **dict.fromkeys(("Subscribe", "extract"), _READ),
        "peers": "workers, how many run it",
        "rank": "index, the number of the dataflow; a vertex knows the number of its worker: self.worker",
        "stats": "cluster.stats()",
        "schema": "output('name').schema",
        **dict.fromkeys(("frontier", "OnFrontierChange", "GetFrontier", "with_frontier"), _FRONTIER),
        **dict.fromkeys(("drop_dataflow", "Dispose"), "uninstall(), which ends the dataflow"),
        **dict.fromkeys(("activator", "activator_for", "activations"), _BELL),
        **dict.fromkeys(("update", "input_session", "unordered_input", "new_unordered_input"), _ENTER),
        **dict.fromkeys(("step_until", "step_or_park_while"), f"{_WORKS}wait(epoch)"),
        **dict.fromkeys(("Controller", "Computation"), "cluster.flow(name): this is the installed dataflow"),
        **dict.fromkeys(("capture", "replay"), _REPLAYED),
        **dict.fromkeys(("logging", "log_register", "timer"), _LOGGED),
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
        "peers": Same("workers"),
        **dict.fromkeys(("NewComputation", "dataflow_named", "scoped"), "install(build)"),
        **dict.fromkeys(("step", "step_while", "Sync", "Join", "Activate"), f"{_WORKS}flow.wait(epoch)"),
        **dict.fromkeys(("execute_on_all", "run_on_workers", "example"), "timely.run(main, on=cluster)"),
        **dict.fromkeys(
            ("barrier", "sequencer", "index", "rank"),
            "timely.run(main, on=cluster): each main(worker) has worker.barrier(), .sequencer(name), .index",
        ),
        **dict.fromkeys(
            ("step_or_park", "step_or_park_while", "OnFrontierChange"), f"{_WORKS}flow.wait(epoch)"
        ),
        **dict.fromkeys(
            ("installed_dataflows", "has_dataflows", "next_dataflow_index"), "flows(), or flow('name')"
        ),
        "drop_dataflow": "flow('name').uninstall()",
        **dict.fromkeys(("new_input", "NewInput"), _IN_BUILDER),
        **dict.fromkeys(
            ("log_register", "logging", "timer"), _LOGGED.replace("stats() of a cluster", "stats()")
        ),
        **dict.fromkeys(("activations", "activator", "activator_for"), _BELL),
        **dict.fromkeys(("config", "Configuration", "Controller", "WorkerGroup"), _KEYWORDS),
        **dict.fromkeys(("Dispose", "Shutdown"), "close()"),
        **dict.fromkeys(
            ("Starting", "Stopping"), "on_start() and on_end(reason), methods of your class of vertices"
        ),
    }
)

_MEET: Final = "barrier(), and sequencer(name) for values that each worker pushes and all pull"
OF_PROGRAM_WORKERS: Final = Spellings(
    {
        "peers": Same("workers"),
        **dict.fromkeys(("rank", "worker", "number"), Same("index")),
        **dict.fromkeys(
            ("step", "step_while", "step_or_park", "step_or_park_while", "park"),
            f"{_WORKS}flow.wait(epoch), or probe.wait(time), of flow = worker.cluster.flow('name')",
        ),
        **dict.fromkeys(
            ("dataflow", "dataflow_named", "dataflow_core", "install"),
            "worker.cluster.install(build), on one worker, and then worker.barrier() on all",
        ),
        **dict.fromkeys(("flow", "flows", "installed_dataflows"), "worker.cluster.flow('name'), or .flows()"),
        **dict.fromkeys(
            ("drop_dataflow", "uninstall"), "worker.cluster.flow('name').uninstall(), on one worker"
        ),
        **dict.fromkeys(
            ("insert", "input", "output", "seal", "wait", "probe"),
            "flow = worker.cluster.flow('name'), as a client has it; then flow.input('in').insert(rows), …",
        ),
        **dict.fromkeys(("sync", "join", "Sync", "synchronize"), "barrier()"),
        **dict.fromkeys(("send", "recv", "broadcast", "all_reduce", "gather", "push", "pull"), _MEET),
        **dict.fromkeys(
            ("logging", "log_register", "timer", "config", "logger_for"), "Python's own logging and time"
        ),
        **dict.fromkeys(
            ("activations", "activator", "activator_for", "sync_activator_for", "Scheduler"), _BELL
        ),
        **dict.fromkeys(
            ("allocate", "pipeline", "new_identifier", "peek_identifier"),
            "sequencer(name), whose values all workers get in one order",
        ),
        **dict.fromkeys(
            ("has_dataflows", "next_dataflow_index"), "worker.cluster.flows(), or worker.cluster.flow('name')"
        ),
        **dict.fromkeys(("wait_all", "reached", "advance"), "barrier()"),
        **dict.fromkeys(
            ("NewInput", "NewComputation", "Activate", "Controller"),
            "worker.cluster.install(build), on one worker, and then worker.barrier() on all",
        ),
        **dict.fromkeys(("Configuration", "progress_mode", "set", "get"), _KEYWORDS),
        **dict.fromkeys(
            ("OnFrontierChange", "Frontier"), "flow.wait(epoch), of flow = worker.cluster.flow('name')"
        ),
        "ThreadCount": "workers, how many there are",
        "ProcessID": "index, the number of the worker; os.getpid() is that of its process",
    }
)
OF_SEQUENCERS: Final = Spellings(
    {
        **dict.fromkeys(("send", "put", "append"), Same("push")),
        **dict.fromkeys(("next", "recv", "pop", "get", "try_recv"), Same("pull")),
        **dict.fromkeys(("new", "preloaded"), "worker.sequencer(name), and push(value) on one worker"),
        "activate": "nothing: pull() waits for the next value",
    }
)
OF_PROBES: Final = Spellings(
    {
        "done": "less_than(time) of the last time, or flow.finish(), which waits until nothing can come",
        "less_equal": "less_than(time): for epochs less_equal(e) of timely dataflow is less_than(e + 1)",
        **dict.fromkeys(
            ("with_frontier", "frontier", "OnFrontierChange", "time"), "less_than(time), or flow.why(epoch)"
        ),
        "is_done": "less_than(time) of the last time, or flow.finish()",
        **dict.fromkeys(("step_while", "wait_for", "Sync"), "wait(time)"),
        **dict.fromkeys(
            ("probe", "probe_with", "new", "handle", "stream"),
            "dataflow.probe(name, stream), where the dataflow is built",
        ),
    }
)

_RUN: Final = (
    "timely.run(main, workers=2), which calls main(worker) on each worker; or timely.connect(workers=2)"
)
OF_MODULE: Final = Spellings(
    {
        **dict.fromkeys(("execute", "execute_from_args", "initialize", "execute_directly"), _RUN),
        **dict.fromkeys(
            ("example", "NewComputation", "Computation", "dataflow"),
            (
                "with timely.connect(embedded=True) as cluster: flow = cluster.install(build), where build "
                "gets a timely.Dataflow"
            ),
        ),
        **dict.fromkeys(("InputHandle", "Input", "InputSession", "BatchedDataSource"), _IN_BUILDER),
        **dict.fromkeys(
            ("ProbeHandle", "Probe", "Handle"), "dataflow.probe(name, stream); then flow.probe(name)"
        ),
        **dict.fromkeys(("Scope", "Child", "Subgraph"), "timely.Loop, which dataflow.loop(name) makes"),
        **dict.fromkeys(
            ("Worker", "worker"), "timely.ProgramWorker: the argument of main in timely.run(main)"
        ),
        **dict.fromkeys(
            ("Config", "Configuration"), "the keywords of timely.connect(workers=2, embedded=True)"
        ),
        **dict.fromkeys(
            ("Exchange", "Pipeline", "hash"), "exchange=timely.by('key'); without it records stay"
        ),
        **dict.fromkeys(("UnaryVertex", "BinaryVertex", "Operator"), "a subclass of timely.Vertex"),
        **dict.fromkeys(("Subscribe", "Output"), "dataflow.output(name, stream); then flow.output(name)"),
        **dict.fromkeys(
            ("Collection", "collection", "col", "input"), "import differential as dd; then dd.input"
        ),
        **dict.fromkeys(("execute_from", "initialize_from", "Controller", "Controllers"), _RUN),
        **dict.fromkeys(("ProgressMode", "WorkerConfig"), _KEYWORDS),
        **dict.fromkeys(("StreamVec", "StreamCore"), "timely.Stream, which dataflow.input(name) makes"),
        **dict.fromkeys(
            ("Iterative", "Product", "LoopContext", "IterationIn", "BatchIn"),
            "dataflow.loop(name); times in it are tuples, (epoch, iteration)",
        ),
        **dict.fromkeys(
            ("Timestamp", "PartialOrder", "TotalOrder", "Epoch", "Pair", "Refines", "Empty", "order"),
            "tuples: a time is (epoch,), in a loop (epoch, iteration)",
        ),
        **dict.fromkeys(
            ("Antichain", "MutableAntichain", "AntichainRef", "frontier"),
            "self.frontier(port) of a vertex: a list of tuples",
        ),
        **dict.fromkeys(("PathSummary", "Summary"), "dataflow.stage(name, Vertex, feeds, paths={(0, 0): 1})"),
        **dict.fromkeys(
            ("UnorderedHandle", "UnorderedInput", "unordered_input", "ConstantDataSource"), _BUILT
        ),
        **dict.fromkeys(("StreamingInput", "SubBatchDataSource"), _IN_BUILDER),
        **dict.fromkeys(
            ("CapabilitySet", "InputCapability", "ActivateCapability", "capability"),
            "timely.Capability, which self.hold(time) of a vertex makes",
        ),
        **dict.fromkeys(
            ("Notificator", "FrontierNotificator"),
            "self.notify_at(time) of a vertex, and its on_notify(time)",
        ),
        **dict.fromkeys(
            ("SyncActivator", "Activations", "activator"), "timely.Activator, which self.activator() makes"
        ),
        **dict.fromkeys(
            ("ExchangeCore", "ExpressionPartition", "Distributor"),
            "exchange=timely.by('key'); without it records stay",
        ),
        **dict.fromkeys(
            ("OperatorBuilder", "OperatorInfo", "Stage"), "dataflow.stage(name, Vertex, feeds, outputs=2)"
        ),
        **dict.fromkeys(
            ("Barrier", "Sequencer", "barrier", "sequencer", "synchronization"),
            "timely.run(main): each main(worker) has worker.barrier() and worker.sequencer(name)",
        ),
        **dict.fromkeys(
            ("EventWriter", "EventReader", "EventLink", "Event", "Capture", "Replay", "Extract"), _REPLAYED
        ),
        **dict.fromkeys(
            ("Message", "Container", "Data", "ExchangeData"), "timely.Batch, or lists of records"
        ),
        **dict.fromkeys(("Allocate", "Allocator", "Generic", "communication"), _RUN),
        **dict.fromkeys(("Logging", "logging", "Tracker"), _LOGGED),
        **dict.fromkeys(("scheduling", "Scheduler", "progress"), _BELL),
        **dict.fromkeys(("Result", "result"), "stream.ok_err(function), which gives two streams"),
        **dict.fromkeys(
            ("Rescope", "rescope"), "the stream itself: streams of one loop, or of none, go together"
        ),
        **dict.fromkeys(
            ("AsCollection", "as_collection"),
            "import differential as dd; then dd.collection(stream, schema), of pairs (row, diff)",
        ),
        "Subscription": "dataflow.output(name, stream); then flow.output(name)",
        **dict.fromkeys(
            ("Placement", "SingleVertex", "RoundRobin"), "stream.stage(name, Vertex, workers=[0, 1])"
        ),
        "Checkpoint": "timely.connect(durable=folder)",
        **dict.fromkeys(
            ("UnaryBufferingVertex", "SynchronousVertex", "SinkVertex", "VertexOutputBuffer", "Entrancy"),
            "a subclass of timely.Vertex",
        ),
        **{name: f"import timely.{name}" for name in ("spark", "why", "durable", "keys")},
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
