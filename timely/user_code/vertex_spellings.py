"""Names that timely dataflow and Naiad have for what a vertex is called by, and calls.

A method that nobody calls is a mistake that nobody sees: if a class defines `OnRecv`, and no `on_recv`, its
stage is refused when the dataflow is installed.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from .short_traces import short_lookup
from .spellings import Same, Spellings

__all__ = [
    "OF_ACTIVATORS",
    "OF_CALLBACKS",
    "OF_CAPABILITIES",
    "OF_VERTICES",
    "AnswersOfVertices",
    "meant_callback",
]

_NEAR: Final = 0.8
_MISSPELT: Final = ("on_recv", "on_notify")
"""Callbacks that a name as near as this is a misspelling of. Of `on_end`, `on_send` would be one."""

_ON_RECV: Final = "on_recv(edge, message, time), a method that your class defines"
_ON_NOTIFY: Final = (
    "on_notify(time), a method that your class defines, and notify_at(time), which asks for it"
)
_SEND: Final = "send_by(output, records, time), for the first output send_by(0, [record], time)"
_HOLD: Final = "hold(time), which returns a capability: it holds the time until you call its drop()"
_HELD: Final = "held = self.hold(time), and later held.downgrade(later), held.delay(later) or held.drop()"
_FRONTIER: Final = "frontier(port), the least times at or after which records may still come in: a list"
_RECORDS: Final = "the list of records that on_recv(edge, message, time) gets as `message`"
_ACTIVATE: Final = "activate(after=seconds), or activate(at=moment); then on_activate() is called"

_PORTS: Final = (
    "dataflow.stage(name, Vertex, feeds, outputs=2), where the dataflow is built: it says which inputs and "
    "outputs there are"
)

OF_VERTICES: Final = Spellings(
    {
        **dict.fromkeys(("OnRecv", "OnReceive", "on_receive", "receive", "recv"), _ON_RECV),
        **dict.fromkeys(("OnNotify", "on_notification", "on_timer", "notified"), _ON_NOTIFY),
        **dict.fromkeys(("SendBy", "Send", "give", "give_iterator", "give_vec", "give_container"), _SEND),
        **dict.fromkeys(("session", "session_with_builder", "emit", "output", "outputs", "push"), _SEND),
        **dict.fromkeys(
            ("notify", "notificator", "FrontierNotificator", "register_timer", "set_timer"),
            "notify_at(time); then on_notify(time) is called",
        ),
        "NotifyAt": Same("notify_at"),
        **dict.fromkeys(
            ("notify_at_frontiered", "for_each_notification"), "notify_at(time), and define on_notify(time)"
        ),
        **dict.fromkeys(("retain", "retain_for_output", "capability", "capabilities", "cap", "mint"), _HOLD),
        **dict.fromkeys(("delayed", "delay", "downgrade", "drop", "release"), _HELD),
        **dict.fromkeys(("index", "rank", "worker_index", "VertexId"), "worker, the number of its worker"),
        **dict.fromkeys(("peers", "worker_count"), "workers, the number of all workers"),
        **dict.fromkeys(("activate_after", "ActivateAfter", "schedule", "timer"), _ACTIVATE),
        **dict.fromkeys(("sync_activator", "activator_for"), "activator(), which any thread may use"),
        **dict.fromkeys(("frontiers", "with_frontier", "less_than", "less_equal", "is_empty"), _FRONTIER),
        **dict.fromkeys(("for_each", "next", "drain", "swap", "input", "inputs"), _RECORDS),
        "time": "the time that on_recv(edge, message, time) and on_notify(time) get",
        **dict.fromkeys(("Stage", "stage", "scope"), "name, worker and workers of the vertex"),
        **dict.fromkeys(
            ("Entrancy", "reentrancy"),
            "resume() and on_resume(): callbacks are queued, and never called within one another",
        ),
        **dict.fromkeys(("OnShutdown", "on_shutdown", "on_close", "close"), "on_end(reason)"),
        **dict.fromkeys(
            ("give_content", "GetBufferForTime", "Output", "buffer", "flush", "Flush", "output_index"), _SEND
        ),
        **dict.fromkeys(("for_each_time", "Input", "Inputs"), _RECORDS),
        **dict.fromkeys(
            ("next_count", "make_available", "monotonic", "pending", "Notify"),
            "notify_at(time); then on_notify(time) is called",
        ),
        **dict.fromkeys(("activations", "activate_batch"), "activator(), which any thread may use"),
        **dict.fromkeys(("delayed_for_output", "try_delayed", "try_downgrade"), _HELD),
        **dict.fromkeys(
            ("set_notify_for", "build", "shape", "operator_info", "AddInput", "NewInput", "NewOutput"), _PORTS
        ),
        **dict.fromkeys(("AddOnRecv", "NewUnnotifiedInput"), _PORTS),
        **dict.fromkeys(("path", "global", "addr", "address"), "name, the name of its stage"),
        **dict.fromkeys(
            ("Checkpoint", "Restore", "SetCheckpointType"),
            "timely.connect(durable=folder): after a restart a vertex sees the records again",
        ),
        **dict.fromkeys(
            ("PushEventTime", "PopEventTime"),
            "the time that on_recv(edge, message, time) gets, and hold(time)",
        ),
        **dict.fromkeys(("Scheduler", "Computation"), "name, worker and workers of the vertex"),
        **dict.fromkeys(("logging", "Logging", "log_register"), "Python's own logging"),
        **dict.fromkeys(
            ("rescope", "as_collection", "unordered_input", "result"),
            "that of streams and dataflows: operators are put together in the function that builds",
        ),
    }
)
"""What code of a vertex asks of itself."""

OF_CALLBACKS: Final = {
    **dict.fromkeys(
        ("OnRecv", "OnReceive", "on_receive", "on_message", "on_record", "on_records"), "on_recv"
    ),
    **dict.fromkeys(("OnNotify", "on_notification"), "on_notify"),
    "OnShutdown": "on_end",
}
"""Methods that classes of vertices have elsewhere, and what they are called here."""

OF_CAPABILITIES: Final = Spellings(
    {
        "delayed": Same("delay"),
        **dict.fromkeys(("release", "close", "free"), Same("drop")),
        **dict.fromkeys(("retain", "clone", "copy"), "delay(held.time), a second capability at its time"),
        **dict.fromkeys(("session", "send_by", "send"), "self.send_by(0, records, held.time)"),
        "notify_at": "self.notify_at(held.time)",
        **dict.fromkeys(("try_delayed", "try_downgrade"), "delay(later), which raises for an earlier time"),
        **dict.fromkeys(("valid_for_output", "output"), "is_held: it is good for all outputs of its vertex"),
        "delayed_for_output": "delay(later), which is good for all outputs of its vertex",
        "downgrade_to": Same("downgrade"),
        **dict.fromkeys(
            ("insert", "from_elem", "extend"), "a list of capabilities: held = [self.hold(time)]"
        ),
        **dict.fromkeys(("activate", "activator"), "self.activate(), for a turn of the vertex"),
    }
)

OF_ACTIVATORS: Final = Spellings(
    {
        **dict.fromkeys(("Activate", "ring", "wake", "wake_up", "notify", "set", "send"), Same("activate")),
        **dict.fromkeys(("activate_after", "activate_at"), "self.activate(after=seconds), in a callback"),
        **dict.fromkeys(("activate_batch", "advance"), "activate(), of each activator"),
        **dict.fromkeys(("activator", "sync_activator", "SyncActivator"), "self.activator(), in a callback"),
        **dict.fromkeys(("drop", "clone", "close"), "nothing: threads share one, and it is never closed"),
    }
)


class AnswersOfVertices:
    """What a vertex answers when it is asked for a name that it does not have."""

    __slots__ = ()

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> object:
            if not name.startswith("__") and hasattr(type(self), name):
                # A property has raised an AttributeError of its own: raise that one.
                return object.__getattribute__(self, name)
            same = OF_VERTICES.same(self, name)
            if same is None:
                missing = f"{type(self).__name__!r} object has no attribute {name!r}"
                has = () if name.startswith("_") else object.__dir__(self)
                raise AttributeError(OF_VERTICES.message(missing, name, has))
            return same


def meant_callback(kind: type, base: type, ours: str) -> str | None:
    """Return the name of a method of the class `kind` by which its author means the callback `ours` of the
    class `base`: the name that others have for it, or one that is nearly the same. None if there is none, or
    if the class has `ours`.
    """
    if getattr(kind, ours) is not getattr(base, ours):
        return None
    own = sorted({name for part in kind.__mro__ if part not in base.__mro__ for name in vars(part)})
    others = [name for name in own if OF_CALLBACKS.get(name) == ours]
    near = get_close_matches(ours, own, 1, _NEAR) if ours in _MISSPELT else []
    return next((name for name in others + near if callable(getattr(kind, name))), None)
