"""Routes: the models, which are the flows that are published as such."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from planwave.api.access_rules import access_token
from planwave.api.dependencies import AUTHENTICATED, app_state
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import success
from planwave.interop.openai.published_models import PublishedModels
from planwave.shapes.openai import ModelResponse, ModelsResponse

router = APIRouter(tags=["openai"], dependencies=AUTHENTICATED)

MODEL: Final[dict[str, Any]] = {
    "id": "triage",
    "object": "model",
    "created": 1_769_860_800,
    "owned_by": "planwave",
}
ModelId = Annotated[str, Path(description="The id of a model.", examples=["triage"])]


@router.get(
    "/v1/models",
    operation_id="listModels",
    summary="List models",
    responses=success(ModelsResponse, "The models.", {"object": "list", "data": [MODEL]}),
)
async def list_models(request: Request) -> Response:
    """Return the flows that are published as models, and `planwave/planner`."""
    models = await models_of(request).all()
    return json_response({"object": "list", "data": [model.as_json() for model in models]})


@router.get(
    "/v1/models/{model_id:path}",
    operation_id="getModel",
    summary="Look at a model",
    responses={**success(ModelResponse, "The model.", MODEL), **problems(404)},
)
async def get_model(request: Request, model_id: ModelId) -> Response:
    """Return a model by its id."""
    return json_response((await models_of(request).get(model_id)).as_json())


def models_of(request: Request) -> PublishedModels:
    """Return the models that a request may use: those of its token, or all."""
    token = access_token(request)

    def is_visible(plan_id: str | None) -> bool:
        return token is None or plan_id in token.flows

    return PublishedModels(app_state(request).service, is_visible)
