"""The node types that come with planwave."""

from __future__ import annotations

from planwave.nodes.authoring.node_type import BaseNode
from planwave.nodes.library.agent import Agent
from planwave.nodes.library.approval import Approval
from planwave.nodes.library.boolean import Boolean
from planwave.nodes.library.call_tool import CallTool
from planwave.nodes.library.chat import Chat
from planwave.nodes.library.chat_start import ChatStart
from planwave.nodes.library.conditional import Conditional
from planwave.nodes.library.end import End
from planwave.nodes.library.fetch import Fetch
from planwave.nodes.library.flow_tool import FlowTool
from planwave.nodes.library.http_tool import HttpTool
from planwave.nodes.library.if_ import If
from planwave.nodes.library.inner import Inner
from planwave.nodes.library.json_ import JsonValue
from planwave.nodes.library.llm import Llm
from planwave.nodes.library.loop import Loop
from planwave.nodes.library.mcp_server import McpServer
from planwave.nodes.library.merge import Merge
from planwave.nodes.library.model import ClientModel, Model
from planwave.nodes.library.number import Number
from planwave.nodes.library.parser import Parser
from planwave.nodes.library.placeholder import Placeholder
from planwave.nodes.library.planner import PlannerNode
from planwave.nodes.library.schedule import ScheduleNode
from planwave.nodes.library.send_message import SendMessage
from planwave.nodes.library.sse import Sse
from planwave.nodes.library.start import Start
from planwave.nodes.library.switch import Switch
from planwave.nodes.library.text import Text
from planwave.nodes.library.tool import RegisteredToolNode
from planwave.nodes.library.tool_approval import ToolApproval
from planwave.nodes.library.toolset import Toolset
from planwave.nodes.library.transform import Transform
from planwave.nodes.library.user_input import UserInput
from planwave.nodes.library.void import Void
from planwave.nodes.library.wait import Wait
from planwave.nodes.library.webhook import Webhook
from planwave.nodes.library.webhook_reply import WebhookReply
from planwave.nodes.library.while_ import While

LIBRARY: tuple[type[BaseNode], ...] = (
    Start,
    UserInput,
    ChatStart,
    Webhook,
    WebhookReply,
    ScheduleNode,
    Sse,
    Chat,
    Agent,
    Llm,
    Model,
    ClientModel,
    McpServer,
    RegisteredToolNode,
    Toolset,
    HttpTool,
    FlowTool,
    Text,
    Number,
    Boolean,
    JsonValue,
    Parser,
    Transform,
    Fetch,
    CallTool,
    Merge,
    If,
    Conditional,
    Switch,
    Loop,
    While,
    Inner,
    PlannerNode,
    Approval,
    ToolApproval,
    Wait,
    SendMessage,
    End,
    Void,
    Placeholder,
)
