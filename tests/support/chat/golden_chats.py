"""What the client of a chat is told, by scenario: written from the wire names of the chat protocol.

One line for each event: its name, the node or block that it is about, and what it says. Pieces of
one text are joined; the member run that an event belongs to comes before the node, with ``>``.
"""

from __future__ import annotations

from typing import Final

BEGINNING: Final = (
    "RunStarted",
    "AssistantMessageId",
)
ENTRY: Final = (
    "FlowNodeStarted entry-1",
    "FlowNodeResult entry-1",
    "FlowNodeCompleted entry-1",
    "FlowNodeStarted agent-1",
)
END: Final = (
    "FlowNodeResult agent-1",
    "FlowNodeCompleted agent-1",
    "RunCompleted",
)

SIMPLE: Final = (
    *BEGINNING,
    *ENTRY,
    "RunContent agent-1: Hello, Ada.",
    "TokenUsage",
    *END,
)
REASONING: Final = (
    *BEGINNING,
    *ENTRY,
    "ReasoningStarted agent-1",
    "ReasoningStep agent-1: They said hello. I do too.",
    "ReasoningCompleted agent-1",
    "RunContent agent-1: Hello.",
    "TokenUsage",
    *END,
)
TOOL_CALL: Final = (
    *BEGINNING,
    *ENTRY,
    "RunContent agent-1: Let me look.",
    "TokenUsage",
    "ToolCallStarted agent-1: look_up {'order': 'A-1'}",
    "ToolCallCompleted agent-1: look_up = it is on its way",
    "RunContent agent-1: It is on its way.",
    "TokenUsage",
    *END,
)
APPROVAL: Final = (
    *BEGINNING,
    *ENTRY,
    "TokenUsage",
    "ApprovalRequired agent-1: refund {'order': 'A-1', 'amount': 5}",
    "ApprovalResolved agent-1: approved",
    "ToolCallStarted agent-1: refund {'order': 'A-1', 'amount': 3}",
    "ToolCallCompleted agent-1: refund = paid 3",
    "RunContent agent-1: Refunded.",
    "TokenUsage",
    *END,
)
REJECTION: Final = (
    *BEGINNING,
    *ENTRY,
    "TokenUsage",
    "ApprovalRequired agent-1: refund {'order': 'A-1', 'amount': 5}",
    "ApprovalResolved agent-1: rejected",
    "ToolCallFailed agent-1: refund ! rejected",
    "RunContent agent-1: Refunded.",
    "TokenUsage",
    *END,
)
MEMBER: Final = (
    *BEGINNING,
    *ENTRY,
    "TokenUsage",
    "MemberRunStarted agent-1: Scout, Find it",
    "RunContent Scout > scout: Found it.",
    "TokenUsage",
    "MemberRunCompleted agent-1: Found it.",
    "RunContent agent-1: The scout found it.",
    "TokenUsage",
    *END,
)
CANCEL: Final = (
    *BEGINNING,
    *ENTRY,
    "RunContent agent-1: Once upon",
    "RunCancelled",
)
EARLY_CANCEL: Final = ("RunCancelled",)
NODE_ERROR: Final = (
    *BEGINNING,
    *ENTRY,
    "FlowNodeError agent-1: bad-request",
    "RunError: bad-request",
)
THREE_AGENTS: Final = (
    *BEGINNING,
    *ENTRY,
    "RunContent agent-1: one",
    "TokenUsage",
    "FlowNodeResult agent-1",
    "FlowNodeCompleted agent-1",
    "FlowNodeStarted agent-2",
    "RunContent agent-2: two",
    "TokenUsage",
    "FlowNodeResult agent-2",
    "FlowNodeCompleted agent-2",
    "FlowNodeStarted agent-3",
    "RunContent agent-3: three",
    "TokenUsage",
    "FlowNodeResult agent-3",
    "FlowNodeCompleted agent-3",
    "RunCompleted",
)
SEEDED: Final = "SeedBlocks"
"""Where a reply continues another one: after ``AssistantMessageId``, or first without a start."""
