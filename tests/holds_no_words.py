"""Which attributes of those who show their words (`symbols`) hold none? Who adds one shows it, or adds it.

A word that is not shown is forgotten while it is in use, and somebody finds that hours later. So every
attribute of such a class is either named in its `symbols`, or stands below: since it holds numbers, texts for
people, times or functions; memory that something else that is shown stands for (`Trace._head`); or what
others hold and show (`Reader`s of a trace).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house import modules

__all__ = ["HOLDS_NO_WORDS", "RECORDS", "attributes"]

RECORDS = ("timely.operators.records", "timely.operators.captured", "timely.client.programs")
"""Rooms whose vertices take records, which hold values and no words."""


def attributes() -> Iterator[tuple[str, set[str], set[str]]]:
    """Of every class that says which words it holds, or inherits that: name, attributes, and those that it
    names there itself.
    """
    kinds = [
        found
        for module in (*modules("timely"), *modules("differential"))
        if not module.name.startswith(RECORDS)
        for found in module.parts
        if isinstance(found, ast.ClassDef) and "Protocol" not in map(ast.unparse, found.bases)
    ]
    says = {kind.name for kind in kinds if _answer_of(kind)}
    while more := {kind.name for kind in kinds if says & set(map(ast.unparse, kind.bases))} - says:
        says |= more
    for kind in kinds:
        if kind.name in says:
            # And those of a class that it is built upon, if that says nothing of them itself.
            silent = [base for base in _below(kind, kinds) if base.name not in says]
            yield (
                kind.name,
                {name for part in (kind, *silent) for name in _set_in(part)},
                {name for part in _answer_of(kind) for name in _named_in(part)},
            )


def _below(kind: ast.ClassDef, kinds: list[ast.ClassDef]) -> Iterator[ast.ClassDef]:
    names = set(map(ast.unparse, kind.bases))
    for base in kinds:
        if base.name in names:
            yield base
            yield from _below(base, kinds)


def _answer_of(kind: ast.ClassDef) -> list[ast.stmt]:
    return [part for part in kind.body if getattr(part, "name", "") == "symbols"]


def _set_in(kind: ast.ClassDef) -> Iterator[str]:
    for part in kind.body:
        if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation):
            yield ast.unparse(part.target)
    for node in ast.walk(kind):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node):
            yield node.attr


def _named_in(function: ast.stmt) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and _is_own(node):
            yield node.attr


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "made")


HOLDS_NO_WORDS = {
    "AnswerRows": "_rows _schema",
    "ArrangeVertex": "arrangement",
    "ArrangedBatch": "sequence",
    "Arrivals": "_anchor _enqueue _layout _worker late ways",
    "Block": "_line _memory",
    "BoundedJoinMachine": "_tests projections",
    "BoundedJoinVertex": "_tests",
    "CaptureVertex": "_complete_before _forgotten _kept_from _ports digests moves places",
    "CheckedMachine": "_changes _guards",
    "RoundMessage": "moved symbol_words vote",
    "_FeedingVertex": "held",
    "_FirstVertex": "",
    "_TakingVertex": "",
    "Collected": "_rows_waiting _since",
    "Connector": (
        "_before _carrier _doubtful _expects _far _is_divided _is_identity _late _limits _only _only_moves "
        "_placed add index "
        "iteration_counts keep location messages_sent port route routing rows_sent target transform"
    ),
    "CompiledLoopRunner": (
        "_ahead _calls_left _closed _dataflow _done _ended _ended_outside _entries _entries_ended "
        "_is_alone _limit _members _round _shift _since _span _upstream _vote "
        "_voted_ended _watched has_frontier_news held is_ahead is_queued leaving location may_resume name "
        "port ports recheck requested stage tracker wants_resume way work_told"
    ),
    "ConsolidateMachine": "_ready columns words",
    "CopiedImport": (
        "_code _divides _epoch _evolution _is_listening _news _order _reader _schema _state_from _vertex"
    ),
    "DelayVertex": "_epochs",
    "DuringVertex": "_bounds",
    "ExportVertex": "_first _importing _listeners _own keys schema",
    "FailuresEndVertex": "",
    "FewestMachine": "_column _number",
    "FirstMachine": "_sums columns words",
    "Folded": "",
    "FoldedRows": "_diff _rows _width",
    "FollowedLogs": "_has_read_earlier _is_mine _orders _readers _rows _store _workers earlier incarnation",
    "Following": "_base _fresh _look_at _look_at_bases _pause _rows _share _store _worker begun is_abreast",
    "Gathered": "bytes rows words",
    "HalfJoinMachine": "_projection _with_times",
    "ImportHandle": "_entry _journal _latest _upper epoch is_complete",
    "InputHandle": (
        "_calls _clock _entrance _few _few_diffs _few_epoch _few_word _held _ordered _plain "
        "_waiting_epochs _word _word_epoch codec epoch is_closed journal rows_waiting"
    ),
    "InspectVertex": "_function _schema",
    "IntoRecordsVertex": "",
    "OutOfRecordsVertex": "",
    "Instance": (
        "_awaiting _begins_later _owner _port_owner alarms anchor captures changes checker "
        "connectors constants count enqueue far first_epoch frozen index is_standby is_taking_over "
        "messages_recv messages_sent recheck resume_later routing rows_recv rows_sent sources "
        "tracker turns wake worker workers"
    ),
    "JoinMachine": "_nothing _ports _shows _sources flags guards kw projections words",
    "JoinVertex": "_flags _ports _projection _schemas _widths",
    "KernelLoop": (
        "_by_span _elsewhere _held_least _is_long _outs _parts _reduces _reported_since _round_counts "
        "_rounds _state _targets _to_barriers _turns at"
    ),
    "KeptChanges": "rows",
    "LatestMachine": "_changes _shape kw vw",
    "LaterVertex": "_first _held_far",
    "LookupMachine": (
        "_first_start _has_ended _is_in_span _source _span columns epoch guards lookup nothing "
        "show times words"
    ),
    "MachineVertex": "_failures _looks_on _make _ports _reads arrangement components failures_output",
    "OnTimeVertex": "_deadline_words _late",
    "OperatorVertex": "_held arrangement",
    "PackedBatch": "_diff _rows _word moved symbol_words",
    "PassingVertex": "columns words",
    "PendingTimes": "_far_summed _guards _kw _looks has_any",
    "Pile": "_columns _loose_rows _rows _sum_at",
    "PriorityVertex": "_turns",
    "ProbeVertex": "",
    "RecordLog": "_complete _digests _done _forgotten_before _kept_here_from _open _records",
    "Records": "records",
    # `VertexRunner`, on which it rests, shows its `inbox`.
    "PathRunner": (
        "_acting _has_ended _held _held_far _held_in_order _limit _paths _port_now _received "
        "_received_minimal _sendable _surroundings code events inbox name site stage worker workers"
    ),
    "ReduceMachine": (
        "_formulas _is_plain _is_sum _least_shape _levels _names _nothing _own_reader _parts _portions "
        "_reader _shape _show_key aggregate columns fails guards input keeps_answers kw output rows_walked "
        "vw words"
    ),
    "RouterVertex": "_arrived _changes _complete _lead _mask _shift _versions_before routing",
    "RowsEndVertex": "",
    "Run": "_sums _total bytes compacted directory memory",
    "SharedTrace": "_all_lines _holds_moved _pinned _readers _since name sequence",
    "SteeringVertex": "_counts _noted _placement _shift _sums _table",
    "StreamExportVertex": "_keep _kept _readers _since",
    "StreamImport": "_news _since _vertex _waiting",
    "SourceRunner": (
        "_acting _begins_at _granted _has_ended _held _held_far _held_in_order _holders _is_new _journal "
        "_limit _note_kept _position _positions _received _received_minimal _surroundings _through code "
        "events is_held_back kept_before latest name site stage worker workers"
    ),
    "TableBatch": "table",
    # What is in `_rows` is in `_there`, too.
    "TableFailures": "_code _complete _kinds _out _rows _there",
    "TableLog": (
        "_code _complete _digests _epochs _failures _few_rows _forgotten_before _has_base_unanswered "
        "_is_repeatable _kept_here_from _last _older _schema"
    ),
    "TablePieces": "_bytes_max _clock _schema",
    "ToldFailures": "told",
    "Trace": (
        "_bounds _head _head_room _head_rows _is_shrinking _is_shrunk _merges _owed _seen _since _tried "
        "_unseen asks_corners columns guards inserted kw look show table tail vw"
    ),
    "UnitRouterVertex": "_keys _lead _placement _schedule _shift _side",
    "Units": "_counts _epoch_max _iteration _pending _schedule _shift guards loads moved shape stores",
    "UnitsVertex": "_lead _placement _schemas _shape",
    "UpdateBatch": "moved rows symbol_words",
    "Vertex": "_bound _now _runner",
    "VertexRunner": (
        "_acting _acts_at _ahead _alarms _has_asked _has_ended _has_looked _has_times _held _held_far "
        "_held_in_order _is_begun _lasting _limit _looks_for_times _lost _received _received_minimal "
        "_surroundings _waiting _waiting_in_order activations calls code due events followers "
        "has_frontier_news is_ahead is_patient is_queued may_resume moves name notifies opened ports "
        "requested site source stage vertex_code wants_activation wants_end wants_frontier wants_resume "
        "worker workers"
    ),
    "View": "table",
    "WaitingByOrigin": "_guards _order _origin _times",
    "WaitingRows": "_times columns guards rows show",
    "WindowMachine": "_functions _marks _portions keeps_answers",
    "Worker": (
        "_broadcasters _checks_progress _compiles_loops _ended _lends _lent_to _transport _untold "
        "acting controls_recv controls_sent credits forgetting index logs_sources messages_recv "
        "messages_sent on_control on_failure on_step shares_thread steps telling timings workers"
    ),
    "_CopiedValues": "_beside_keys",
    "_EdgeVertex": "_schema _site",
    "_OldVersion": "_codec _share _tables epoch failures",
}
"""By class, the attributes that its `symbols` does not name."""
