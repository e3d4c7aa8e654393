"""Dify apps: a workflow, a chat over a graph, or an app of one prompt without a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.dify.code_steps import module_text
from planwave.interop.importing.dify.conversation import use_in
from planwave.interop.importing.dify.flow import convert_steps, read_graph
from planwave.interop.importing.dify.kinds import KINDS
from planwave.interop.importing.dify.prompt_apps import convert_prompt_app
from planwave.interop.importing.dify.regions import settle_paths
from planwave.interop.importing.dify.secret_variables import secrets_read_in
from planwave.interop.importing.dify.steps import App, Scope, Step
from planwave.interop.importing.dify.values import Missing, Read
from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.importer import Source
from planwave.interop.importing.reading import object_of, objects_in, text_of
from planwave.interop.importing.secrets import MARK, Withheld
from planwave.interop.importing.templates import json_expression

_FEATURES: Final[Mapping[str, str]] = {
    "opening_statement": "the opening statement",
    "suggested_questions": "suggested questions",
    "suggested_questions_after_answer": "suggested questions after an answer",
    "sensitive_word_avoidance": "moderation of words",
    "retriever_resource": "the list of sources",
    "speech_to_text": "speech to text",
    "text_to_speech": "text to speech",
    "file_upload": "the settings of file uploads",
    "annotation_reply": "replies from annotations",
}
"""What an app does around its graph."""


def convert(source: Source) -> Conversion:
    """Convert an app of Dify."""
    document = cast("Mapping[str, Any]", source.value)
    fields = object_of(document, "app")
    conversion = Conversion(
        "dify", kind_version=text_of(document, "version") or None, title=text_of(fields, "name")
    )
    workflow = object_of(document, "workflow")
    if not object_of(workflow, "graph"):
        convert_prompt_app(conversion, document, source.pointer)
        return conversion
    pointer = f"{source.pointer}/workflow"
    variables = _Variables(conversion, workflow, pointer)
    app = App(
        conversion, text_of(fields, "mode"), source.write_code, variables.read, variables.secrets
    )
    app.handlers, app.conversation = KINDS, variables.use
    read_graph(app, object_of(workflow, "graph"), f"{pointer}/graph")
    top = Scope(app, conversion.graph)
    convert_steps(app, top)
    _end_where_others_go_on(app, top)
    settle_paths(app.drafts, app.holders)
    variables.lose_unread()
    conversion.code = module_text(app)
    _note_features(conversion, object_of(workflow, "features"), f"{pointer}/features")
    return conversion


def _note_features(conversion: Conversion, features: Mapping[str, Any], pointer: str) -> None:
    for name, words in _FEATURES.items():
        feature = features.get(name)
        is_on = object_of(features, name).get("enabled") is True
        if is_on or (feature and isinstance(feature, str | list)):
            conversion.note("import-ignored", f"{words} of the app: left out", f"{pointer}/{name}")


def _end_where_others_go_on(app: App, top: Scope) -> None:
    """Make the results of the app its only ones, where other steps end without one."""
    sources = {edge.source for edge in app.edges.get(None, ())}
    last = [step for step in top.steps if step not in sources and step.entries]
    results = [step for step in last if step.kind in ("end", "answer")]
    if len(results) < len(last):
        for step in results:
            end = step.add("end", {}, "end")
            new_edge(end.graph, step.main.id, end.id)
    for step in results if len(results) > 1 else ():
        step.node.change(
            "where a run comes to several of its ends, the result is an object by step"
        )


class _Variables:
    """Variables of the environment and of the conversation: values that stand in the file.

    Attributes:
        secrets: The names of those that are secrets.
        use: What steps do with variables of the conversation.
    """

    def __init__(self, conversion: Conversion, workflow: Mapping[str, Any], pointer: str) -> None:
        self._conversion, self._pointer = conversion, pointer
        self._read: set[str] = set()
        self._of_run = dict(_by_name(workflow, "environment_variables"))
        self._of_chat = dict(_by_name(workflow, "conversation_variables"))
        marked = frozenset(
            name
            for name, fields in self._of_run.items()
            if text_of(fields, "value_type") == "secret" or _is_withheld(fields.get("value"))
        )
        self.secrets = marked | (self._of_run.keys() & set(secrets_read_in(workflow.get("graph"))))
        for name in sorted(self.secrets):
            conversion.needs("secret", name)
        for name in sorted(self.secrets - marked):
            conversion.note(
                "import-secret-removed",
                f"the environment variable {name!r} is used as a secret: its value was not copied",
                f"{pointer}/environment_variables",
                hint="provide it as a secret of the operator",
            )
        self.use = use_in(object_of(workflow, "graph"))
        for number, fields in objects_in(workflow, "conversation_variables"):
            name = text_of(fields, "name")
            if name not in self.use.written & self.use.read:
                continue
            conversion.lose(
                f"{pointer}/conversation_variables/{number}",
                f"the conversation variable {name!r} does not outlive a run here",
                name,
            )

    def read(self, selector: Sequence[str], reader: Step | None) -> Read | Missing | None:
        """Return what reads a variable; None for what is none."""
        head, name, *fields = selector
        if head == "env":
            return self._read_env(name, fields, reader)
        if head == "conversation":
            return self._read_conversation(name, fields, reader)
        return None

    def lose_unread(self) -> None:
        """Name the variables of the environment whose value stands nowhere in the graph."""
        for name in sorted(self._of_run.keys() - self.secrets - self._read):
            self._conversion.lose(
                f"{self._pointer}/environment_variables",
                f"no step that could be carried over reads the environment variable {name!r}",
                name,
            )

    def _read_env(self, name: str, fields: Sequence[str], reader: Step | None) -> Read | Missing:
        variable = self._of_run.get(name)
        if variable is None:
            return Missing(f"the environment variable {name!r} is not there", "import-dangling")
        if name in self.secrets:
            return Missing(
                f"the secret {name!r} is put into a text, which templates here cannot",
                "import-secret-removed",
            )
        self._read.add(name)
        if reader is not None:
            reader.node.change(f"the environment variable {name!r} is replaced by its value")
        return _constant(variable, fields)

    def _read_conversation(
        self, name: str, fields: Sequence[str], reader: Step | None
    ) -> Read | Missing:
        variable = self._of_chat.get(name)
        if variable is None:
            return Missing(f"the conversation variable {name!r} is not there", "import-dangling")
        if reader is not None and name in self.use.written:
            place, text = reader.pointer, f"conversation.{name}"
            self._conversion.lose(
                place, "it reads a conversation variable: here always its first value", text
            )
            reader.node.change(
                f"the conversation variable {name!r} always has its first value here", place
            )
        return _constant(variable, fields)


def _constant(variable: Mapping[str, Any], fields: Sequence[str]) -> Read | Missing:
    value = variable.get("value")
    if _is_withheld(value):
        return Missing("a secret stands in it, which was not copied", "import-secret-removed")
    made = json_expression(value)
    if made is None:
        return Missing("its value is no JSON")
    is_text, is_list = isinstance(value, str), isinstance(value, list)
    return Read(made, kind="text" if is_text else "list" if is_list else "any").field(fields)


def _is_withheld(value: object) -> bool:
    return isinstance(value, Withheld) or (isinstance(value, str) and MARK in value)


def _by_name(workflow: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [(text_of(fields, "name"), fields) for _, fields in objects_in(workflow, name)]
