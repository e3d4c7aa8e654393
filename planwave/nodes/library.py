"""The node types that come with planwave."""

from __future__ import annotations

from planwave.nodes.agent import Agent
from planwave.nodes.approval import Approval
from planwave.nodes.boolean import Boolean
from planwave.nodes.chat import Chat
from planwave.nodes.conditional import Conditional
from planwave.nodes.end import End
from planwave.nodes.if_ import If
from planwave.nodes.inner import Inner
from planwave.nodes.json_ import JsonValue
from planwave.nodes.llm import Llm
from planwave.nodes.loop import Loop
from planwave.nodes.merge import Merge
from planwave.nodes.model import ClientModel, Model
from planwave.nodes.node_type import BaseNode
from planwave.nodes.number import Number
from planwave.nodes.parser import Parser
from planwave.nodes.planner_node import PlannerNode
from planwave.nodes.send_message import SendMessage
from planwave.nodes.start import Start
from planwave.nodes.switch import Switch
from planwave.nodes.text import Text
from planwave.nodes.transform import Transform
from planwave.nodes.user_input import UserInput
from planwave.nodes.void import Void
from planwave.nodes.wait import Wait
from planwave.nodes.while_ import While

LIBRARY: tuple[type[BaseNode], ...] = (
    Start,
    UserInput,
    Chat,
    Agent,
    Llm,
    Model,
    ClientModel,
    Text,
    Number,
    Boolean,
    JsonValue,
    Parser,
    Transform,
    Merge,
    If,
    Conditional,
    Switch,
    Loop,
    While,
    Inner,
    PlannerNode,
    Approval,
    Wait,
    SendMessage,
    End,
    Void,
)
