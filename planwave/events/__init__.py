"""Immutable, numbered facts about an execution, and everything that is computed from them alone.

``vocabulary`` names the facts, ``state`` folds them into the state of an execution, ``course`` tells
what happened to one node and ``feeds`` what reached it, ``sentences`` and ``entries`` tell all of it
as log lines. Pure: no clock, no I/O, no pydantic; cheap to import.
"""

from planwave.events.logs.text_log import TextLog, execution_logs
from planwave.events.node_state import ENDED_NODE, NodeState
from planwave.events.state import ENDED_STATUS, ExecutionState, OpenRequest, fold
from planwave.events.types import TERMINAL, TRANSIENT, Event
from planwave.events.usage import UsageTotal

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
