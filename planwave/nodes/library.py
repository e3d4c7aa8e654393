"""The node types that come with planwave."""

from __future__ import annotations

from planwave.nodes.agent import Agent
from planwave.nodes.approval import Approval
from planwave.nodes.chat import Chat
from planwave.nodes.end import End
from planwave.nodes.if_ import If
from planwave.nodes.inner import Inner
from planwave.nodes.llm import Llm
from planwave.nodes.loop import Loop
from planwave.nodes.node_type import NodeType
from planwave.nodes.parser import Parser
from planwave.nodes.planner_node import PlannerNode
from planwave.nodes.start import Start
from planwave.nodes.text import Text
from planwave.nodes.user_input import UserInput
from planwave.nodes.while_ import While

LIBRARY: tuple[type[NodeType], ...] = (
    Start,
    UserInput,
    Chat,
    Agent,
    Llm,
    Text,
    Parser,
    If,
    Loop,
    While,
    Inner,
    PlannerNode,
    Approval,
    End,
)
