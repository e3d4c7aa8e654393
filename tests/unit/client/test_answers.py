from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from planwave.api import answers as documented
from planwave.api import catalogues, comparing, flow_answers, models
from planwave.client import answers, differences, offers
from planwave.client import flow_answers as flows

SAME: dict[Any, type[BaseModel]] = {
    answers.DiagnosticResponse: documented.DiagnosticResponse,
    answers.CheckResponse: documented.CheckResponse,
    answers.Span: documented.Span,
    answers.Effect: documented.Effect,
    answers.ForecastResponse: documented.ForecastResponse,
    answers.NodeDocument: models.NodeDocument,
    answers.EdgeDocument: models.EdgeDocument,
    answers.PlanResponse: documented.PlanResponse,
    answers.PlanSummary: documented.PlanSummary,
    answers.PlansResponse: documented.PlansResponse,
    answers.ExecutionCreated: documented.ExecutionCreated,
    answers.ExecutionSummary: documented.ExecutionSummary,
    answers.ExecutionsResponse: documented.ExecutionsResponse,
    answers.WaveResponse: documented.WaveResponse,
    answers.UsageResponse: documented.UsageResponse,
    answers.ErrorInfo: documented.ErrorInfo,
    answers.OpenRequestResponse: documented.OpenRequestResponse,
    answers.OpenRequestsResponse: documented.OpenRequestsResponse,
    answers.ExecutionResponse: documented.ExecutionResponse,
    answers.ResultResponse: documented.ResultResponse,
    answers.DocumentNode: documented.DocumentNode,
    answers.DocumentResponse: documented.DocumentResponse,
    answers.ExplainResponse: documented.ExplainResponse,
    differences.NodeDifference: comparing.NodeDifference,
    differences.DifferenceCounts: comparing.DifferenceCounts,
    differences.DifferenceResponse: comparing.DifferenceResponse,
    flows.GraphDocument: models.GraphDocument,
    flows.FlowResponse: flow_answers.FlowResponse,
    flows.FlowSummary: flow_answers.FlowSummary,
    flows.FlowsResponse: flow_answers.FlowsResponse,
    flows.FlowVersionResponse: flow_answers.FlowVersionResponse,
    flows.FlowVersionsResponse: flow_answers.FlowVersionsResponse,
    offers.ProviderDetails: catalogues.ProviderDetails,
    offers.ProvidersResponse: catalogues.ProvidersResponse,
    offers.PortResponse: catalogues.PortResponse,
    offers.NodeTypeResponse: catalogues.NodeTypeResponse,
    offers.NodeTypesResponse: catalogues.NodeTypesResponse,
    offers.LimitResponse: catalogues.LimitResponse,
    offers.LimitsResponse: catalogues.LimitsResponse,
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
    modules = (answers, differences, flows, offers)
    named = [each for module in modules for each in vars(module).values()]
    types = {each for each in named if hasattr(each, "__required_keys__")}
    assert types == set(SAME)


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
