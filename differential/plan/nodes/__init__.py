"""The operators of plans, as data: `node.py` defines a node, the other files the operators."""

from .effects import ByHand, Export, Inspect, IntoStream, Output
from .groups import Accumulate, AddedColumn
from .guarded import Answered, Guarded, Provided
from .leaves import CONSTANT_BYTES_MAX, ConstantRows, FromStream, Import, Input, OneRow, Variable
from .linear import Apply, ApplyKind, Arrange, Concat, Filter, Negate, NotNull, PlaceOnUnits, Select, Weigh
from .loops import ByPriority, Empty, LeaveLoop, LetRec
from .node import Node
from .ordered import ALL_ROWS, GroupCall, GroupValues, OrderBy, OverWindow, TopK, WindowCall, check_order
from .patterns import BOUND_OPS, Bounded, BoundOp, JoinAll, Spread, SpreadLoads, Steered
from .stateful import Consolidate, Distinct, HalfJoin, Join, Keys, Pairs, Reduce, ReduceFunction
from .timed import During, OnTime, Slide, Sweep
from .times import AssertEmpty, Delay

__all__ = [
    "ALL_ROWS",
    "BOUND_OPS",
    "CONSTANT_BYTES_MAX",
    "Accumulate",
    "AddedColumn",
    "Answered",
    "Apply",
    "ApplyKind",
    "Arrange",
    "AssertEmpty",
    "BoundOp",
    "Bounded",
    "ByHand",
    "ByPriority",
    "Concat",
    "Consolidate",
    "ConstantRows",
    "Delay",
    "Distinct",
    "During",
    "Empty",
    "Export",
    "Filter",
    "FromStream",
    "GroupCall",
    "GroupValues",
    "Guarded",
    "HalfJoin",
    "Import",
    "Input",
    "Inspect",
    "IntoStream",
    "Join",
    "JoinAll",
    "Keys",
    "LeaveLoop",
    "LetRec",
    "Negate",
    "Node",
    "NotNull",
    "OnTime",
    "OneRow",
    "OrderBy",
    "Output",
    "OverWindow",
    "Pairs",
    "PlaceOnUnits",
    "Provided",
    "Reduce",
    "ReduceFunction",
    "Select",
    "Slide",
    "Spread",
    "SpreadLoads",
    "Steered",
    "Sweep",
    "TopK",
    "Variable",
    "Weigh",
    "WindowCall",
    "check_order",
]
