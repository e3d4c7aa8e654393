"""Apps without a graph: an entry and a model step, which run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, run_sync
from tests.support.interop.dify_apps import graph_of


def prompt_app(mode: str, **config: Any) -> Imported:
    form = [
        {
            "text-input": {
                "label": "Topic",
                "variable": "topic",
                "required": False,
                "default": "birds",
            }
        }
    ]
    settings = {
        "model": {"provider": "openai", "name": "gpt-4o-mini", "completion_params": {}},
        "pre_prompt": "Talk of {{topic}} and {{other}}.",
        "user_input_form": form,
        **config,
    }
    return import_text(
        json.dumps({"app": {"mode": mode, "name": "P"}, "kind": "app", "model_config": settings})
    )


@pytest.mark.parametrize("mode", ["chat", "agent-chat"])
def test_a_chat_app_answers_a_message(mode: str) -> None:
    made = prompt_app(mode)
    model = FakeModel("reply")
    assert run_sync(graph_of(made), "hello", model=model).text == "reply"
    (request,) = model.requests
    assert request.system == "Talk of birds and {{other}}."
    assert "hello" in str(request)
    (node,) = made.report["nodes"]
    assert (node["source"], node["outcome"]) == ("/model_config", "changed")


def test_an_app_that_completes_is_asked_once() -> None:
    made = prompt_app("completion")
    model = FakeModel("reply")
    assert run_sync(graph_of(made), {"topic": "tea"}, model=model).text == "reply"
    assert model.requests[0].prompt == "Talk of tea and {{other}}."
    assert made.report["summary"]["mapped"] == 1


@pytest.mark.parametrize(
    "config",
    [
        {"prompt_type": "advanced"},
        {"pre_prompt": "{{#context#}}"},
        {"dataset_configs": {"datasets": {"datasets": [{"dataset": {"id": "1"}}]}}},
        {"external_data_tools": [{"type": "api"}]},
    ],
)
def test_settings_that_change_replies_make_it_a_placeholder(config: dict[str, Any]) -> None:
    made = prompt_app("chat", **config)
    assert [n["type"] for n in made.document["nodes"]] == ["placeholder"]


def test_an_app_of_another_mode_is_a_placeholder() -> None:
    assert [n["type"] for n in prompt_app("odd").document["nodes"]] == ["placeholder"]
