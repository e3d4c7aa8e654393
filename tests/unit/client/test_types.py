from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from planwave.api.schemas import catalog, common, executions, flows, plans
from planwave.client import types

SAME: dict[Any, type[BaseModel]] = {
    types.DiagnosticResponse: plans.DiagnosticResponse,
    types.CheckResponse: plans.CheckResponse,
    types.Span: plans.Span,
    types.Effect: plans.Effect,
    types.ForecastResponse: plans.ForecastResponse,
    types.NodeDocument: common.NodeDocument,
    types.EdgeDocument: common.EdgeDocument,
    types.PlanResponse: plans.PlanResponse,
    types.PlanSummary: plans.PlanSummary,
    types.PlansResponse: plans.PlansResponse,
    types.ExecutionCreated: executions.ExecutionCreated,
    types.ExecutionSummary: executions.ExecutionSummary,
    types.ExecutionsResponse: executions.ExecutionsResponse,
    types.WaveResponse: executions.WaveResponse,
    types.UsageResponse: executions.UsageResponse,
    types.ErrorInfo: executions.ErrorInfo,
    types.OpenRequestResponse: executions.OpenRequestResponse,
    types.OpenRequestsResponse: executions.OpenRequestsResponse,
    types.ExecutionResponse: executions.ExecutionResponse,
    types.ResultResponse: executions.ResultResponse,
    types.DocumentNode: executions.DocumentNode,
    types.DocumentResponse: executions.DocumentResponse,
    types.ExplainResponse: executions.ExplainResponse,
    types.NodeDifference: executions.NodeDifference,
    types.DifferenceCounts: executions.DifferenceCounts,
    types.DifferenceResponse: executions.DifferenceResponse,
    types.GraphDocument: common.GraphDocument,
    types.FlowResponse: flows.FlowResponse,
    types.FlowSummary: flows.FlowSummary,
    types.FlowsResponse: flows.FlowsResponse,
    types.FlowVersionResponse: flows.FlowVersionResponse,
    types.FlowVersionsResponse: flows.FlowVersionsResponse,
    types.ProviderDetails: catalog.ProviderDetails,
    types.ProvidersResponse: catalog.ProvidersResponse,
    types.PortResponse: catalog.PortResponse,
    types.NodeTypeResponse: catalog.NodeTypeResponse,
    types.NodeTypesResponse: catalog.NodeTypesResponse,
    types.LimitResponse: catalog.LimitResponse,
    types.LimitsResponse: catalog.LimitsResponse,
}


def form(kind: Any) -> Any:
    """Give a type so that those of both sides can be compared."""
    if kind in SAME:
        return SAME[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ("literal", frozenset(args))
    if origin in (Annotated, NotRequired):
        return form(args[0])
    if origin in (Union, UnionType):
        return ("union", frozenset(map(form, args)))
    return (origin, *map(form, args)) if args else kind


def without_none(kind: Any) -> Any:
    """Give the type of a field that is left out where there is none."""
    rest = [each for each in get_args(kind) if each is not type(None)]
    return rest[0] if get_origin(kind) in (Union, UnionType) and len(rest) == 1 else kind


def test_every_type_is_held_to_what_the_service_documents() -> None:
    typed_dicts = {each for each in vars(types).values() if hasattr(each, "__required_keys__")}
    assert typed_dicts == set(SAME)


@pytest.mark.parametrize("answer", SAME, ids=lambda answer: answer.__name__)
def test_the_client_types_what_the_service_documents(answer: Any) -> None:
    typed = {name: form(kind) for name, kind in get_type_hints(answer, include_extras=True).items()}
    said: dict[str, Any] = {}
    for name, field in SAME[answer].model_fields.items():
        kind = field.annotation if field.is_required() else without_none(field.annotation)
        said[field.alias or name] = form(kind)
    assert typed == said


@pytest.mark.parametrize("answer", SAME, ids=lambda answer: answer.__name__)
def test_what_may_be_left_out_is_the_same_for_both(answer: Any) -> None:
    fields = SAME[answer].model_fields.items()
    optional = {field.alias or name for name, field in fields if not field.is_required()}
    # ``__optional_keys__`` knows nothing of NotRequired where annotations are texts.
    hints = get_type_hints(answer, include_extras=True)
    assert {name for name, kind in hints.items() if get_origin(kind) is NotRequired} == optional
