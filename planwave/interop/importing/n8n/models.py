"""n8n's steps that ask models, and their helpers: models, memories, parsers and tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.n8n.fields import Placement
from planwave.interop.importing.n8n.kinds import Kind, Making
from planwave.interop.importing.n8n.schemas import Schema, extracted_schema, written_schema
from planwave.interop.importing.n8n.tools import TOOLS
from planwave.interop.importing.n8n.workflow import Envelope, Link, Step, Workflow
from planwave.interop.importing.reading import number_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, literal

PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lmChatOpenAi": "openai", "lmOpenAi": "openai", "lmChatAnthropic": "anthropic", "lmChatOllama": "ollama",
        "lmOllama": "ollama", "lmChatGoogleGemini": "gemini", "lmChatGoogleVertex": "vertex",
        "lmChatGroq": "groq", "lmChatMistralCloud": "mistral", "lmChatDeepSeek": "deepseek",
        "lmChatOpenRouter": "openrouter", "lmChatAzureOpenAi": "azure", "lmChatAwsBedrock": "bedrock",
        "lmChatXAiGrok": "xai", "lmChatCohere": "cohere", "lmChatVercelAiGateway": "vercel",
    }
)  # fmt: skip
_MODEL, _TOOL = "ai_languageModel", "ai_tool"
_MEMORY, _PARSER = "ai_memory", "ai_outputParser"
_AUTOFIXING: Final = "outputParserAutofixing"
_MODEL_OPTIONS: Final = frozenset(
    ("temperature", "maxTokens", "maxTokensToSample", "maxOutputTokens")
)
_HELPFUL: Final = "You are a helpful assistant"
_EXTRACT: Final = (
    "You are an expert extraction algorithm.\nOnly extract relevant information from the text.\n"
    "If you do not know the value of an attribute asked to extract, you may omit the attribute's value."
)
_SUMMARIZE: Final = 'Write a concise summary of the following:\n\n\n"{}"\n\n\nCONCISE SUMMARY:'


class Helpers:
    """The helpers of a step, which are put into its graph.

    Args:
        making: The step.
    """

    def __init__(self, making: Making) -> None:
        self._making = making
        self._links = making.workflow.links.into(making.step.name)

    def of(self, kind: str) -> list[Link]:
        """Return the links of one kind, from helpers that are of it."""
        return [link for link in self._links if link.kind == kind and self._fits(link)]

    def _fits(self, link: Link) -> bool:
        """Return whether a helper may have such a link: it is of that kind, or has no counterpart."""
        step = self.step(link)
        if self._making.workflow.into(step.name) or self._making.workflow.out_of(step.name):
            return False  # it is a step of the flow, too
        if step.kind in PROVIDERS:
            return link.kind == _MODEL
        if step.kind in TOOLS:
            return link.kind == _TOOL
        return not step.is_trigger and step.kind not in MODELS

    def step(self, link: Link) -> Step:
        """Return the helper of a link."""
        return self._making.workflow.steps[link.source]

    def models(self, data: dict[str, Any]) -> Callable[[Target], None]:
        """Add the models after the first as ``fallback``; return what links the first."""
        first, *others = [*self.of(_MODEL), None]
        fallback = list[dict[str, str]]()
        for link in others:
            if link is not None:
                fallback.append(model_choice(self.step(link)))
        if fallback:
            data["fallback"] = fallback

        def link_to(target: Target) -> None:
            if first is None:
                if self._making.step.kind != "openAi":
                    self._making.lose("it has no model", "ai_languageModel")
                return
            model = self.place(first)
            first.edge.becomes(model, target, "output", "model", channel="link")
            for link in others:
                if link is not None:
                    node = self.step(link).node
                    node.targets.append(target)
                    node.change("it is a fallback of the step that it is linked to")
                    link.edge.absorbed("it is the fallback of the step")
                    provider = model_choice(self.step(link))["provider"]
                    self._making.workflow.conversion.needs("provider", provider, target)

        return link_to

    def tools(self, target: Target) -> None:
        """Link the tools."""
        for link in self.of(_TOOL):
            tool = self.place(link)
            link.edge.becomes(tool, target, "tools", "tools", channel="link")

    def add_schema(self, data: dict[str, Any]) -> None:
        """Add the schema of the result; a parser that has none makes the step a placeholder."""
        for link in self.of(_PARSER)[:1]:
            schema = _schema_of_parser(self._making.workflow, self.step(link))
            if schema is None:
                self._making.lose("how its result is read", link.source)
            else:
                data["outputSchema"] = schema.document
                schema.note(self._making.step)

    def memory(self) -> Link | None:
        """Return the memory; one that has no counterpart makes the step a placeholder."""
        for link in self.of(_MEMORY):
            if self.step(link).kind != "memoryBufferWindow":
                self._making.lose("its memory", link.source)
                return None
            return link
        return None

    def settle(self, target: Target, memory: Target | None = None) -> None:
        """Say what became of the memory and of the parser, and link everything else."""
        for link in self._links:
            if link.edge.outcome is not None:
                continue
            is_lost = self._making.step.node.is_lost
            if not self._fits(link):
                link.edge.drop("import-dangling", f"{link.source!r} is no helper of this kind")
                self._making.lose(f"a helper of the kind {link.kind}", link.source)
                continue
            is_part = link.kind in _PARTS & _TAKEN.get(self._making.step.kind, frozenset())
            if is_part and not is_lost:
                is_kept = link.kind == _MEMORY and memory is not None
                self._take_in(link, memory if is_kept and memory is not None else target)
                continue
            if link.kind not in _TAKEN.get(self._making.step.kind, ()) or link.kind in _PARTS:
                self._making.lose(f"a helper of the kind {link.kind}", link.source)
            helper = self.place(link)
            handle = _HANDLES.get(link.kind, (link.kind, link.kind))
            link.edge.becomes(helper, target, *handle, channel="link")

    def _take_in(self, link: Link, target: Target) -> None:
        """Say that a helper is part of a node, with the helpers that it has itself."""
        step = self.step(link)
        step.node.targets.append(target)
        step.node.change("it is part of the step that it is linked to")
        link.edge.absorbed("what it leads to is part of the step")
        if step.kind != _AUTOFIXING:
            return
        step.node.change(
            "the model of the step itself is asked again for a result that does not fit"
        )
        for inner in self._making.workflow.links.into(step.name):
            if inner.edge.outcome is None:
                node = self.step(inner).node
                node.targets.append(target)
                node.change("it is part of the step that its parser belongs to")
                inner.edge.absorbed("what it leads to is part of the step")

    def place(self, link: Link) -> Target:
        """Return the node of a helper in the graph of the step."""
        return place_helper(self._making.placement, self.step(link), self._making.graph)


_HANDLES: Final = {_MODEL: ("output", "model"), _TOOL: ("tools", "tools")}
_PARTS: Final = frozenset((_MEMORY, _PARSER))
_TAKEN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "agent": frozenset((_MODEL, _TOOL, _MEMORY, _PARSER)),
        "chainLlm": frozenset((_MODEL, _PARSER)),
        "openAi": frozenset((_TOOL,)),
        "informationExtractor": frozenset((_MODEL,)),
        "textClassifier": frozenset((_MODEL,)),
        "sentimentAnalysis": frozenset((_MODEL,)),
        "chainSummarization": frozenset((_MODEL,)),
    }
)
"""The helpers that a kind of step has a place for."""


def place_helper(placement: Placement, step: Step, graph: GraphDraft) -> Target:
    """Return the node of a helper in a graph; it is made once for each graph."""
    for target in step.node.targets:
        if target.graph is graph:
            return target
    making = Making(placement, step, graph)
    placement.graphs.setdefault(step.name, graph)
    make = TOOLS.get(step.kind)
    if make is None and step.kind in PROVIDERS:
        make = _model
    if make is None:
        target = making.becomes("placeholder")
        step.node.becomes_placeholder(f"{step.node.kind} has no counterpart")
    else:
        make(making)
        target = step.node.target
    Helpers(making).settle(target)
    return target


def model_choice(step: Step) -> dict[str, str]:
    """Return provider and model of a model."""
    choice = {"provider": PROVIDERS.get(step.kind, "openai")}
    model = _reference(
        step.parameters.get("model")
        or step.parameters.get("modelName")
        or step.parameters.get("modelId")
    )
    if model and not model.startswith("="):
        choice["model"] = model.removeprefix("models/")
    return choice


def _reference(value: Any) -> str:
    """Return what a parameter with a list to choose from holds."""
    if isinstance(value, dict):
        return text_of(cast("dict[str, Any]", value), "value")
    return value if isinstance(value, str) else ""


def _model(making: Making) -> None:
    data: dict[str, Any] = dict(model_choice(making.step))
    data |= _model_settings(making)
    written = _reference(making.parameters.get("model"))
    if written.startswith("="):
        making.lose("a model that is calculated", written, "model")
    target = making.becomes("model", data)
    making.workflow.conversion.needs("provider", data["provider"], target)


def _model_settings(making: Making) -> dict[str, Any]:
    data = dict[str, Any]()
    temperature = making.options.get("temperature", making.parameters.get("temperature"))
    if isinstance(temperature, str) or (
        isinstance(temperature, int | float) and not 0 <= temperature <= 2
    ):
        making.lose("a temperature that is calculated", str(temperature), "options/temperature")
    elif isinstance(temperature, int | float) and not isinstance(temperature, bool):
        data["temperature"] = temperature
    for name in ("maxTokens", "maxTokensToSample", "maxOutputTokens"):
        tokens = making.options.get(name)
        if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
            data["maxTokens"] = tokens
        elif isinstance(tokens, str):
            making.lose("a number of tokens that is calculated", tokens, f"options/{name}")
    making.ignore(_MODEL_OPTIONS | {"responseFormat"})
    return data


def _ask(making: Making, node_type: str, data: dict[str, Any], prompt: str, system: str) -> Target:
    """Make a step that asks a model, with what it remembers, and link its helpers."""
    helpers = Helpers(making)
    link_model = helpers.models(data)
    memory = helpers.memory() if node_type == "agent" else None
    prompt_name, system_name = (
        ("userPrompt", "systemPrompt") if node_type == "agent" else ("prompt", "system")
    )
    chat: Target | None = None
    # A system prompt with a template is put in by chat, which reads it in every version.
    if memory is not None or "{{" in system:
        conversation: dict[str, Any] = {"message": prompt}
        if system:
            conversation["system"] = system
        if memory is not None:
            conversation["memory"] = _memory(making, helpers.step(memory))
        chat = making.becomes("chat", conversation, suffix="conversation")
    else:
        data[prompt_name] = prompt
        data |= {system_name: system} if system else {}
    target = making.becomes(node_type, data)
    if chat is not None:
        new_edge(making.graph, chat.id, target.id, "messages", "messages")
    link_model(target)
    if node_type == "agent":
        helpers.tools(target)
    helpers.settle(target, chat)
    return target


def _memory(making: Making, step: Step) -> dict[str, Any]:
    turns = number_of(step.parameters, "contextWindowLength")
    count = 5 if turns is None else int(turns)
    if not 1 <= count <= 1000:
        making.lose("the length of its memory", str(count))
        count = 5
    kind = text_of(step.parameters, "sessionIdType") or "fromInput"
    written: Any = "={{ $json.sessionId }}"
    if kind == "customKey":
        written = step.parameters.get("sessionKey", "")
    elif not any(
        making.workflow.steps[name].kind.endswith(("hatTrigger",))
        for name in making.workflow.origins(making.step.name)
    ):
        chats = [
            step.name
            for step in making.workflow.steps.values()
            if step.kind in ("chatTrigger", "manualChatTrigger")
            and making.workflow.is_before(step.name, making.step.name)
        ]
        if len(chats) == 1:
            written = f"={{{{ $({json.dumps(chats[0])}).item.json.sessionId }}}}"
    key = making.fields.template(written, f"{step.pointer}/parameters")
    step.node.change(
        f"it keeps {count} turns with the flow here, under the key of the chat; there in the memory of n8n"
    )
    return {"key": key, "maxTurns": count}


def _prompt(making: Making, name: str = "text") -> str:
    """Return the prompt: the text that is written there, or the message of the chat."""
    chosen = text_of(making.parameters, "promptType")
    is_written = chosen == "define" or (not chosen and name in making.parameters)
    written = making.parameters.get(name, "") if is_written else "={{ $json.chatInput }}"
    if chosen not in ("", "define", "auto"):
        making.lose("where its prompt comes from", chosen, "promptType")
    return making.fields.template(written, f"{making.at}/{name}")


def _agent(making: Making) -> None:
    kind = text_of(making.parameters, "agent")
    if kind in ("sqlAgent", "planAndExecuteAgent", "reActAgent"):
        making.lose(f"an agent of the kind {kind}", kind, "agent")
    data = dict[str, Any]()
    steps = making.options.get("maxIterations", 10)
    if isinstance(steps, int) and not isinstance(steps, bool) and 1 <= steps <= 100:
        data["maxSteps"] = steps
    else:
        making.lose("its number of rounds is calculated", str(steps), "options/maxIterations")
    if making.options.get("returnIntermediateSteps") is True:
        making.lose("its intermediate steps are part of its result", "true", "options")
    making.ignore(
        frozenset(("systemMessage", "maxIterations", "returnIntermediateSteps", "enableStreaming"))
    )
    Helpers(making).add_schema(data)
    system = making.fields.template(
        making.options.get("systemMessage", _HELPFUL), f"{making.at}/options/systemMessage"
    )
    _ask(making, "agent", data, _prompt(making), system)


def _chain(making: Making) -> None:
    name = "prompt" if "prompt" in making.parameters and "text" not in making.parameters else "text"
    system = list[str]()
    for number, each in objects_in(object_of(making.parameters, "messages"), "messageValues"):
        at = f"{making.at}/messages/messageValues/{number}"
        kind = text_of(each, "type") or "SystemMessagePromptTemplate"
        if kind == "SystemMessagePromptTemplate":
            system.append(making.fields.template(each.get("message", ""), f"{at}/message"))
        else:
            making.step.node.lose(f"a message of the kind {kind}", text_of(each, "message"), at)
    data = dict[str, Any]()
    Helpers(making).add_schema(data)
    node_type = "agent" if "outputSchema" in data else "llm"
    _ask(making, node_type, data, _prompt(making, name), "\n".join(system))


def _schema_of_parser(workflow: Workflow, parser: Step) -> Schema | None:
    """Return the schema of a parser, or of the one that an auto-fixing parser corrects."""
    if parser.kind == _AUTOFIXING and (inner := workflow.helpers(parser.name, _PARSER)):
        parser = workflow.steps[inner[0].source]
    return written_schema(parser) if parser.kind == "outputParserStructured" else None


def _parsed_envelope(name: str) -> Callable[[Workflow, Step], Envelope]:
    """Return the form of a step: a field for a text, or ``output`` for what a parser reads."""

    def envelope(workflow: Workflow, step: Step) -> Envelope:
        parsers = workflow.helpers(step.name, _PARSER)
        if not parsers:
            return Envelope({(name,): ("output", ())})
        schema = _schema_of_parser(workflow, workflow.steps[parsers[0].source])
        return (schema or Schema({})).envelope("output")

    return envelope


def _open_ai(making: Making) -> None:
    resource, operation = _operation(making.step)
    if (resource, operation) not in (*_CONVERSATIONS, _ANALYSIS):
        making.lose(f"the operation {resource}.{operation}", f"{resource}.{operation}", "operation")
    if making.parameters.get("simplify", making.parameters.get("simplifyOutput")) is False:
        making.lose("its result is the whole answer of the service", "simplify", "simplify")
    data: dict[str, Any] = {"provider": "openai"}
    written = (making.parameters.get(name) for name in ("modelId", "chatModel", "model"))
    model = _reference(next(filter(None, written), ""))
    if model.startswith("="):
        making.lose("a model that is calculated", model, "modelId")
    elif model:
        data["model"] = model
    data |= _model_settings(making)
    if (resource, operation) == _ANALYSIS:
        target = _analyze(making, {"maxTokens": 300, **data})
        making.workflow.conversion.needs("provider", "openai", target)
        return
    system, prompt = _messages(making)
    has_tools = bool(making.workflow.helpers(making.step.name, _TOOL))
    if making.parameters.get("jsonOutput") is True:
        if has_tools:
            making.lose("tools and a result in JSON", "jsonOutput", "jsonOutput")
        else:
            data["jsonOutput"] = True
    target = _ask(making, "agent" if has_tools else "llm", data, prompt, system)
    making.workflow.conversion.needs("provider", "openai", target)


_CONVERSATIONS: Final = frozenset((("text", "message"), ("chat", "complete")))
_ANALYSIS: Final = ("image", "analyze")


def _analyze(making: Making, data: dict[str, Any]) -> Target:
    """Ask a model about images, whose addresses are a text with commas."""
    kind = text_of(making.parameters, "inputType") or "url"
    if kind != "url":
        making.lose("images that are files", kind, "inputType")
    if making.workflow.helpers(making.step.name, _TOOL):
        making.lose("tools beside images", kind, "inputType")
    written = making.fields.expression(
        making.parameters.get("imageUrls", ""), f"{making.at}/imageUrls"
    )
    prompt = making.text("text", "What's in this image?")
    arrived = making.becomes("transform", {"expression": "{{ input }}"}, suffix="arrived")
    addresses = inserted(f'{written}.split(",") | map("trim") | list')
    images = making.becomes("transform", {"expression": addresses}, suffix="images")
    chat = making.becomes("chat", {"message": prompt}, suffix="conversation")
    target = making.becomes("llm", data)
    new_edge(making.graph, arrived.id, images.id)
    new_edge(making.graph, arrived.id, chat.id)
    new_edge(making.graph, images.id, chat.id, "output", "images")
    new_edge(making.graph, chat.id, target.id, "messages", "messages")
    Helpers(making).settle(target)
    return target


def _is_old_open_ai(step: Step) -> bool:
    """Return whether a step is the one before that for assistants, with other names of operations."""
    return step.node.kind.startswith("n8n-nodes-base.") and step.version < 1.2


def _operation(step: Step) -> tuple[str, str]:
    """Return the resource and the operation of a step that asks OpenAI."""
    resource = text_of(step.parameters, "resource") or "text"
    usual = "message"
    if _is_old_open_ai(step):
        usual = "create" if resource == "image" else "complete"
    return resource, text_of(step.parameters, "operation") or usual


def _messages(making: Making) -> tuple[str, str]:
    """Return the system text and the prompt of a step that asks OpenAI."""
    holder, inside = (
        ("prompt", "messages") if _is_old_open_ai(making.step) else ("messages", "values")
    )
    system, prompts = list[str](), list[str]()
    for number, each in objects_in(object_of(making.parameters, holder), inside):
        at = f"{making.at}/{holder}/{inside}/{number}"
        role = text_of(each, "role") or "user"
        text = making.fields.template(each.get("content", ""), f"{at}/content")
        if role == "assistant" or (role == "user" and prompts):
            message = "a conversation of several messages"
            making.step.node.lose(message, text_of(each, "content"), at)
        (system if role in ("system", "developer") else prompts).append(text)
    if not prompts and not system:
        making.lose("it has no message", "", holder)
    return "\n".join(system), "\n".join(prompts)


def _open_ai_envelope(workflow: Workflow, step: Step) -> Envelope:
    if _operation(step) == _ANALYSIS:
        return Envelope({("content",): ("output", ())})
    return Envelope({("message", "content"): ("output", ())})


def _extract(making: Making) -> None:
    kind = text_of(making.parameters, "schemaType") or "fromAttributes"
    schema = extracted_schema(making.step)
    if schema is None:
        making.lose("the schema of what it extracts", kind, "schemaType")
        schema = Schema({"type": "object"})
    schema.note(making.step)
    system = making.fields.template(
        making.options.get("systemPromptTemplate", _EXTRACT),
        f"{making.at}/options/systemPromptTemplate",
    )
    making.step.node.change("an agent whose result has a schema takes its place")
    _ask(making, "agent", {"outputSchema": schema.document}, making.text("text"), system)


def _categories(step: Step) -> list[tuple[str, str]]:
    if step.kind == "sentimentAnalysis":
        written = text_of(object_of(step.parameters, "options"), "categories")
        names = (written or "Positive, Neutral, Negative").split(",")
        return [(name.strip(), "") for name in names if name.strip()]
    given = object_of(step.parameters, "categories")
    return [
        (text_of(each, "category"), text_of(each, "description"))
        for _, each in objects_in(given, "categories")
    ]


def _classify_handles(step: Step) -> list[str]:
    return [*(f"case-{i}" for i in range(len(_categories(step)))), "default"]


def _classify(making: Making) -> None:
    """Ask a model for a category, and let what arrives leave through its output."""
    categories = _categories(making.step)
    names = [name for name, _ in categories]
    if making.options.get("multiClass") is True or any(each.startswith("=") for each in names):
        making.lose("several or calculated categories", ", ".join(names), "categories")
    if making.step.kind == "sentimentAnalysis":
        for step in making.workflow.steps.values():
            if "sentimentAnalysis" in json.dumps(dict(step.parameters), default=str):
                making.lose("its result is named by another step", step.name)
    if not categories:
        making.lose("it has no category", "categories", "categories")
        names = ["none"]
    listed = "\n".join(f"- {name}{f': {text}' if text else ''}" for name, text in categories)
    prompt = (
        "Which one of these categories does the text belong to? Reply with the name of the category alone"
        f"{', or with other if none fits' if making.options.get('fallback') else ''}.\n\n"
        f"{literal(listed)}\n\nText:\n{making.text('inputText')}"
    )
    arrived = making.becomes("transform", {"expression": "{{ input }}"}, suffix="arrived")
    asked = _ask_named(making, prompt)
    data = {"cases": [literal(name) for name in names], "caseSensitive": False}
    switch = making.becomes("switch", data)
    new_edge(making.graph, arrived.id, asked.id)
    new_edge(making.graph, asked.id, switch.id, "output", "value")
    new_edge(making.graph, arrived.id, switch.id)
    making.step.node.change("a model and a switch take its place, with a prompt of planwave")


def _ask_named(making: Making, prompt: str) -> Target:
    helpers, data = Helpers(making), dict[str, Any](prompt=prompt)
    link_model = helpers.models(data)
    target = making.becomes("llm", data, suffix="category")
    link_model(target)
    helpers.settle(target)
    return target


def _summarize(making: Making) -> None:
    mode = text_of(making.parameters, "operationMode") or "nodeInputJson"
    if mode != "nodeInputJson":
        making.lose("it summarises documents", mode, "operationMode")
    if making.options:
        making.lose("a method or prompts of its own", json.dumps(dict(making.options)), "options")
    item = making.fields.item_text()
    prompt = literal(_SUMMARIZE).replace("{}", inserted(f"({item}) | tojson"))
    making.step.node.change("one call of a model takes its place, also for a long text")
    _ask(making, "llm", {}, prompt, "")


def _extract_envelope(workflow: Workflow, step: Step) -> Envelope:
    return (extracted_schema(step) or Schema({})).envelope("output")


def _summary_envelope(workflow: Workflow, step: Step) -> Envelope:
    return Envelope({("response", "text"): ("output", ())})


MODELS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "agent": Kind(_agent, envelope=_parsed_envelope("output")),
        "chainLlm": Kind(_chain, envelope=_parsed_envelope("text")),
        "openAi": Kind(_open_ai, envelope=_open_ai_envelope),
        "informationExtractor": Kind(_extract, envelope=_extract_envelope),
        "textClassifier": Kind(_classify, _classify_handles, passes=True),
        "sentimentAnalysis": Kind(_classify, _classify_handles, passes=True),
        "chainSummarization": Kind(
            _summarize,
            envelope=_summary_envelope,
        ),
    }
)

__all__ = ["MODELS", "Helpers", "place_helper"]
