"""Names that timely dataflow, Naiad, Spark, Bytewax and others have for operators of a stream, and for what a
dataflow is built with, and what to write.
"""

from __future__ import annotations

from typing import Final

from ..user_code.spellings import Same, Spellings

__all__ = ["OF_DATAFLOWS", "OF_FEEDBACKS", "OF_LOOPS", "OF_STREAMS"]

_UNARY: Final = "unary(name, make), whose function `make` returns on_recv, or (on_recv, on_notify)"
_BINARY: Final = "binary(other, name, make), whose function `make` returns on_recv, or (on_recv, on_notify)"
_KEYS: Final = (
    "aggregate(fold, start) or state_machine(step) of pairs (key, value); or stage(name, Vertex, "
    "exchange=timely.by(…)), where records with equal keys meet"
)
_COLLECTION: Final = (
    "a query on a collection, which dd.input(dataflow, name, schema) gives; a stream has records and no "
    "columns"
)
_COUNTS: Final = "map(lambda record: (key, 1)).aggregate(lambda total, one: total + one, 0)"
_OUTPUT: Final = "dataflow.output(name, stream), and read it by flow.output(name)"
_INPUT: Final = "dataflow.input(name), which clients insert records into"
_SOURCE: Final = "dataflow.source(name, Vertex), whose vertices send at the times that they hold"
_LOOP: Final = "loop.feedback(), where loop is dataflow.loop(…): use its .stream, then .connect(stream)"
_SCOPE: Final = (
    "with dataflow.loop(name) as loop; a part of a dataflow that is no loop is a function in Python"
)
_ALL_SCOPE: Final = (
    "the stream itself: streams of one loop, or of none, go together; a loop is entered by loop.enter(stream)"
)
_WHERE: Final = "worker and workers of a vertex: a dataflow is the same on every worker"
_CLIENT: Final = "flow = cluster.install(build), in the program; then flow"
_OF_CHANGES: Final = "dd.collection(stream, schema), of a stream of pairs (row, diff)"
_OF_VERTEX: Final = (
    "stage(name, Vertex), with a class of your own: in its callbacks self has hold, notify_at, frontier, "
    "activate and activator"
)
_ALREADY: Final = "the stream itself: messages are lists of records, or tables by timely.tables(stream)"
_NAMED: Final = "the name that you give: stage(name, Vertex), dataflow.input(name)"
_PLACED: Final = "stage(name, Vertex, workers=[0, 1])"
_DURABLE: Final = "timely.connect(durable=folder), which logs inputs and positions for the whole cluster"
_COMPUTATION: Final = "flow = cluster.install(build), whose function `build` gets the dataflow"

OF_STREAMS: Final = Spellings(
    {
        **dict.fromkeys(("flatMap", "flatmap", "concat_map"), Same("flat_map")),
        **dict.fromkeys(("concatenate", "union", "merge", "unionAll", "union_all"), Same("concat")),
        **dict.fromkeys(("foreach", "for_each", "tap", "peek"), Same("inspect")),
        **dict.fromkeys(("where", "keep", "Where"), Same("filter")),
        **dict.fromkeys(("Concat", "Union"), Same("concat")),
        "Select": Same("map"),
        "SelectMany": Same("flat_map"),
        "PartitionBy": "exchange(timely.by(…))",
        "GroupBy": _KEYS,
        "Aggregate": "aggregate(fold, start)",
        "Count": _COUNTS,
        **dict.fromkeys(("Distinct", "Join", "Min", "Max"), _COLLECTION),
        "Subscribe": _OUTPUT,
        **dict.fromkeys(("NewStage", "NewUnaryStage"), "stage(name, Vertex, exchange=timely.by(…))"),
        "NewBinaryStage": "dataflow.stage(name, Vertex, feeds), with stream.feed(0) and other.feed(1)",
        "EnterLoop": "loop.enter(stream), where loop is dataflow.loop(…)",
        "ExitLoop": "loop.leave(stream), where loop is dataflow.loop(…)",
        "split": "branch(condition) for two streams, partition(parts, function) for more",
        "filter_map": "flat_map(function), whose function returns a list of one record, or an empty one",
        **dict.fromkeys(("map_in_place", "flat_map_builder"), "map(function)"),
        **dict.fromkeys(
            ("inspect_time", "inspect_core", "inspect_container"),
            "inspect_batch(function), whose function gets the time and the records of a message",
        ),
        **dict.fromkeys(
            ("delay_batch", "delay_total"), "delay(function), whose function gets each record and its time"
        ),
        **dict.fromkeys(
            ("ok", "err", "map_ok", "map_err", "and_then", "unwrap_or_else"),
            "ok_err(function), which gives two streams",
        ),
        "branch_when": "unary(name, make), whose on_recv gets the time; without the time branch(condition)",
        **dict.fromkeys(("unary_notify", "unary_frontier", "operator", "process"), _UNARY),
        **dict.fromkeys(("binary_notify", "binary_frontier", "connect"), _BINARY),
        **dict.fromkeys(
            ("accumulate", "fold", "reduce", "fold_window", "reduce_final"), "aggregate(fold, start)"
        ),
        **dict.fromkeys(("stateful_map", "stateful_flat_map", "map_with_state"), "state_machine(step)"),
        **dict.fromkeys(("group_by", "groupBy", "groupby", "key_by", "keyBy", "key_on"), _KEYS),
        **dict.fromkeys(("rebalance", "shuffle", "repartition", "redistribute"), "exchange(timely.by(…))"),
        **dict.fromkeys(
            ("select", "join", "distinct", "agg", "with_columns", "order_by", "consolidate", "iterate"),
            _COLLECTION,
        ),
        **dict.fromkeys(("sink", "collect", "write"), _OUTPUT),
        "capture_into": f"capture(folder), which dataflow.replay(folder) reads; or {_OUTPUT}",
        "replay_into": "dataflow.replay(folder), of what stream.capture(folder) has written",
        **dict.fromkeys(("new_input", "input_from", "to_stream", "to_stream_core"), _INPUT),
        **dict.fromkeys(("new_unordered_input", "iterator_source", "source"), _SOURCE),
        "reclock": (
            "binary(other, name, make), which keeps the records until those of `other` come, and sends them "
            "at their time"
        ),
        **dict.fromkeys(("scoped", "iterative", "region", "iterate_scope"), _SCOPE),
        **dict.fromkeys(("enter_region", "leave_region", "shared"), _ALL_SCOPE),
        **dict.fromkeys(("index", "peers", "rank", "worker"), _WHERE),
        **dict.fromkeys(
            ("less_than", "less_equal", "done"), "dataflow.probe(name, stream), and ask flow.probe(name)"
        ),
        **dict.fromkeys(
            ("OnRecv", "OnNotify", "on_recv", "on_notify", "SendBy", "send_by", "NotifyAt", "notify_at"),
            "stage(name, Vertex), with a class of your own: callbacks and calls are those of a vertex",
        ),
        **dict.fromkeys(("Iterate", "FixedPoint", "GeneralFixedPoint"), _LOOP),
        **dict.fromkeys(("Monitor", "BlockingForeach", "ForEach"), "inspect(function)"),
        **dict.fromkeys(("Sum", "CoGroupBy", "Except", "Intersect"), _COLLECTION),
        "WriteToFiles": "capture(folder); or a stage whose vertices write",
        **dict.fromkeys(("probe", "probe_with"), "dataflow.probe(name, stream)"),
        "enter_at": "loop.enter(stream, at=function), where loop is dataflow.loop(…)",
        **dict.fromkeys(("feedback", "loop_variable"), _LOOP),
        "enter": "loop.enter(stream), where loop is dataflow.loop(…)",
        "leave": "loop.leave(stream), where loop is dataflow.loop(…)",
        "connect_loop": "loop.feedback().connect(stream), where loop is dataflow.loop(…)",
        **dict.fromkeys(("count_by_key", "LongCount"), _COUNTS),
        **dict.fromkeys(("as_collection", "AsCollection"), _OF_CHANGES),
        **dict.fromkeys(("into_stream", "as_stream", "container", "inner"), _ALREADY),
        **dict.fromkeys(("rescope", "lift", "scope_of"), _ALL_SCOPE),
        **dict.fromkeys(("scoped_raw", "region_named"), _SCOPE),
        **dict.fromkeys(("to_stream_with_builder", "new_input_with_builder", "AsNaiadStream"), _INPUT),
        **dict.fromkeys(("unordered_input", "flow_controlled", "empty", "ReadFromFiles"), _SOURCE),
        "result": "ok_err(function), which gives two streams; or, of what a client reads, flow.output(name)",
        **dict.fromkeys(("replay", "replay_core"), "dataflow.replay(folder)"),
        **dict.fromkeys(("extract", "Output"), _OUTPUT),
        "connect_to": "feed(port), for dataflow.stage(name, Vertex, feeds)",
        **dict.fromkeys(("name", "addr", "identifier"), _NAMED),
        **dict.fromkeys(("Placement", "workers"), _PLACED),
        **dict.fromkeys(
            ("activator", "activate", "activations", "activator_for", "sync_activator_for"), _OF_VERTEX
        ),
        **dict.fromkeys(("notificator", "frontier", "capability", "capabilities", "retain"), _OF_VERTEX),
        **dict.fromkeys(("session", "give", "build", "build_reschedule"), _OF_VERTEX),
        "with_frontier": "dataflow.probe(name, stream), and ask flow.probe(name)",
        **dict.fromkeys(
            ("arrange", "arrange_by_key", "arrange_by_self", "threshold", "semijoin", "antijoin"), _COLLECTION
        ),
        **dict.fromkeys(
            (
                "consolidate_stream",
                "count_total",
                "negate",
                "explode",
                "Take",
                "NewInputCollection",
                "new_collection",
            ),
            _COLLECTION,
        ),
        "IterateAndAccumulate": _LOOP,
        "Prepend": Same("concat"),
        "UnaryExpression": _UNARY,
        "BinaryExpression": _BINARY,
        **dict.fromkeys(("BufferForever", "Synchronize"), _OF_VERTEX),
        "SetCheckpointType": _DURABLE,
        "WriteBinaryToFiles": "capture(folder); or a stage whose vertices write",
        **dict.fromkeys(("ForStage", "Context", "StageContext", "Computation"), _COMPUTATION),
        **dict.fromkeys(("LoopContext", "BatchEntrance", "DelayedLoop"), _SCOPE),
    }
)

_OF_STREAMS: Final = (
    "map", "flat_map", "filter", "inspect", "inspect_batch", "branch", "partition", "ok_err", "concat",
    "delay", "capture", "exchange", "broadcast", "count", "aggregate", "state_machine", "feed",
)  # fmt: skip
_STAGE: Final = (
    "stream.stage(name, Vertex); with several inputs or outputs stage(name, Vertex, feeds, outputs=2)"
)

OF_DATAFLOWS: Final = Spellings(
    {
        **{name: f"stream.{name}(…), of a stream such as dataflow.input(name)" for name in _OF_STREAMS},
        **dict.fromkeys(("concatenate", "union"), "stream.concat(*streams)"),
        **dict.fromkeys(("new_input", "new_input_with_builder", "input_from", "to_stream"), _INPUT),
        "NewInput": _INPUT,
        **dict.fromkeys(("new_unordered_input", "iterator_source", "from_iterable"), _SOURCE),
        **dict.fromkeys(("NewStage", "NewUnaryStage", "NewBinaryStage", "add_stage", "operator"), _STAGE),
        "unary": "stream.unary(name, make)",
        "binary": "stream.binary(other, name, make)",
        **dict.fromkeys(("unary_notify", "unary_frontier"), _UNARY.replace("unary(", "stream.unary(", 1)),
        **dict.fromkeys(("binary_notify", "binary_frontier"), f"stream.{_BINARY}"),
        **dict.fromkeys(("scoped", "iterative", "region", "scope", "subgraph"), _SCOPE),
        **dict.fromkeys(("loop_variable", "connect_loop"), _LOOP),
        **dict.fromkeys(("enter", "enter_at", "leave"), "loop.enter(stream), loop.leave(stream)"),
        **dict.fromkeys(("EnterLoop", "ExitLoop"), "loop.enter(stream), loop.leave(stream)"),
        **dict.fromkeys(("replay_into", "replay_core"), "dataflow.replay(folder)"),
        "capture_into": "stream.capture(folder)",
        **dict.fromkeys(("new_probe", "probe_with"), "dataflow.probe(name, stream)"),
        **dict.fromkeys(("Subscribe", "sink", "capture_output"), _OUTPUT),
        **dict.fromkeys(("index", "peers", "rank", "workers", "worker"), _WHERE),
        **dict.fromkeys(("collection", "table"), "dd.input(dataflow, name, schema)"),
        **dict.fromkeys(("seal", "wait", "finish", "insert"), f"{_CLIENT}.seal() or .input(name).insert(…)"),
        **dict.fromkeys(("step", "step_while", "run", "execute"), f"{_CLIENT}.seal(wait=True)"),
        **dict.fromkeys(
            ("Activate", "Join", "Sync", "OnNext", "OnFrontierChange", "GetFrontier"),
            f"{_CLIENT}.seal() and .wait()",
        ),
        **dict.fromkeys(("unordered_input", "ConstantDataSource", "ReadFromFiles"), _SOURCE),
        **dict.fromkeys(("BatchedDataSource", "InputStage", "AsNaiadStream"), _INPUT),
        **dict.fromkeys(("as_collection", "AsCollection"), _OF_CHANGES),
        **dict.fromkeys(
            (
                "new_collection",
                "new_collection_from",
                "collection_from",
                "input_session",
                "NewInputCollection",
            ),
            "dd.input(dataflow, name, schema)",
        ),
        **dict.fromkeys(("scoped_raw", "region_named", "LoopContext", "product"), _SCOPE),
        **dict.fromkeys(("rescope", "enter_region", "leave_region"), _ALL_SCOPE),
        **dict.fromkeys(
            ("activator", "activations", "activator_for", "sync_activator_for", "Scheduler", "notificator"),
            _OF_VERTEX.replace("stage(", "stream.stage(", 1),
        ),
        **dict.fromkeys(("OperatorBuilder", "new_operator", "reserve_operator", "ForStage"), _STAGE),
        "add_edge": "stage(name, Vertex, feeds), whose feeds are the edges",
        **dict.fromkeys(("addr", "new_identifier"), "name, and the names that you give stages"),
        **dict.fromkeys(("dataflow", "dataflow_named", "new", "Controller", "Context"), _COMPUTATION),
        **dict.fromkeys(("step_or_park", "step_or_park_while"), f"{_CLIENT}.seal(wait=True)"),
        **dict.fromkeys(("result", "Output", "extract"), _OUTPUT),
        **dict.fromkeys(("drop_dataflow", "drop"), f"{_CLIENT}.uninstall()"),
        **dict.fromkeys(
            ("logging", "log_register", "register_loggers", "timer"), "Python's own logging and time"
        ),
        **dict.fromkeys(("config", "Configuration"), "the keywords of timely.connect(workers=2)"),
        "SetCheckpointType": _DURABLE,
    }
)

_LOOP_IN_LOOP: Final = "loop(name): a loop in this loop; a part that is no loop is a function in Python"
OF_LOOPS: Final = Spellings(
    {
        **{name: f"stream.{name}(…), of a stream such as loop.enter(stream)" for name in _OF_STREAMS},
        "EnterLoop": Same("enter"),
        "ExitLoop": Same("leave"),
        "enter_at": "enter(stream, at=function), whose function returns the iteration of a record",
        **dict.fromkeys(("loop_variable", "variable", "stream"), "feedback(): use its .stream in the loop"),
        **dict.fromkeys(("connect_loop", "connect", "set"), "feedback(), and its connect(stream)"),
        **dict.fromkeys(("scoped", "iterative"), _LOOP_IN_LOOP),
        **dict.fromkeys(
            ("stage", "probe", "source"), "that of the dataflow: a stage is in the loop of its feeds"
        ),
        "input": "enter(stream), of a stream such as dataflow.input(name)",
        "output": "dataflow.output(name, loop.leave(stream))",
        **dict.fromkeys(("max_iterations", "iterations", "until"), "dataflow.loop(name, times=100)"),
        "MaxIterations": "dataflow.loop(name, times=100)",
        **dict.fromkeys(("region", "region_named", "scoped_raw", "product", "LoopContext"), _LOOP_IN_LOOP),
        **dict.fromkeys(("enter_region", "leave_region", "rescope", "parent"), _ALL_SCOPE),
        **dict.fromkeys(("index", "peers", "worker", "workers"), _WHERE),
        **dict.fromkeys(("name", "addr", "identifier"), "the name that you give: dataflow.loop(name)"),
        **dict.fromkeys(
            ("activator", "activations", "activator_for", "sync_activator_for", "notificator"),
            _OF_VERTEX.replace("stage(", "stream.stage(", 1),
        ),
        **dict.fromkeys(("concatenate", "union"), "stream.concat(*streams)"),
        **dict.fromkeys(("new_input", "to_stream", "Input"), "enter(stream), of dataflow.input(name)"),
        **dict.fromkeys(("new_unordered_input", "unordered_input"), "enter(stream), of dataflow.source(…)"),
        **dict.fromkeys(("replay_into", "replay_core"), Same("replay")),
        **dict.fromkeys(("as_collection", "AsCollection"), _OF_CHANGES),
        **dict.fromkeys(("result", "Output"), "leave(stream): the stream outside of the loop"),
        **dict.fromkeys(("iterate", "FixedPoint", "Iterate"), "feedback(): use its .stream in the loop"),
        "DelayedLoop": "feedback(by=n), which comes back n iterations later",
        "Delay": "stream.delay(function), of a stream such as loop.enter(stream)",
        "ForwardPropagate": "feedback(), and its connect(stream)",
    }
)

OF_FEEDBACKS: Final = Spellings(
    {
        **{name: f"its .stream: feedback.stream.{name}(…)" for name in (*_OF_STREAMS, "stage")},
        **dict.fromkeys(("set", "connect_loop", "ForwardPropagate", "Input"), Same("connect")),
        "set_concat": "connect(stream), as often as there are streams: they are merged",
        **dict.fromkeys(("Output", "handle", "Feedback", "variable"), Same("stream")),
        **dict.fromkeys(("enter", "leave"), "that of the loop: loop.enter(stream), loop.leave(stream)"),
    }
)
