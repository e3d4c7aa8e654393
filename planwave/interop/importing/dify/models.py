"""Steps that ask a language model: llm and agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.dify.jinja import jinja_template
from planwave.interop.importing.dify.policies import offer_failure, policy_of
from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import CONTEXT, Read, selector_of
from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.reading import (
    list_of,
    number_of,
    object_of,
    objects_in,
    text_of,
)
from planwave.interop.importing.templates import inserted, literal, output_of

_EFFORTS: Final = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_MAX_TOKENS: Final = 200_000
_MAX_TURNS: Final = 1_000
_SCHEMA_TYPES: Final = ("string", "number", "integer", "boolean", "object", "array")
_MAX_SCHEMA_DEPTH: Final = 10
_NO_QUESTION: Final = "its prompt does not end with a message of the user"
_ALL_TURNS: Final = 500
"""The turns that Dify reads of a conversation without a window."""


class Message(NamedTuple):
    """A message of a prompt, as a template."""

    role: str
    text: str


def model_fields(step: Step, model: Mapping[str, Any], pointer: str = "/model") -> dict[str, Any]:
    """Return ``provider``, ``model`` and settings of a model, and note what has no counterpart."""
    provider = text_of(model, "provider").strip("/").rpartition("/")[2]
    name = text_of(model, "name") or text_of(model, "model")
    fields = {key: value for key, value in (("provider", provider), ("model", name)) if value}
    params = object_of(model, "completion_params")
    left: list[str] = []
    for key, value in params.items():
        made = _parameter(key, value)
        if made is None:
            left.append(key)
        fields |= made or {}
    if left:
        step.node.change(
            f"settings of the model that are left to its provider: {', '.join(sorted(left))}",
            f"{step.pointer}{pointer}/completion_params",
        )
    return fields


def needs_provider(step: Step, target: Target) -> None:
    """Say that the operator has to configure the provider of a node."""
    data = object_of(target.node, "data")
    if provider := text_of(data, "provider"):
        step.app.conversion.needs("provider", provider, target)


def _parameter(key: str, value: object) -> dict[str, Any] | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if key == "temperature" and is_number and 0 <= cast("float", value) <= 2:
        return {"temperature": value}
    if key == "max_tokens" and is_number and cast("float", value) in range(1, _MAX_TOKENS + 1):
        return {"maxTokens": int(cast("float", value))}
    if key == "reasoning_effort" and value in _EFFORTS:
        return {"reasoningEffort": value}
    return None


def llm(step: Step) -> None:
    """Become an ``llm``, or an ``agent`` where the reply has to fit a schema."""
    schema = _schema_of(step)
    fields = model_fields(step, object_of(step.data, "model"))
    node_type, system_field, prompt_field = "llm", "system", "prompt"
    if schema is not None:
        node_type, system_field, prompt_field = "agent", "systemPrompt", "userPrompt"
        fields["outputSchema"] = schema
    main = step.becomes(node_type, fields, policy_of(step, "text"))
    data = main.node.setdefault("data", {})
    needs_provider(step, main)
    _offer_reply(step, main, is_json=schema is not None)
    messages = _messages(step)
    memory, images = memory_of(step), _images(step)
    if memory or images:
        _ask_in_chat(step, main, messages, memory, images)
        return
    system, rest = _split(step, messages)
    if system:
        data[system_field] = system
    if rest and rest[-1].role == "user":
        data[prompt_field] = rest.pop().text
    elif rest:
        step.lose(_NO_QUESTION, rest[-1].text, "/prompt_template")
    if rest:
        _prepend(step, main, rest)


def _offer_reply(step: Step, main: Target, *, is_json: bool) -> None:
    reply = output_of(main.id)
    if is_json:
        step.outputs["text"] = Read(f"{reply} | tojson", kind="text")
        step.outputs["structured_output"] = Read(reply)
    else:
        step.outputs["text"] = Read(reply, kind="text")
    offer_failure(step)


def _schema_of(step: Step) -> dict[str, Any] | None:
    if step.data.get("structured_output_enabled") is not True:
        return None
    schema = object_of(object_of(step.data, "structured_output"), "schema")
    made = _plain_schema(schema)
    if made is not None and made["type"] == "object":
        return made
    step.lose("its schema of the reply cannot be read", schema, "/structured_output")
    return None


def _plain_schema(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any] | None:
    """Return a schema as Dify's editor writes it; None where it says more than that, or is none."""
    fields = dict(schema)
    made: dict[str, Any] = {"type": fields.pop("type", None)}
    if made["type"] not in _SCHEMA_TYPES or depth > _MAX_SCHEMA_DEPTH:
        return None
    for name, keep in (("description", str), ("title", str), ("additionalProperties", bool)):
        if isinstance(value := fields.pop(name, None), keep):
            made[name] = value
    for name in ("enum", "required"):
        if name in fields:
            made[name] = texts = list_of(fields, name)
            del fields[name]
            if not texts or not all(isinstance(each, str) for each in texts):
                del made[name]
    parts = dict(object_of(fields, "properties"))
    properties = {each: _plain_schema(object_of(parts, each), depth + 1) for each in parts}
    items = _plain_schema(object_of(fields, "items"), depth + 1) if "items" in fields else {}
    if items is None or None in properties.values() or fields.keys() - {"properties", "items"}:
        return None
    return (
        made
        | ({"properties": properties} if properties else {})
        | ({"items": items} if items else {})
    )


def _messages(step: Step) -> list[Message]:
    """Return the messages of the prompt, empty ones left out."""
    prompt = step.data.get("prompt_template")
    context = _context(step)
    if isinstance(prompt, dict):  # a model that completes a text
        fields = cast("Mapping[str, Any]", prompt)
        return [Message("user", _prompt_text(step, fields, "/prompt_template", context))]
    messages: list[Message] = []
    for number, fields in objects_in(step.data, "prompt_template"):
        role, pointer = text_of(fields, "role"), f"/prompt_template/{number}"
        if role not in ("system", "user", "assistant"):
            step.lose("this role of a message is not known", role, f"{pointer}/role")
        text = _prompt_text(step, fields, pointer, context)
        if text.strip():
            messages.append(Message(role, text))
    if not messages:
        step.lose("it has no prompt", prompt, "/prompt_template")
    return messages


def _prompt_text(
    step: Step, fields: Mapping[str, Any], pointer: str, context: Mapping[str, Read]
) -> str:
    if text_of(fields, "edition_type") != "jinja2":
        return step.text(text_of(fields, "text"), f"{pointer}/text", local=context)
    variables = objects_in(object_of(step.data, "prompt_config"), "jinja2_variables")
    text = text_of(fields, "jinja2_text") or text_of(fields, "text")
    return jinja_template(step, text, [each for _, each in variables], f"{pointer}/jinja2_text")


def _context(step: Step) -> dict[str, Read]:
    """Return what reads ``{{#context#}}``."""
    context = object_of(step.data, "context")
    if context.get("enabled") is not True:
        return {CONTEXT[0]: Read('""', kind="text")}
    selector = selector_of(context.get("variable_selector"))
    read = step.read(context.get("variable_selector"), "/context/variable_selector")
    if read is None:
        return {}
    owner = step.app.by_id.get(selector[0])
    if owner is not None and owner.kind == "knowledge-retrieval":
        contents = f'{read.operand} | map(attribute="content") | join("\\n")'
        read = Read(contents, read.guard, "text")
    return {CONTEXT[0]: read}


def _split(step: Step, messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the system prompt and the other messages."""
    system = [each.text for each in messages if each.role == "system"]
    rest = [each for each in messages if each.role != "system"]
    if system and not rest:
        step.node.change("its system message alone is sent as the user's message")
        return "", [Message("user", "\n\n".join(system))]
    if len(system) > 1:
        step.node.change("its system messages are sent as one")
    return "\n\n".join(system), rest


def _prepend(step: Step, main: Target, messages: Sequence[Message]) -> None:
    """Send messages before the prompt."""
    before = _conversation(step, messages)
    step.entries = [before]
    new_edge(main.graph, before.id, main.id, "output", "messages")


def _conversation(step: Step, messages: Sequence[Message]) -> Target:
    said = [{"role": each.role, "content": each.text} for each in messages]
    return step.add("parser", {"template": said}, "messages")


def memory_of(step: Step) -> dict[str, Any]:
    """Return the memory of a step in a chat, and its message as ``message``; {} if it has none."""
    memory = object_of(step.data, "memory")
    if not memory:
        return {}
    if not step.app.is_chat:
        step.node.note("import-ignored", "a workflow has no earlier turns: its memory is left out")
        return {}
    chat = step.scope.resolve(("sys", "conversation_id"), step)
    if not isinstance(chat, Read):
        step.lose(chat.message, "memory", "/memory", chat.code)
        return {}
    window = object_of(memory, "window")
    size = number_of(window, "size")
    turns = _ALL_TURNS
    if window.get("enabled") is True and size is not None:
        turns = int(min(max(size, 1), _MAX_TURNS))
    step.node.change(
        f"its memory is the last {turns} turns of the chat in which this step ran",
        f"{step.pointer}/memory",
    )
    query = text_of(memory, "query_prompt_template") or "{{#sys.query#}}"
    key = inserted(chat.expression)
    return {
        "memory": {"key": f"{key}/{literal(step.id)}", "maxTurns": turns},
        "message": step.text(query, "/memory/query_prompt_template"),
    }


def _images(step: Step) -> Read | None:
    """Return what reads the images that go with the prompt; None if there are none."""
    vision = object_of(step.data, "vision")
    if vision.get("enabled") is not True:
        return None
    configs = object_of(vision, "configs")
    selector = selector_of(configs.get("variable_selector")) or ("sys", "files")
    if selector[:2] == ("sys", "files"):
        if not step.app.is_chat:
            step.node.note("import-ignored", "a run here brings no files: no images are sent")
            return None
        selector = ("sys", "images")
    read = step.read(list(selector), "/vision/configs/variable_selector")
    step.node.change("images go with the prompt as they come in: Dify's level of detail is not set")
    return read


def _ask_in_chat(
    step: Step,
    main: Target,
    messages: Sequence[Message],
    memory: Mapping[str, Any],
    images: Read | None,
) -> None:
    """Build the conversation in a node of its own: system, earlier turns, messages, the user's message."""
    system = "\n\n".join(each.text for each in messages if each.role == "system")
    rest = [each for each in messages if each.role != "system"]
    data: dict[str, Any] = {"system": system} if system else {}
    if memory:
        data |= memory
        if rest and rest[-1] == Message("user", str(memory["message"])):
            rest.pop()
    elif rest and rest[-1].role == "user":
        data["message"] = rest.pop().text
    elif rest:
        step.lose(_NO_QUESTION, rest[-1].text, "/prompt_template")
    else:
        data = {"message": system}
        step.node.change("its system message alone is sent as the user's message, with the images")
    chat = step.add("chat", data, "chat")
    new_edge(main.graph, chat.id, main.id, "messages", "messages")
    step.entries = []
    if rest:
        before = _conversation(step, rest)
        new_edge(main.graph, before.id, chat.id, "output", "customMessages")
        step.entries.append(before)
        if memory:
            step.node.change("the messages of its prompt follow the earlier turns")
    if images is not None:
        shown = step.add("transform", {"expression": inserted(_as_list(images))}, "images")
        new_edge(main.graph, shown.id, chat.id, "output", "images")
        step.entries.append(shown)
    step.entries = step.entries or [chat]


def _as_list(read: Read) -> str:
    """Return an expression of a list: an input of one file is a list of one."""
    if read.kind == "list":
        return read.else_("[]")
    value = read.operand
    made = (
        f"[] if not {value} else [{value}] if {value} is mapping or {value} is string else {value}"
    )
    return Read(made, read.guard).else_("[]")


def agent(step: Step) -> None:
    """Become an ``agent``; its tools are placeholders that are linked to it."""
    parameters = object_of(step.data, "agent_parameters")
    model = object_of(object_of(parameters, "model"), "value")
    data = model_fields(step, model, "/agent_parameters/model/value")
    data["systemPrompt"] = _agent_text(step, parameters, "instruction")
    data["userPrompt"] = _agent_text(step, parameters, "query")
    rounds = number_of(object_of(parameters, "maximum_iterations"), "value")
    if rounds is not None:
        data["maxSteps"] = int(min(max(rounds, 1), 100))
    main = step.becomes("agent", {k: v for k, v in data.items() if v}, policy_of(step, "text"))
    needs_provider(step, main)
    _offer_reply(step, main, is_json=False)
    strategy = text_of(step.data, "agent_strategy_name")
    step.node.change(
        f"the strategy {strategy!r} is planwave's own: the model calls tools by itself"
    )
    if object_of(step.data, "memory"):
        step.node.change("it is not shown earlier turns of the chat", f"{step.pointer}/memory")
    known = {"instruction", "query", "model", "tools", "maximum_iterations"}
    for name in sorted(map(str, parameters.keys() - known)):
        step.node.change(f"its parameter {name!r} has no counterpart")
    link_tools(step, main, object_of(parameters, "tools"), "value", "/agent_parameters/tools/value")


def link_tools(
    step: Step, main: Target, holder: Mapping[str, Any], name: str, pointer: str
) -> None:
    """Link a placeholder to an agent for each tool that is switched on."""
    for number, tool in objects_in(holder, name):
        title = text_of(tool, "tool_name") or text_of(tool, "tool_label") or f"tool {number + 1}"
        place = f"{pointer}/{number}"
        if tool.get("enabled") is False:
            step.node.note(
                "import-ignored", f"the tool {title!r} is switched off", f"{step.pointer}{place}"
            )
            continue
        provider = text_of(tool, "provider_name") or text_of(tool, "provider_id")
        settings = {
            key: value for key in ("parameters", "settings", "tool_parameters")
            if (value := object_of(tool, key))
        }  # fmt: skip
        data = {"kind": f"tool {provider}".strip(), "name": title, "parameters": settings}
        made = step.add(
            "placeholder", {k: v for k, v in data.items() if v}, f"tool-{number + 1}", name=title
        )
        new_edge(main.graph, made.id, main.id, "tools", "tools", "link")
        step.app.conversion.needs("tool", title, made)
        step.app.conversion.lose(
            f"{step.pointer}{place}", f"the tool {title!r} of Dify has no counterpart", title,
            code="import-placeholder",
        )  # fmt: skip
        step.node.change(
            f"in place of the tool {title!r} a placeholder is linked", f"{step.pointer}{place}"
        )


def _agent_text(step: Step, parameters: Mapping[str, Any], name: str) -> str:
    field = object_of(parameters, name)
    pointer = f"/agent_parameters/{name}/value"
    if text_of(field, "type") == "variable" or list_of(field, "value"):
        read = step.read(field.get("value"), pointer)
        return step.printed(read, pointer) if read is not None else ""
    text = text_of(field, "value")
    return step.text(text, pointer)
