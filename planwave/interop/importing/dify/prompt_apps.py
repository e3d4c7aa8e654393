"""Apps without a graph: one prompt, asked in a chat, by an agent with tools, or once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.dify.models import link_tools, model_fields, needs_provider
from planwave.interop.importing.dify.starts import start
from planwave.interop.importing.dify.steps import App, Scope, Step
from planwave.interop.importing.dify.values import Read, template_of
from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.reading import list_of, number_of, object_of, objects_in, text_of

_VARIABLE: Final = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]{0,60}|#[a-z]+#)\}\}")
_SPECIAL: Final = "#"
_KINDS: Final = ("chat", "agent-chat", "completion")


def convert_prompt_app(conversion: Conversion, document: Mapping[str, Any], pointer: str) -> None:
    """Convert an app that is one prompt: its entry, and the model that is asked."""
    mode = text_of(object_of(document, "app"), "mode")
    config, place = object_of(document, "model_config"), f"{pointer}/model_config"
    app = App(
        conversion, "workflow" if mode == "completion" else mode, write_code=False,
        special=lambda selector, reader: None,
    )  # fmt: skip
    name = conversion.title or mode
    node = conversion.source_node(place, mode or "app", name, parameters=config)
    step = Step(app, "app", mode, config, node, Scope(app, conversion.graph))
    if mode not in _KINDS or not config:
        step.placeholder("it is an app without a graph and without a prompt")
        return
    _ask(step, mode)


def _ask(step: Step, mode: str) -> None:
    """Become an entry and a model step."""
    config, graph = step.data, step.scope.draft
    is_once = mode == "completion"
    entry_step = _entry(step)
    local = {name: read for name, read in entry_step.outputs.items() if "." not in name}
    prompt = _prompt(step, text_of(config, "pre_prompt"), local)
    fields = model_fields(step, object_of(config, "model"))
    entry = step.node.targets.pop()
    if is_once:
        main = step.becomes("llm", fields | {"prompt": prompt})
        new_edge(graph, entry.id, main.id)
        if not prompt:
            step.lose("it has no prompt", "", "/pre_prompt")
    else:
        main = step.becomes("agent", fields | ({"systemPrompt": prompt} if prompt else {}))
        new_edge(graph, entry.id, main.id, "messages", "messages")
        step.node.change(
            "earlier turns are those that come with the message, as its history",
            hint="a chat step with memory between the two keeps them here",
        )
    step.node.targets.append(entry)
    needs_provider(step, main)
    _lose_others(step)
    mode_fields = object_of(config, "agent_mode")
    if mode == "agent-chat" and mode_fields.get("enabled") is not False:
        rounds = number_of(mode_fields, "max_iteration")
        if rounds is not None:
            main.node["data"]["maxSteps"] = int(min(max(rounds, 1), 100))
        link_tools(step, main, mode_fields, "tools", "/agent_mode/tools")


def _entry(step: Step) -> Step:
    """Add the entry, by the form of the app."""
    variables: list[dict[str, Any]] = []
    for _, each in objects_in(step.data, "user_input_form"):
        for kind, fields in each.items():
            if isinstance(fields, dict):
                variables.append({"type": str(kind), **object_of(each, kind)})
    form = Step(step.app, "start", "start", {"variables": variables}, step.node, step.scope)
    start(form)
    return form


def _prompt(step: Step, text: str, variables: Mapping[str, Read]) -> str:
    parts: list[str | Read] = []
    position = 0
    for match in _VARIABLE.finditer(text):
        read = variables.get(match[1])
        if match[1].startswith(_SPECIAL):
            step.lose("this part of a prompt has no counterpart", match[0], "/pre_prompt")
        if read is not None:
            parts += [text[position : match.start()], read]
            position = match.end()
    parts.append(text[position:])
    return template_of([part for part in parts if part != ""])


def _lose_others(step: Step) -> None:
    """Say what of the app's settings changes its replies and has no counterpart."""
    config = step.data
    if text_of(config, "prompt_type") == "advanced":
        step.lose("its prompt is of several messages", "advanced", "/prompt_type")
    datasets = object_of(object_of(config, "dataset_configs"), "datasets")
    if list_of(datasets, "datasets"):
        step.lose("it searches a knowledge base", "datasets", "/dataset_configs/datasets")
    for name in ("external_data_tools",):
        if list_of(config, name):
            step.lose("it asks other services for its inputs", name, f"/{name}")
    if text_of(config, "opening_statement"):
        step.node.note("import-ignored", "the opening statement of the app: left out")
    if object_of(config, "sensitive_word_avoidance").get("enabled") is True:
        step.node.note("import-ignored", "moderation of words of the app: left out")
