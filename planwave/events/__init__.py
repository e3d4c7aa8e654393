"""Immutable, numbered events of an execution, and everything that is computed from them alone.

``types`` defines the events, ``state`` folds them into the state of an execution, ``outcome`` says what a failed one
delivered all the same, ``timeline`` lists the events of each node and ``node_inputs`` the values that reached it;
``logs`` converts events for people. ``stream`` says which text of an execution people see; ``chat_chunks`` and
``chat_events`` encode it for chat clients. Pure: no clock, no I/O, no pydantic.
"""

from planwave.events.logs.text_log import TextLog, execution_logs
from planwave.events.node_state import ENDED_NODE, NodeState
from planwave.events.paths import NodePath
from planwave.events.state import ENDED_STATUS, ExecutionState, OpenRequest, fold
from planwave.events.types import TERMINAL, TRANSIENT, Event, PauseKind, TypedEvent
from planwave.events.usage import UsageTotal

__all__ = [
    "ENDED_NODE",
    "ENDED_STATUS",
    "TERMINAL",
    "TRANSIENT",
    "Event",
    "ExecutionState",
    "NodePath",
    "NodeState",
    "OpenRequest",
    "PauseKind",
    "TextLog",
    "TypedEvent",
    "UsageTotal",
    "execution_logs",
    "fold",
]
