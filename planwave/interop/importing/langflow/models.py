"""Components that ask a language model: language models, agents, structured output; and the tools of agents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.langflow.flow import TOOL_OUTPUT, Component, Plug, Wire
from planwave.interop.importing.reading import list_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, literal, output_of, quoted

PROVIDER_OF_COMPONENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LanguageModelComponent": "",
        "LanguageModel": "",
        "OpenAIModel": "openai",
        "OpenAIModelComponent": "openai",
        "AnthropicModel": "anthropic",
        "AzureOpenAIModel": "azure-openai",
        "GoogleGenerativeAIModel": "google",
        "VertexAiModel": "google",
        "GroqModel": "groq",
        "MistralModel": "mistral",
        "MistralAIModel": "mistral",
        "OllamaModel": "ollama",
        "LMStudioModel": "lm-studio",
        "DeepSeekModelComponent": "deepseek",
        "OpenRouterComponent": "openrouter",
        "xAIModel": "xai",
        "XAIModel": "xai",
        "CohereModel": "cohere",
        "NVIDIAModelComponent": "nvidia",
        "PerplexityModel": "perplexity",
        "AmazonBedrockModel": "bedrock",
    }
)
"""The components that are a language model, each with its provider; "" where the form says it."""
_PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {"google generative ai": "google", "ibm watsonx": "watsonx"}
)
_NAMES_OF_MODEL: Final = ("model_name", "model", "model_id", "deployment_name")
_NO_BEARING: Final = frozenset(
    {
        "input_value", "system_message", "system_prompt", "stream", "verbose", "tools", "tools_metadata",
        "model", "model_name", "model_id", "deployment_name", "provider", "agent_llm", "temperature",
        "max_tokens", "max_output_tokens", "max_iterations", "n_messages", "handle_parsing_errors", "format_instructions",
        "output_schema", "schema_name", "add_current_date_tool", "add_calculator_tool", "is_refresh", "context_id",
        "sender", "sender_name", "session_id", "agent_description", "memory", "order", "template", "code",
        "max_retries", "timeout",
    }
)  # fmt: skip
"""Fields that are carried over by themselves, or say nothing about the reply."""
_MAX_TOKENS: Final = 200_000
_MOST_STEPS: Final = 100
_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "str": {"type": "string"},
        "text": {"type": "string"},
        "int": {"type": "integer"},
        "float": {"type": "number"},
        "bool": {"type": "boolean"},
        "boolean": {"type": "boolean"},
        "dict": {"type": "object"},
        "list": {"type": "array", "items": {"type": "string"}},
    }
)
"""Types of a field of structured output as JSON Schema."""
_BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {"add_current_date_tool": "the current date", "add_calculator_tool": "a calculator"}
)
_OBJECTS: Final = "objects"
_ROWS: Final = f"input.{_OBJECTS}"
_ONE_OR_ALL: Final = f'{_ROWS}[0] if {_ROWS} | length == 1 else {{"results": {_ROWS}}}'
_STRUCTURED: Final = "structured_response"
_CONTINUE: Final = "Continue the conversation."
"""What an agent is asked whose input is empty."""
_UNKNOWN: Final = "(not known)"
_FACTS: Final[Mapping[str, str]] = MappingProxyType(
    {"{current_date}": _UNKNOWN, "{model_name}": _UNKNOWN, "{optional_user_context}": ""}
)
"""Names that the engine fills in in the instructions of an agent, and what stands there here."""
FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CalculatorComponent": "calculates",
        "CalculatorTool": "calculates",
        "ArXivComponent": "searches arXiv",
        "WikipediaComponent": "searches Wikipedia",
        "WikipediaAPI": "searches Wikipedia",
    }
)
"""Components without data of their own, which a tool of the same name can stand for, and what they do."""


def language_model(component: Component) -> None:
    """Become an ``llm``, or a ``model`` where other components use it as their model."""
    if any(wire.kind == "model" for wire in component.leaving):
        _shared_model(component)
        return
    main = component.becomes("llm", model_settings(component))
    settle_model(component, main)
    _read_input(component, main, "prompt")
    _read_system(component, main, "system_message", "system")
    component.outputs["text_output"] = component.outputs["text"] = Plug(main, "output")


def _read_input(component: Component, main: Target, prompt: str) -> Wire | None:
    """Take what a wire brings as the prompt, or the text in the form."""
    wire = component.takes("input_value", main, "input", "text")
    if wire is None:
        main.node["data"][prompt] = component.template("input_value")
        if not main.node["data"][prompt].strip():
            component.lose("nothing is asked: no wire leads to its input", "", "input_value")
    return wire


def _read_system(component: Component, main: Target, name: str, handle: str) -> None:
    """Take a system prompt of a wire, or of the form."""
    wire = component.takes(name, main, handle, "text")
    if wire is None and (system := component.template(name)):
        main.node["data"][handle] = system


def _shared_model(component: Component) -> None:
    main = component.becomes("model", model_settings(component))
    settle_model(component, main)
    component.outputs["model_output"] = Plug(main, "output")
    for wire in component.leaving:
        if wire.kind != "model":
            component.lose("it is asked and also the model of another component", wire.out)
    for wire in component.arriving:
        component.lose("it is the model of another component, and also reads", wire.source.id)


def agent(component: Component) -> None:
    """Become an ``agent``, with its tools linked to it."""
    data = model_settings(component)
    rounds = component.number("max_iterations")
    if rounds is not None and rounds >= 1:
        data["maxSteps"] = int(min(rounds, _MOST_STEPS))
    used = {wire.out for wire in component.leaving}
    if is_structured := _STRUCTURED in used:
        data["outputSchema"] = _rows_schema(component)
        if used != {_STRUCTURED}:
            component.lose("it is asked twice there: for a text, and for data", "", "output_schema")
    main = component.becomes("agent", data)
    settle_model(component, main)
    _read_system(component, main, "system_prompt", "systemPrompt")
    _fill_in_facts(component, main)
    has_tools = any(wire.field == "tools" for wire in component.arriving)
    _ask_agent(component, main, has_history=has_tools or not is_structured)
    for wire in component.arriving:
        if wire.field == "tools":
            component.inputs["tools"] = Plug(main, "tools")
            if wire.kind != "tool":
                component.lose("what is wired to its tools is none", wire.source.id, "tools")
    built_in = [noun for name, noun in _BUILT_IN.items() if component.flag(name)]
    if built_in:
        component.node.change(
            f"{' and '.join(built_in)} are tools of its own there, which an agent has not here",
            hint="link a tool of yours, or write the date into its prompt",
        )
    if is_structured:
        component.node.change(
            "the provider is told the schema of its reply; there a model with tools is told it in the prompt",
            component.pointer("output_schema"),
        )
        _give_rows(component, main, {_STRUCTURED: _ONE_OR_ALL})
    else:
        component.outputs["response"] = Plug(main, "output")


def _fill_in_facts(component: Component, main: Target) -> None:
    """Write into its own instructions what the engine puts there for names in braces."""
    text = main.node["data"].get("systemPrompt", "")
    known = {"{model_name}": literal(text_of(main.node["data"], "model"))}
    for name, value in _FACTS.items():
        if name in text:
            text = text.replace(name, known.get(name) or value)
            if value and not known.get(name):
                component.node.change(
                    f"{name} in its instructions is a fact that its prompt does not know here: it reads {value}",
                    component.pointer("system_prompt"),
                    hint="write it into the prompt, or link a tool that knows it",
                )
    if text:
        main.node["data"]["systemPrompt"] = text


def _ask_agent(component: Component, main: Target, *, has_history: bool) -> None:
    """Let it read its input: with the earlier turns where that is a message of the chat."""
    turns = component.number("n_messages")
    reads_turns = has_history and (turns is None or turns > 0)
    asked = component.takes("input_value", main, "input", "text")
    if asked is None:
        main.node["data"]["userPrompt"] = component.template("input_value")
        if not main.node["data"]["userPrompt"].strip():
            del main.node["data"]["userPrompt"]
            component.later = lambda: _continue_conversation(
                component, main, reads_turns=reads_turns
            )
            return
    if asked is not None and asked.source.kind == "ChatInput" and reads_turns:
        component.inputs["input_value"] = Plug(main, "messages")
        component.node.change(
            "the earlier turns that it reads are all those that come with the message here; there the "
            f"last {int(turns or 100)} that were stored of the session"
        )
    elif reads_turns:
        component.node.change("it is not shown the earlier turns of the session")


def _continue_conversation(component: Component, main: Target, *, reads_turns: bool) -> None:
    """Ask it what the engine asks where nothing else does, behind the message of the chat if there is one."""
    chats = [each for each in component.beside if each.kind == "ChatInput" and each.node.targets]
    starts = [each.node.entry for each in chats if each.node.entry.graph is component.graph]
    told = quoted(_CONTINUE)
    component.node.change(
        f"nothing leads to its input: it is told {told}, as there, "
        + ("after the message of the chat and the turns before it" if starts and reads_turns else "and nothing else")
    )  # fmt: skip
    if not starts or not reads_turns:
        main.node["data"]["userPrompt"] = _CONTINUE
        return
    expression = f'{output_of(starts[0].id, "messages")} + [{{"role": "user", "content": {told}}}]'
    said = component.adds("transform", {"expression": inserted(expression)}, "messages")
    new_edge(component.graph, starts[0].id, said.id)
    new_edge(component.graph, said.id, main.id, "output", "messages")


def structured_output(component: Component) -> None:
    """Become an ``agent`` whose reply fits a schema: a list of objects, as its engine asks for it."""
    data = {**model_settings(component), "outputSchema": _rows_schema(component)}
    main = component.becomes("agent", data)
    settle_model(component, main)
    _read_input(component, main, "userPrompt")
    _read_system(component, main, "system_prompt", "systemPrompt")
    results = {
        "structured_output": _ONE_OR_ALL,
        "dataframe_output": _ROWS,
        "structured_output_dataframe": _ROWS,
    }
    _give_rows(component, main, results)


def _rows_schema(component: Component) -> dict[str, Any]:
    objects = {"type": "array", "items": _schema(component)}
    return {"type": "object", "properties": {_OBJECTS: objects}, "required": [_OBJECTS]}


def _give_rows(component: Component, main: Target, results: Mapping[str, str]) -> None:
    """Give each output that is used its value, by an expression of the reply."""
    used = {wire.out for wire in component.leaving}
    for name, expression in results.items():
        if name in used:
            made = component.adds("transform", {"expression": inserted(expression)}, name)
            new_edge(component.graph, main.id, made.id)
            component.outputs[name] = Plug(made, "output")
    component.node.targets.sort(key=lambda target: target.id != main.id)


def _schema(component: Component) -> dict[str, Any]:
    """Return the schema of one object from the table in the form."""
    properties: dict[str, Any] = {}
    rows = objects_in({"rows": component.value("output_schema")}, "rows")
    for number, row in rows:
        name, kind = text_of(row, "name"), text_of(row, "type")
        made = _SCHEMAS.get(kind)
        if made is None or not name or name in properties:
            component.lose(
                "this field of its schema has no name of its own, or a type that is not known",
                f"{name}: {kind}",
                f"output_schema/value/{number}",
            )
            continue
        many = row.get("multiple") in (True, "True", "true")
        schema: dict[str, Any] = {"type": "array", "items": dict(made)} if many else dict(made)
        if description := text_of(row, "description"):
            schema["description"] = description
        properties[name] = schema
    if not properties:
        component.lose("its schema has no fields", "", "output_schema")
    return {"type": "object", "properties": properties, "required": list(properties)}


def model_settings(component: Component) -> dict[str, Any]:
    """Return ``provider``, ``model`` and the settings of a model."""
    provider, model = _chosen(component)
    data: dict[str, Any] = {k: v for k, v in (("provider", provider), ("model", model)) if v}
    temperature = component.number("temperature")
    if temperature is not None and 0 <= temperature <= 2:
        data["temperature"] = temperature
    for name in ("max_tokens", "max_output_tokens"):
        longest = component.number(name)
        if longest is not None and 1 <= longest <= _MAX_TOKENS:
            data["maxTokens"] = int(longest)
    return data


def _chosen(component: Component) -> tuple[str, str]:
    """Return provider and model, as any version of the form names them."""
    if any(wire.field in ("model", "llm", "agent_llm") for wire in component.arriving):
        return "", ""
    chosen = object_of(component.fields, "model").get("value")
    if isinstance(chosen, list):
        chosen = next(iter(cast("list[Any]", chosen)), None)
    if isinstance(chosen, dict):
        entry = cast("Mapping[str, Any]", chosen)
        return _provider(text_of(entry, "provider")), text_of(entry, "name")
    provider = PROVIDER_OF_COMPONENT.get(component.kind, "")
    for name in () if provider else ("provider", "agent_llm"):
        provider = provider or _provider(component.text(name))
    named = [name for field in _NAMES_OF_MODEL if (name := component.text(field))]
    return provider, named[0] if named else ""


def _provider(name: str) -> str:
    plain = name.strip().lower()
    return _PROVIDERS.get(plain, "-".join(plain.split()))


def settle_model(component: Component, main: Target) -> None:
    """Link a model that is wired, name what the operator provides, and what is left to the provider."""
    data = main.node["data"]
    for name in ("model", "llm", "agent_llm"):
        if main.node["type"] != "model" and any(w.field == name for w in component.arriving):
            component.takes(name, main, "model", "model")
            break
    else:
        if provider := text_of(data, "provider"):
            component.conversion.needs("provider", provider, main)
        elif "model" not in data:
            component.node.change(
                "no model is chosen there: the default one is asked here",
                component.pointer("model"),
            )
    left = [
        name for name in component.fields
        if name not in _NO_BEARING and not name.startswith("_") and component.is_filled(name)
        and not object_of(component.fields, name).get("password")
    ]  # fmt: skip
    if left:
        component.node.change(f"settings that are left to the provider: {', '.join(sorted(left))}")


def read_page(component: Component) -> None:
    """Become a ``tool`` or ``toolset`` of the operator, where models may read pages with it."""
    if not component.is_tool:
        component.node.becomes_placeholder("no step here follows the links of pages")
        component.becomes("placeholder")
        return
    _offer(component, "reads pages", "fetch_content", "or remove it and let the provider search the web")  # fmt: skip


def offered_function(component: Component) -> None:
    """Become a ``tool`` of the operator, where models may call it."""
    if not component.is_tool or any(wire.kind != "tool" for wire in component.leaving):
        component.node.becomes_placeholder(f"{component.kind} has no counterpart as a step")
        component.becomes("placeholder")
        return
    for wire in component.arriving:
        component.lose("it is a tool, and reads what another component gives", wire.source.id)
    what = FUNCTIONS[component.kind]
    _offer(component, what, component.kind.lower(), "or remove it")


def _offer(component: Component, what: str, name: str, otherwise: str) -> None:
    names = [each for _, each in _actions(component)] or [name]
    if len(names) == 1:
        main = component.becomes("tool", {"name": names[0]})
    else:
        main = component.becomes("toolset", {"names": names})
    for each in names:
        component.conversion.needs("tool", each, main)
    component.outputs[TOOL_OUTPUT] = Plug(main, "tools")
    component.node.change(
        f"a tool of yours {what} here: {', '.join(names)}",
        hint=f"register a tool of this name, {otherwise}",
    )


def web_search(component: Component) -> None:
    """Let the provider search, for the agents that use it; the wires to them say so."""
    helps = bool(component.leaving) and all(map(_is_search_of_agent, component.leaving))
    if not helps or component.arriving:
        component.node.becomes_placeholder(
            "only agents can search the web here, with what their provider offers"
        )
        component.becomes("placeholder")
        return
    component.node.change(
        "the provider of the agent searches the web here, in its own way",
        hint="choose a provider that can: planwave check names those that cannot",
    )


def _is_search_of_agent(wire: Wire) -> bool:
    """Return whether a wire gives a tool to an agent, which may search the web."""
    is_agent = wire.target.kind == "Agent" and not wire.target.node.code
    return is_agent and (wire.kind, wire.field) == ("tool", "tools")


def link_search(component: Component) -> None:
    """Switch on the search of the agents to which a web search is linked."""
    for wire in component.leaving:
        main = wire.target.node.entry
        if main.node["type"] == "agent":
            main.node["data"]["tools"] = {"web_search": True}
        if main not in component.node.targets:
            component.node.targets.append(main)
        wire.edge.absorbed("the agent has the search of its provider switched on")


def _actions(component: Component) -> list[tuple[int, str]]:
    """Return the names under which models are offered a component, but those switched off."""
    rows = list_of(object_of(component.fields, "tools_metadata"), "value")
    return [
        (number, literal(name))
        for number, row in objects_in({"rows": rows}, "rows")
        if row.get("status") is not False and (name := text_of(row, "name"))
    ]
