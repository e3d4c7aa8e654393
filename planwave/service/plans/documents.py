"""Plans and graphs that come as text, and plans as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from planwave.errors import (
    GraphInvalid,
    InputError,
    LimitExceeded,
    NotFound,
    UnavailableProvider,
    UnknownModel,
    UnknownProvider,
)
from planwave.executor.inputs import goal_errors
from planwave.expressions import has_template
from planwave.foreign_formats import MERMAID, NOUNS, PLANWAVE, formats_of, is_flowchart
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, limit_exceeded
from planwave.graph.flow_inputs import flow_inputs_of
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan, canonical_json, graph_hash, is_plain_document, title_of_steps
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.document_text import begins_as_json, parse_document_text
from planwave.graph.reading.documents import is_execution_document, read_graph
from planwave.jsonio import dumps_trusted, is_plain
from planwave.principals import current_principal
from planwave.settings import Limits
from planwave.shapes.imports import ImportRecord
from planwave.storage.records import PlanRecord

if TYPE_CHECKING:
    from planwave.shapes.common import PlanStatus
    from planwave.shapes.plans import PlanDocument
    from planwave.storage.sql.store import Store


_GRAPH_FIELDS: Final = ("nodes", "edges")
IMPORTED_FROM: Final = "imported_from"
"""The field of a plan's document that says what it was imported from."""
_PLAN_FIELDS: Final = frozenset(
    {
        "plan_id", "user_prompt", "title", "status", "revision", "hash", "created_at", "provider",
        "model", "diagnostics", "fixes", "questions", "attempts", "forecast", "name",
        "description", "published", "live_revision", "approval", "inputs", "origin", "proposal",
        "examples", IMPORTED_FROM,
    }
)  # fmt: skip
"""What the API shows of a plan around its graph; anything else at the top is an unknown field."""

_PROVIDER_ERRORS: Final[dict[str, type[InputError]]] = {
    "unknown-provider": UnknownProvider,
    "unavailable-provider": UnavailableProvider,
    "unknown-model": UnknownModel,
}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of checking a document.

    Attributes:
        graph: The graph, or None where not all of it could be read.
        diagnostics: Every finding, by its place in the document.
        envelope: What a plan document says around its graph (title, user_prompt, …).
    """

    graph: Graph | None
    diagnostics: tuple[Diagnostic, ...]
    envelope: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def can_run(self) -> bool:
        """Whether nothing found stops it from running here."""
        return self.graph is not None and not errors_in(self.diagnostics)

    @property
    def is_sound(self) -> bool:
        """Whether nothing stops it from running but this machine's providers."""
        return self.graph is not None and all(map(is_provider_error, errors_in(self.diagnostics)))

    def graph_document(self) -> dict[str, Json] | None:
        """Return the graph as it would be stored: with every handle and channel filled in."""
        return None if self.graph is None else self.graph.to_document()


class CheckedPlan(NamedTuple):
    """A plan that was read and checked just now; executed at once, it is not checked again.

    Attributes:
        plan: The plan.
        report: The check of ``report.graph``; any other graph is checked again.
        checked_by: The object whose node types, limits and providers the plan was checked against.
    """

    plan: Plan
    report: CheckReport
    checked_by: object


def check_source(
    source: str | bytes | Mapping[str, Json],
    catalogue: NodeTypes,
    limits: Limits,
) -> CheckReport:
    """Read and check a graph document, a plan as ``planwave plan --json`` prints it, or an execution.

    Of the document of an execution, the graph is checked. A document of another program has one finding,
    ``foreign-format``, in place of its many faults as a graph.

    Args:
        source: JSON or YAML text, or JSON parsed by
            ``planwave.graph.reading.strict_json.parse_strict_json``.
        catalogue: The node types.
        limits: The limits of graphs and JSON.
    """
    report = _checked(source, catalogue, limits)
    if errors_in(report.diagnostics) and (foreign := foreign_finding(source)) is not None:
        return CheckReport(None, (foreign,))
    return report


def foreign_finding(source: object) -> Diagnostic | None:
    """Return the finding of a document that another program wrote; None if planwave or nobody known did."""
    kinds = (MERMAID,) if isinstance(source, str | bytes) and is_flowchart(source) else ()
    if not kinds:
        with suppress(GraphInvalid):
            is_text = isinstance(source, str | bytes)
            kinds = formats_of(parse_document_text(source) if is_text else source)
    if not kinds or PLANWAVE in kinds:
        return None
    named = " or ".join(NOUNS[kind] for kind in kinds)
    message = f"this is {named}, not a graph of planwave"
    return Diagnostic("foreign-format", "error", message, hint="import it")


def _checked(
    source: str | bytes | Mapping[str, Json], catalogue: NodeTypes, limits: Limits
) -> CheckReport:
    try:
        if isinstance(source, str | bytes):
            graph_source, envelope = _graph_in_text(source, limits)
        else:
            graph_source, envelope = _without_envelope(source)
            _require_size(graph_source, limits)
    except GraphInvalid as error:
        return CheckReport(None, error.diagnostics)
    graph, findings = read_and_check(graph_source, catalogue, limits)
    if graph is not None and has_template(goal := _text(envelope.get("user_prompt"))):
        findings = [*findings, *goal_errors(goal, flow_inputs_of(graph, catalogue), "/user_prompt")]
    return CheckReport(graph, tuple(findings), envelope)


def _graph_in_text(source: str | bytes, limits: Limits) -> tuple[str | bytes, Mapping[str, Json]]:
    """Return the graph's own text, and the other fields of the plan around it."""
    document = parse_document_text(source, max_depth=limits.json_depth)
    if not isinstance(document, dict):
        return source, {}
    rest, envelope = _without_envelope(cast("dict[str, Json]", document))
    is_graph = not envelope and begins_as_json(source)
    return (source if is_graph else canonical_json(rest)), envelope


def _require_size(graph: Mapping[str, Json], limits: Limits) -> None:
    """Check the size of a graph as text.

    Raises:
        GraphInvalid: It has too many bytes, as it would have where it comes as text.
    """
    size = len(dumps_trusted(graph))
    if size > limits.plan_bytes:
        raise GraphInvalid([limit_exceeded("plan_bytes", limits.plan_bytes, size, "the document")])


def _without_envelope(document: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    if is_execution_document(document):
        fields = {name: document[name] for name in ("execution_id", "graph")}
        return fields, {name: document.get(name) for name in ("title", "user_prompt")}
    envelope = {name: document[name] for name in document if name in _PLAN_FIELDS}
    return {name: document[name] for name in document if name not in _PLAN_FIELDS}, envelope


def is_provider_error(finding: Diagnostic) -> bool:
    """Return whether a diagnostic is about this machine's providers, not about the graph."""
    return finding.code in _PROVIDER_ERRORS


def is_graph_error(finding: Mapping[str, Any]) -> bool:
    """Return whether a stored diagnostic is an error of the graph, not of this machine's providers."""
    return finding.get("severity") == "error" and finding.get("code") not in _PROVIDER_ERRORS


def raise_for_graph(diagnostics: Sequence[Diagnostic]) -> None:
    """Refuse a graph that can run nowhere.

    Raises:
        GraphInvalid: With all diagnostics.
    """
    if not all(map(is_provider_error, errors_in(diagnostics))):
        raise GraphInvalid(diagnostics)


def raise_for_run(diagnostics: Sequence[Diagnostic]) -> None:
    """Refuse a graph that cannot run here.

    Raises:
        GraphInvalid: It can run nowhere.
        UnknownProvider, UnavailableProvider, UnknownModel: Only that stands in the way.
    """
    raise_for_graph(diagnostics)
    for finding in errors_in(diagnostics):
        raise _PROVIDER_ERRORS[finding.code](finding.message, hint=finding.hint)


def plan_from_graph(
    report: CheckReport,
    *,
    plan_id: str,
    created_at: str,
    forecast: Callable[[Graph, str], Mapping[str, Any]],
    takes_drafts: bool = False,
) -> Plan:
    """Make a plan of a checked document.

    Args:
        report: The check of the document.
        plan_id: The id of the plan.
        created_at: The present time.
        forecast: Returns the forecast of a graph without errors, for a goal.
        takes_drafts: Whether a graph with errors becomes a plan, too: a draft, without a forecast.

    Raises:
        GraphInvalid: It can run nowhere, or cannot be read; all diagnostics are attached.
    """
    if not takes_drafts:
        raise_for_graph(report.diagnostics)
    graph = report.graph
    if graph is None:
        raise GraphInvalid(report.diagnostics)
    envelope = report.envelope
    return Plan(
        plan_id=plan_id,
        user_prompt=_text(envelope.get("user_prompt")),
        title=_text(envelope.get("title")) or title_of_steps(graph),
        graph=graph,
        hash=graph_hash(graph),
        created_at=created_at,
        diagnostics=tuple(finding.as_json() for finding in report.diagnostics),
        fixes=tuple(finding.fix for finding in report.diagnostics if finding.fix),
        forecast=forecast(graph, _text(envelope.get("user_prompt"))) if report.is_sound else {},
    )


def import_record(report: CheckReport, now: str, limits: Limits) -> ImportRecord | None:
    """Return what a plan document says of the file that it was imported from.

    Args:
        report: The check of the document.
        now: The time of an import that names none: it is made now.
        limits: The record may have as many bytes as a graph.

    Returns:
        None where the document names no import, or in another form.

    Raises:
        LimitExceeded: ``plan_bytes``.
    """
    given = report.envelope.get(IMPORTED_FROM)
    if not isinstance(given, dict):
        return None
    try:
        record = _import_records().validate_python({"imported_at": now, **given}, strict=True)
    except ValidationError:
        return None
    if (size := len(dumps_trusted(record))) > limits.plan_bytes:
        raise LimitExceeded("plan_bytes", limits.plan_bytes, size, what="the record of an import")
    return record


def with_import(record: PlanRecord, imported: ImportRecord | None) -> PlanRecord:
    """Return a plan that was imported; the same one where ``imported`` is None."""
    if imported is None:
        return record
    document = {**record.document, IMPORTED_FROM: imported}
    return replace(record, document=document, plain=record.plain and is_plain(imported))


def import_of(record: PlanRecord) -> ImportRecord | None:
    """Return what a plan says of the file that it was imported from; None for others."""
    return record.document.get(IMPORTED_FROM)


@cache
def _import_records() -> TypeAdapter[ImportRecord]:
    return TypeAdapter(ImportRecord)


def record_of(plan: Plan) -> PlanRecord:
    """Return the record of a plan; of one with errors, nothing may be started."""
    document = plan.as_json(graph=plan.graph.document)
    around = [value for name, value in document.items() if name not in _GRAPH_FIELDS]
    return PlanRecord(
        plan.plan_id,
        plan.created_at,
        plan.user_prompt,
        plan.title,
        plan.hash,
        document,
        edited_by=current_principal(),
        sound_revision=None if any(map(is_graph_error, plan.diagnostics)) else plan.revision,
        plain=is_plain_document(plan.graph) and is_plain(around),
    )


def plan_json(record: PlanRecord, status: PlanStatus) -> PlanDocument:
    """Return a stored plan in the JSON form of the API, but for its inputs."""
    approval = record.approvals.get(record.hash)
    document = {
        **record.document,
        "questions": record.document.get("questions", []),
        "status": status,
        "name": record.name,
        "description": record.description,
        "published": list(record.published),
        "live_revision": record.live_revision,
        "approval": None if approval is None else approval.as_json(),
    }
    return cast("PlanDocument", document)


def plan_of(record: PlanRecord, limits: Limits | None = None) -> Plan:
    """Return the plan of a record.

    Raises:
        GraphInvalid: The row was tampered with, or passes limits that were lowered since.
    """
    document = record.document
    graph, _ = read_graph({name: document.get(name) for name in _GRAPH_FIELDS}, limits=limits)
    return Plan(
        plan_id=record.plan_id,
        user_prompt=record.user_prompt,
        title=record.title,
        graph=graph,
        hash=record.hash,
        created_at=record.created_at,
        revision=document.get("revision", 1),
        provider=document.get("provider"),
        model=document.get("model"),
        diagnostics=document.get("diagnostics", ()),
        fixes=document.get("fixes", ()),
        questions=document.get("questions", ()),
        attempts=document.get("attempts", ()),
        forecast=document.get("forecast", {}),
        examples=document.get("examples", ()),
    )


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""


async def load_plan(store: Store, plan_id: str) -> PlanRecord:
    """Return a stored plan.

    Raises:
        NotFound: No plan has this id.
    """
    record = await store.plan(plan_id)
    if record is None:
        raise NotFound(f"there is no plan {plan_id!r}", hint="list the plans")
    return record
