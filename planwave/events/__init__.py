"""Immutable, numbered facts about an execution, and everything that is computed from them alone.

``vocabulary`` names the facts, ``state`` folds them into the state of an execution, ``course`` tells
what happened to one node and ``feeds`` what reached it, ``sentences`` and ``entries`` tell all of it
as log lines. Pure: no clock, no I/O, no pydantic; cheap to import.
"""

from planwave.events.node_state import ENDED_NODE, NodeState, UsageTotal
from planwave.events.sentences import TextLog, execution_logs
from planwave.events.state import ENDED_STATUS, ExecutionState, OpenRequest, fold
from planwave.events.vocabulary import TERMINAL, TRANSIENT, Event

__all__ = [
    "ENDED_NODE",
    "ENDED_STATUS",
    "TERMINAL",
    "TRANSIENT",
    "Event",
    "ExecutionState",
    "NodeState",
    "OpenRequest",
    "TextLog",
    "UsageTotal",
    "execution_logs",
    "fold",
]
