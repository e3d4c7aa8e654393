"""The dashboard and the alert rules of ``examples/monitoring``, by the metrics that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml  # schemathesis brings it

from planwave.api.metrics import PrometheusObserver
from tests.support.paths import ROOT

FOLDER = ROOT / "examples" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text("utf-8"))
ALERTS: dict[str, Any] = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))
RULES = ALERTS["groups"][0]["rules"]
METRICS = PrometheusObserver().label_names | {"up": ()}
OF_PROMETHEUS = {"instance", "job", "le"}
"""Labels that Prometheus adds."""
_METRIC = re.compile(r"\b(planwave_\w+|up)\b(?:\{([^}]*)\})?")


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str, str]]:
    """Give a name, an expression and the text that shows its labels."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for rule in RULES:
        yield rule["alert"], rule["expr"], json.dumps(rule["annotations"])


def labels_of(name: str) -> set[str] | None:
    """Return the labels of a metric, or of a part of a histogram; None where there is none."""
    for full in (name, re.sub(r"_(bucket|sum|count)$", "", name)):
        if full in METRICS:
            return {*METRICS[full]} | OF_PROMETHEUS
    return None


@pytest.mark.parametrize(
    ("expression", "shown"), [pytest.param(*rest, id=name) for name, *rest in expressions()]
)
def test_metrics_and_labels_exist(expression: str, shown: str) -> None:
    matches = _METRIC.findall(expression)
    assert matches
    assert expression.count("(") == expression.count(")")
    known: set[str] = set(OF_PROMETHEUS)
    for name, matchers in matches:
        labels = labels_of(name)
        assert labels is not None, name
        assert {*re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)} <= labels
        known |= labels
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    assert {label.strip() for group in grouped for label in group.split(",")} <= known
    assert {*re.findall(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}", shown)} <= known


def test_every_metric_is_on_the_dashboard_or_left_out_for_a_reason() -> None:
    shown = " ".join(expression for name, expression, _ in expressions())
    missing = {name for name in METRICS if not re.search(rf"\b{name}\b|{name}_bucket", shown)}
    assert missing == {
        "planwave_build_info",  # its labels are the choice of an instance
        "planwave_node_duration_seconds",  # in a run, the page shows it better
        "planwave_http_request_duration_seconds",
        "planwave_provider_retries_total",  # they are in the outcomes of calls
        "planwave_link_cache_hits_total",  # for whoever writes node types
        "planwave_link_cache_misses_total",
        "planwave_link_fan_out",
    }


def test_dashboard_has_a_sound_form() -> None:
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert len(rows) == 6
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len({*ids}) == len(ids)
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert [target["refId"] for target in panel["targets"]] == [*"ABC"][: len(panel["targets"])]
    names = {each["name"] for each in DASHBOARD["templating"]["list"]}
    assert {*re.findall(r"\$\{?(\w+)\}?", json.dumps(panels()))} - {
        "__rate_interval",
        "__range",
    } <= (names)


def test_rules_say_what_happened_and_how_bad_it_is() -> None:
    assert len(RULES) >= 8
    for rule in RULES:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"]


def test_files_that_the_containers_mount_exist() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yml").read_text("utf-8"))
    mounts = [mount for each in compose["services"].values() for mount in each["volumes"]]
    files = {mount.split(":")[0].removeprefix("./") for mount in mounts}
    assert {name for name in files if not (FOLDER / name).is_file()} == {"planwave.token"}
    ports = [port for each in compose["services"].values() for port in each["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
