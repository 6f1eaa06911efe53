"""Public names of timely dataflow 0.31 and differential dataflow 0.25 (Rust), and of Naiad (C#), by the thing
here that users of those libraries may ask for them.

Each works here, or the error says what to write: tests beside the tables of names look at each.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NAMES_ELSEWHERE", "unanswered"]

NAMES_ELSEWHERE: Final = {
    "stream": """
        map map_in_place flat_map flat_map_builder into_stream filter exchange broadcast partition branch
        branch_when ok_err ok err map_ok map_err and_then unwrap_or_else result concat concatenate delay
        delay_total delay_batch inspect inspect_time inspect_batch inspect_core inspect_container
        accumulate count aggregate state_machine unary unary_frontier unary_notify binary binary_frontier
        binary_notify sink source empty capture capture_into replay replay_into replay_core extract probe
        probe_with shared reclock to_stream to_stream_with_builder as_stream as_collection enter enter_at
        leave feedback loop_variable connect_loop connect_to container scope name new_unordered_input
        unordered_input new_input new_input_with_builder input_from iterator_source flow_controlled
        activator activate activations activator_for sync_activator_for rescope scoped scoped_raw
        iterative region region_named enter_region leave_region operator build build_reschedule
        notificator frontier capability capabilities session give rank index peers worker addr less_than
        less_equal done with_frontier consolidate consolidate_stream arrange arrange_by_key
        arrange_by_self reduce threshold distinct join semijoin antijoin count_total negate iterate
        explode inner lift Select SelectMany Where Concat Union GroupBy CoGroupBy Aggregate Count Distinct
        Join Min Max Sum Intersect Except PartitionBy EnterLoop ExitLoop Iterate IterateAndAccumulate
        FixedPoint GeneralFixedPoint Prepend UnaryExpression BinaryExpression Synchronize
        SetCheckpointType WriteToFiles WriteBinaryToFiles ReadFromFiles Monitor AsCollection AsNaiadStream
        Output Subscribe NewStage NewUnaryStage NewBinaryStage NewInput NewInputCollection ForStage
        Context StageContext LoopContext Delay Consolidate Inspect BatchEntrance LongCount Repartition
        OnRecv OnNotify Placement Computation ForEach Take
    """,
    "dataflow": """
        new_input new_input_with_builder input_from to_stream new_unordered_input unordered_input
        new_probe probe_with replay_into replay_core capture_into feedback loop_variable concatenate
        source iterator_source scoped scoped_raw iterative region region_named rescope activator
        activations activator_for sync_activator_for add_edge reserve_operator addr index peers worker
        name operator OperatorBuilder new_operator as_collection new_collection new_collection_from
        collection_from new input_session dataflow dataflow_named step step_while step_or_park result
        NewInput NewInputCollection NewStage NewUnaryStage NewBinaryStage Activate Join Sync OnNext
        OnFrontierChange Subscribe AsNaiadStream ReadFromFiles Configuration Controller Scheduler
        EnterLoop ExitLoop Delay ForStage ConstantDataSource BatchedDataSource LoopContext Context
        InputStage Output GetFrontier drop_dataflow logging log_register register_loggers timer config
    """,
    "loop": """
        enter enter_at leave feedback loop_variable connect_loop scoped iterative region region_named
        enter_region leave_region index peers worker name addr activator_for concatenate new_input
        to_stream replay_into capture rescope scope parent activator unordered_input new_unordered_input
        as_collection result iterate variable EnterLoop ExitLoop Delay DelayedLoop ForwardPropagate
        MaxIterations FixedPoint Input Output delay product
    """,
    "feedback": """
        connect connect_loop set stream handle map ForwardPropagate Output Feedback Input set_concat leave
        enter
    """,
    "vertex": """
        on_recv OnRecv OnReceive OnNotify on_notify NotifyAt SendBy send_by notify_at session
        session_with_builder give give_iterator give_vec give_container give_content output_index activate
        activate_after sync_activator activator_for activations activate_batch activator capability
        capabilities retain retain_for_output delayed delayed_for_output try_delayed downgrade
        try_downgrade frontier frontiers for_each for_each_time next next_count monotonic pending
        make_available notify_at_frontiered flush buffer set_notify_for build schedule name path index
        peers global shape operator_info addr address notificator less_than less_equal is_empty result
        rescope as_collection unordered_input logging log_register worker timer GetBufferForTime Send
        Flush Output NewInput NewOutput OnShutdown Checkpoint Restore AddInput PushEventTime PopEventTime
        Scheduler Stage VertexId Entrancy SetCheckpointType Computation Notify Logging NewUnnotifiedInput
        AddOnRecv Input Inputs
    """,
    "held": """
        time valid_for_output delayed try_delayed downgrade try_downgrade retain clone drop
        delayed_for_output session release downgrade_to insert from_elem activate
    """,
    "bell": """
        activate activate_batch activate_after sync_activator advance set ring wake notify wake_up
        activator SyncActivator Activate drop clone
    """,
    "worker": """
        step step_or_park step_while step_or_park_while index peers timer new_identifier peek_identifier
        log_register config activations activator_for sync_activator_for logger_for logging allocate
        pipeline broadcast dataflow dataflow_named dataflow_core drop_dataflow next_dataflow_index
        installed_dataflows has_dataflows barrier wait advance reached sequencer push Join Sync Activate
        NewInput NewComputation Controller Configuration Scheduler OnFrontierChange ThreadCount ProcessID
        Frontier rank progress_mode set get
    """,
    "sequencer": """
        new preloaded push next activate pull send recv pop get put try_recv
    """,
    "cluster": """
        step step_while step_or_park dataflow dataflow_named peers index installed_dataflows has_dataflows
        drop_dataflow next_dataflow_index execute example barrier sequencer log_register logging
        activations config timer new_input NewComputation Join Sync Activate Configuration Controller
        OnFrontierChange Dispose Shutdown WorkerGroup Starting Stopping
    """,
    "flow": """
        step step_while step_or_park advance_to new_input send probe probes less_than done frontier
        OnFrontierChange Join Sync Activate NewInput OnNext OnCompleted Subscribe extract result index
        peers drop_dataflow GetFrontier activator update Controller input_session advance_by step_until
    """,
    "input": """
        new new_with_builder to_stream flush send_batch send_frames advance_to close time send epoch give
        buffer activate unordered session update update_at insert remove upsert to_collection OnNext
        OnCompleted OnError OnRecv OnStreamingRecv OnStreamingNotify RegisterInput IsCompleted
        CurrentEpoch MaximumValidEpoch MinimumValidEpoch SubBatch StartBatch CompleteBatch result
        downgrade allocate capability less_than
    """,
    "output": """
        extract recv try_recv result Subscribe Sync wait frontier capture replay_into inspect probe
        less_than cursor trace OnNext OnRecv Join as_collection next
    """,
    "probe": """
        probe probe_with less_than less_equal done with_frontier frontier handle new wait Sync
        OnFrontierChange step_while time is_done stream
    """,
    "module": """
        execute execute_from_args execute_from execute_directly example initialize initialize_from Config
        Configuration ProgressMode WorkerConfig Worker Scope Stream StreamVec StreamCore Child Iterative
        Product Timestamp PathSummary PartialOrder TotalOrder Antichain MutableAntichain AntichainRef
        InputHandle UnorderedHandle ProbeHandle Handle Probe Capability CapabilitySet InputCapability
        ActivateCapability Exchange Pipeline ExchangeCore Notificator FrontierNotificator OperatorBuilder
        OperatorInfo Operator Activator SyncActivator Activations Barrier Sequencer EventWriter
        EventReader EventLink Event Capture Replay Extract Message Data ExchangeData Container Allocate
        Allocator Generic Subgraph Logging Input InputSession Collection Tracker Refines Summary Empty
        Rescope Result UnorderedInput AsCollection rescope result unordered_input as_collection activator
        barrier dataflow operators worker progress order communication logging synchronization scheduling
        capability NewComputation Computation BatchedDataSource ConstantDataSource Vertex UnaryVertex
        BinaryVertex StreamingInput SubBatchDataSource Subscription Stage Placement SingleVertex
        RoundRobin IterationIn Epoch BatchIn Entrancy Controller Checkpoint LoopContext
        ExpressionPartition VertexOutputBuffer Pair Controllers UnaryBufferingVertex SynchronousVertex
        SinkVertex
    """,
    "collection": """
        concat concatenate enter_region inspect_container probe probe_with scope negate enter results_in
        leave leave_region map map_in_place flat_map filter explode join_function enter_at delay inspect
        inspect_batch assert_empty assert_eq reduce reduce_named reduce_abelian reduce_core distinct
        distinct_core threshold threshold_named count count_core consolidate consolidate_named
        consolidate_stream arrange_by_key arrange_by_key_named arrange_by_self arrange_by_self_named join
        join_map semijoin antijoin join_core as_collection inner lift arrange arrange_named arrange_core
        count_total threshold_total threshold_semigroup distinct_total iterate import import_named
        flat_map_ref stream result rescope activator unordered_input capture replay exchange broadcast
        Select SelectMany Where Concat Except Union Intersect GroupBy CoGroupBy Aggregate Count Min Max
        Sum Distinct Join FixedPoint GeneralFixedPoint Consolidate Monitor Subscribe Output EnterLoop
        ExitLoop Negate Inspect PartitionBy LongCount Abs AsCollection
    """,
}


def unanswered(thing: object, kind: str) -> list[str]:
    """Return the names of `NAMES_ELSEWHERE[kind]` that `thing` neither has nor answers by what to write."""
    wrong = []
    for name in NAMES_ELSEWHERE[kind].split():
        try:
            getattr(thing, name)
        except AttributeError as error:
            if "Write instead: " not in str(error):
                wrong.append(f"{name}: {error}")
    return wrong
