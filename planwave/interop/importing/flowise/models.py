"""Steps that ask a language model, and the conversation that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.flowise.conversation import (
    SPEAKING,
    asked,
    conversation,
    ends_with_reply,
    if_first,
)
from planwave.interop.importing.flowise.references import parts_of, text_at
from planwave.interop.importing.flowise.steps import (
    Part,
    Said,
    Step,
    expression_of,
    template_of,
)
from planwave.interop.importing.flowise.updates import write_state
from planwave.interop.importing.reading import (
    json_of,
    list_of,
    number_of,
    object_of,
    objects_in,
    text_of,
)
from planwave.interop.importing.templates import inserted, literal, output_of, path

_PROVIDERS: Final[Mapping[str, str]] = {
    "chatOpenAI": "openai", "chatOpenAICustom": "openai", "chatAnthropic": "anthropic",
    "chatGoogleGenerativeAI": "google", "chatGoogleVertexAI": "google-vertex", "chatOllama": "ollama",
    "azureChatOpenAI": "azure", "groqChat": "groq", "chatMistralAI": "mistral", "awsChatBedrock": "bedrock",
}  # fmt: skip
"""Names of providers for Flowise's models; of others the name without ``chat``."""
_EFFORTS: Final = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_MAX_TOKENS: Final = 200_000
_LONGEST_REPLY: Final = frozenset({"maxTokens", "maxOutputTokens", "maxTokensToSample"})
_NAMES: Final = ("customModelName", "modelName", "model")
_NO_BEARING: Final = frozenset(
    {"streaming", "credential", "FLOWISE_CREDENTIAL_ID", "allowImageUploads", "imageResolution", *_NAMES}
)  # fmt: skip
_ADDRESSES: Final = frozenset(
    {"baseUrl", "basepath", "basePath", "proxyUrl", "baseOptions", "endpoint"}
)
_SUMMARIES: Final = frozenset({"conversationSummary", "conversationSummaryBuffer"})
_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "string": {"type": "string"},
    "stringArray": {"type": "array", "items": {"type": "string"}},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "enum": {"type": "string"},
    "jsonArray": {"type": "array", "items": {"type": "object"}},
}
_SEARCH: Final = "web_search_preview"
_MAX_STEPS: Final = 100


_DEVELOPER: Final = "developer"


class _Message(NamedTuple):
    role: str
    parts: list[Part]


def model_fields(step: Step, model: str, config: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Return ``provider``, ``model`` and settings, and say which of them are left out."""
    fields: dict[str, Any] = {}
    if provider := _provider(model):
        fields["provider"] = provider
    if name := next((text_of(config, each) for each in _NAMES if text_of(config, each)), ""):
        fields["model"] = name[:200]
    left: list[str] = []
    for key, value in config.items():
        if value in ("", None, False, [], {}) or key in _NO_BEARING or value == model:
            continue
        if key in _ADDRESSES:
            step.change(
                f"the address of its model ({key}) is a setting of the provider here",
                pointer,
                hint=f"set base_url of [providers.{provider or 'NAME'}]",
            )
            continue
        made = _setting(key, value)
        left += [] if made else [key]
        fields |= made
    if left:
        step.change(f"settings of the model that are left out: {', '.join(sorted(left))}", pointer)
    return fields


def _provider(model: str) -> str:
    known = _PROVIDERS.get(model)
    plain = "".join(c for c in model if c.isascii() and c.isalnum())
    bare = plain.removeprefix("chat").removesuffix("Chat")
    return known or (bare or plain).lower()[:64]


def _setting(key: str, value: object) -> dict[str, Any]:
    if key == "reasoningEffort" and value in _EFFORTS:
        return {"reasoningEffort": value}
    number = _number(value)
    if number is None:
        return {}
    if key == "temperature" and 0 <= number <= 2:
        return {"temperature": number}
    if key in _LONGEST_REPLY and number.is_integer() and 1 <= number <= _MAX_TOKENS:
        return {"maxTokens": int(number)}
    return {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def needs_provider(step: Step, target: Target) -> None:
    """Say that the operator has to configure the provider of a node."""
    if provider := text_of(object_of(target.node, "data"), "provider"):
        step.flow.conversion.needs("provider", provider, target)


def llm(step: Step) -> None:
    """Become an ``llm``, or an ``agent`` where the reply has to fit a schema."""
    schema = _schema(step, "llmStructuredOutput")
    fields = _chosen_model(step, "llm")
    _ask(step, "llm", "llm" if schema is None else "agent", fields, schema)
    write_state(step, "llmUpdateState")


def agent(step: Step) -> None:
    """Become an ``agent``; its tools are placeholders that are linked to it."""
    fields = _chosen_model(step, "agent")
    rounds = _number(step.inputs.get("agentMaxIterations"))
    if rounds is not None:
        fields["maxSteps"] = int(min(max(rounds, 1), _MAX_STEPS)) if rounds == rounds else 1
    schema = _schema(step, "agentStructuredOutput")
    main = _ask(step, "agent", "agent", fields, schema)
    write_state(step, "agentUpdateState")
    _link_tools(step, main)


def _chosen_model(step: Step, prefix: str) -> dict[str, Any]:
    model = text_of(step.inputs, f"{prefix}Model")
    if not model:
        step.lose("it names no model", "", f"/{prefix}Model")
    pointer = f"/{prefix}ModelConfig"
    return model_fields(step, model, object_of(step.inputs, f"{prefix}ModelConfig"), pointer)


def _schema(step: Step, name: str) -> dict[str, Any] | None:
    entries = objects_in(step.inputs, name)
    if not entries:
        return None
    properties: dict[str, Any] = {}
    for number, each in entries:
        key, kind = text_of(each, "key"), text_of(each, "type")
        pointer = f"/{name}/{number}"
        if not key or kind not in _SCHEMAS or key in properties:
            step.lose("this field of its reply cannot be read", each, pointer)
            continue
        made = dict(_SCHEMAS[kind])
        if description := text_of(each, "description"):
            made["description"] = description
        values = [part.strip() for part in text_of(each, "enumValues").split(",") if part.strip()]
        if kind == "enum" and values:
            made["enum"] = list(dict.fromkeys(values))
        if kind == "jsonArray":
            step.change("the items of this list may be any objects here", pointer)
        properties[key] = made
    return {"type": "object", "properties": properties, "required": list(properties)}


def _ask(
    step: Step, prefix: str, node_type: str, fields: dict[str, Any], schema: Mapping[str, Any] | None
) -> Target:  # fmt: skip
    """Add the node that asks, with the messages that Flowise sends."""
    if schema is not None:
        fields["outputSchema"] = schema
    messages = _written(step, f"{prefix}Messages")
    main = step.becomes(node_type, fields)
    needs_provider(step, main)
    reply = output_of(main.id)
    step.content = reply if schema is None else f"({reply} | tojson)"
    if schema is not None:
        step.fields = {key: path(reply, [key]) for key in schema["properties"]}
    role = "assistant" if text_of(step.inputs, f"{prefix}ReturnResponseAs") == "assistantMessage" else "user"  # fmt: skip
    step.said = [Said(role, step.content)]
    memory = _memory(step, prefix)
    users = [each for each in messages if each.role == "user"]
    is_asked = memory is not None or not users
    step.opening = (
        asked(step) if is_asked else [Said("user", expression_of(each.parts)) for each in users]
    )
    lists = [_list_of([each for each in messages if each.role != "system"])]
    if memory is not None:
        lists.append(memory)
    elif is_asked:
        lists.append(if_first(step, asked(step)))
    user = text_at(step, f"{prefix}UserMessage")
    if memory is None and user.strip():
        step.node.note(
            "import-ignored",
            "its input message is not sent there either: its memory is off",
            f"{step.pointer}/{prefix}UserMessage",
        )
    if memory is not None and user.strip():
        said = _Message("user", parts_of(step, user, f"/{prefix}UserMessage"))
        messages.append(said)
        lists.append(_list_of([said]))
    elif _ends_with_reply(step, memory, messages):
        step.lose("a model here answers a message of the user, and the last one is a reply", "")
    _send(step, main, messages, [each for each in lists if each])
    return main


def _ends_with_reply(step: Step, memory: str | None, messages: Sequence[_Message]) -> bool:
    """Return whether what a step sends may end with a reply of a model."""
    if memory is not None and ends_with_reply(step):
        return True
    has_said = memory is not None and any(
        each.said or each.chat for each in step.scope.earlier(step)
    )
    return not has_said and bool(messages) and messages[-1].role == "assistant"


def _written(step: Step, name: str) -> list[_Message]:
    """Return the messages of a step, those of the system in the order in which they are sent: the last first."""
    system, developer, others = list[_Message](), list[_Message](), list[_Message]()
    for number, each in objects_in(step.inputs, name):
        role, pointer = text_of(each, "role"), f"/{name}/{number}/content"
        text = text_at(step, "content", each)
        if not role or not text:
            continue
        message = _Message(role, parts_of(step, text, pointer))
        if role == "system":
            system.insert(0, message)
        elif role == _DEVELOPER and not others:
            developer.append(message._replace(role="system"))
            step.change("a message of the developer is one of the system here", pointer)
        else:
            others.append(message)
            if role not in ("user", "assistant"):
                step.lose("this role of a message has no counterpart", role, pointer)
    return [*system, *developer, *others]


def _send(step: Step, main: Target, messages: Sequence[_Message], lists: Sequence[str]) -> None:
    """Give a node its system prompt and the messages, which are worked out by a node of their own."""
    data = main.node.setdefault("data", {})
    is_llm = main.node["type"] == "llm"
    system = [template_of(each.parts) for each in messages if each.role == "system"]
    if system:
        data["system" if is_llm else "systemPrompt"] = "\n\n".join(system)
    rest = [each for each in messages if each.role != "system"]
    if len(rest) == 1 and rest[0].role == "user" and len(lists) == 1:
        data["prompt" if is_llm else "userPrompt"] = template_of(rest[0].parts)
        return
    if not lists:
        if system:
            step.change("no message but that of the system is sent: it is the user's message here")
            data["prompt" if is_llm else "userPrompt"] = data.pop(
                "system" if is_llm else "systemPrompt"
            )
        else:
            step.lose("it sends no message", "", "")
        return
    said = step.add("transform", {"expression": inserted(" + ".join(lists))}, "messages")
    new_edge(main.graph, said.id, main.id, "output", "messages")
    step.entries = [said]


def _list_of(messages: Sequence[_Message]) -> str:
    items = [Said(each.role, expression_of(each.parts)).expression for each in messages]
    return f"[{', '.join(items)}]" if items else ""


def _memory(step: Step, prefix: str, *, with_question: bool = True) -> str | None:
    """Return the conversation so far, as an expression of a list; None for a step without memory."""
    if step.inputs.get(f"{prefix}EnableMemory") is not True:
        return None
    kind = text_of(step.inputs, f"{prefix}MemoryType")
    if kind in _SUMMARIES:
        pointer = f"/{prefix}MemoryType"
        step.lose("summaries of a conversation have no counterpart", kind, pointer)
    said = conversation(step, with_question=with_question)
    if kind == "windowSize":
        size = number_of(step.inputs, f"{prefix}MemoryWindowSize") or 20
        said = f"({said})[-{max(int(min(size, 10_000)), 1) * 2}:]"
    step.change(
        "its memory, which all model steps of a run share, is written out: "
        "what was said before, the question, and the replies of the steps before it"
    )
    if beside := [
        each.node.name or each.id for each in step.scope.beside(step) if each.kind in SPEAKING
    ]:
        step.change(
            f"what runs at the same time is not in its conversation; there it may be: {', '.join(beside[:10])}"
        )
    return said


# -- tools -----------------------------------------------------------------------------------------


def _link_tools(step: Step, main: Target) -> None:
    """Link a placeholder to an agent for each tool and each store of knowledge."""
    for name, key, what in (
        ("agentTools", "agentSelectedTool", "tool"),
        ("agentKnowledgeDocumentStores", "documentStore", "store of knowledge"),
        ("agentKnowledgeVSEmbeddings", "vectorStore", "store of knowledge"),
    ):
        for number, tool in objects_in(step.inputs, name):
            title = text_of(tool, key) or f"{what} {number + 1}"
            _link_tool(step, main, title, what, f"/{name}/{number}", tool)
    for name, value in step.inputs.items():
        if not name.startswith("agentToolsBuiltIn") or not value:
            continue
        for number, tool in enumerate(_built_in(value)):
            if tool == _SEARCH:
                main.node["data"]["tools"] = {"web_search": True}
            else:
                _link_tool(step, main, tool or "tool", "tool", f"/{name}", {}, f"{name}-{number}")


def _built_in(value: object) -> list[str]:
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError:
            value = [value]
    return [each for each in list_of({"v": value}, "v") if isinstance(each, str)] or ["tool"]


def _link_tool(
    step: Step, main: Target, title: str, what: str, pointer: str, tool: Mapping[str, Any], role: str = ""
) -> None:  # fmt: skip
    data: dict[str, Any] = {"kind": what, "name": title, "parameters": dict(tool)}
    made = step.add(
        "placeholder",
        {k: v for k, v in data.items() if v},
        role or f"tool{pointer.replace('/', '-')}",
        name=title,
    )
    new_edge(main.graph, made.id, main.id, "tools", "tools", "link")
    step.flow.conversion.needs("tool", title, made)
    step.flow.conversion.lose(
        f"{step.pointer}{pointer}", f"the {what} {title!r} of Flowise has no counterpart", title,
        code="import-placeholder",
    )  # fmt: skip
    step.change(
        f"in place of the {what} {title!r} a placeholder is linked",
        pointer,
        hint="link a tool, an MCP server or a flow that does the same",
    )


# -- a model that chooses --------------------------------------------------------------------------


def condition_agent(step: Step) -> None:
    """Become an ``llm`` that names a scenario and a ``switch`` among them."""
    scenarios = [text_of(each, "scenario") for _, each in objects_in(step.inputs, "conditionAgentScenarios")]  # fmt: skip
    if not scenarios:
        step.lose("it has no scenarios", "", "/conditionAgentScenarios")
    fields = _chosen_model(step, "conditionAgent")
    instructions = parts_of(
        step, text_at(step, "conditionAgentInstructions"), "/conditionAgentInstructions"
    )
    lines = [literal(f"{i}: {text}") for i, text in enumerate(scenarios)]
    system = [
        "Choose the scenario that the text of the user belongs to. The scenarios, each with its number:",
        *lines,
        *(["Also note: " + template_of(instructions)] if instructions else []),
        "Reply with the number of one scenario and nothing else.",
    ]
    text = text_at(step, "conditionAgentInput") or "{{ question }}"
    asks = _Message("user", parts_of(step, text, "/conditionAgentInput"))
    memory = _memory(step, "conditionAgent", with_question=False)
    main = step.becomes("llm", {**fields, "system": "\n".join(system)})
    needs_provider(step, main)
    _send(step, main, [asks], [*([memory] if memory else []), _list_of([asks])])
    step.opening = asked(step)
    chosen = f'{output_of(main.id)}.strip(" \\n\\t.:#*\\"\'")'
    cases = [str(number) for number in range(len(scenarios))]
    choice = step.add("switch", {"value": inserted(chosen), "cases": cases}, "choice")
    new_edge(main.graph, main.id, choice.id)
    step.exits = {each: [(choice, f"case-{each}")] for each in cases}
    if cases:
        step.exits[cases[-1]].append((choice, "default"))
    step.change(
        "the prompt that chooses is planwave's; a reply that names no scenario takes the last one"
    )
    if step.inputs.get("conditionAgentOverrideSystemPrompt") is True:
        step.lose(
            "its own system prompt answers in Flowise's format, which is not read here",
            text_at(step, "conditionAgentSystemPrompt"),
            "/conditionAgentSystemPrompt",
        )
