"""The node types that come with planwave."""

from __future__ import annotations

from planwave.nodes.agent import Agent
from planwave.nodes.approval import Approval
from planwave.nodes.chat import Chat
from planwave.nodes.end import End
from planwave.nodes.if_ import If
from planwave.nodes.llm import Llm
from planwave.nodes.node_type import NodeType
from planwave.nodes.parser import Parser
from planwave.nodes.start import Start
from planwave.nodes.text import Text
from planwave.nodes.user_input import UserInput

LIBRARY: tuple[type[NodeType], ...] = (
    Start,
    UserInput,
    Chat,
    Agent,
    Llm,
    Text,
    Parser,
    If,
    Approval,
    End,
)
