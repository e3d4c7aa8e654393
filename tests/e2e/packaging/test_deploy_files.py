"""The files in ``deploy/``: they parse, and every setting, command, port, route and metric that they name exists.

Docker, Helm and KEDA are not run here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from typer.main import get_command

from planwave.api.metrics import PrometheusObserver
from planwave.api.middleware.host_origin import HEALTH_PATHS
from planwave.api.streaming.sse import PING_INTERVAL_S
from planwave.cli.app import app
from planwave.interop.mcp_server.open_calls import SESSION_HEADER
from planwave.setting_tables import TemporalSettings
from planwave.settings import Limits, Settings
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord
from tests.support.helm_templates import rendered
from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROXY = (DEPLOY / "haproxy.cfg").read_text("utf-8")
CHART = DEPLOY / "helm" / "planwave"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
TEMPLATES = {path.stem: path.read_text("utf-8") for path in (CHART / "templates").glob("*.yaml")}
OBJECTS: dict[str, dict[str, Any]] = {
    name: yaml.safe_load(rendered(text, {"Values": VALUES, "Release": {"Name": "planwave"}}))
    for name, text in TEMPLATES.items()
}
AUTHENTICATION, SCALED = yaml.safe_load_all((DEPLOY / "keda/scaledobject.yaml").read_text("utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
PORT = re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)[0]
OF_PLANWAVE = [name for name, each in SERVICES.items() if each.get("image") == "planwave-scale"]
CONTAINERS = {
    name: OBJECTS[name]["spec"]["template"]["spec"]["containers"][0]
    for name in ("api", "worker", "migrate")
}


def variables() -> set[str]:
    """Return the environment variables that are settings."""
    names = {f"PLANWAVE_LIMIT_{name.upper()}" for name in Limits.model_fields}
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        names.add(alias if isinstance(alias, str) else f"PLANWAVE_{name.upper()}")
    return names


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


# -- all files -----------------------------------------------------------------------------------


def test_every_file_is_one_that_the_tests_read() -> None:
    read = {
        "compose.yaml",
        "haproxy.cfg",
        "temporal.yaml",
        ".env.example",
        "keda/scaledobject.yaml",
    }
    read |= {"helm/planwave/Chart.yaml", "helm/planwave/values.yaml"}
    read |= {f"helm/planwave/templates/{name}.yaml" for name in TEMPLATES}
    assert {str(path.relative_to(DEPLOY)) for path in FILES} == read


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_named_variables_are_settings(path: Path) -> None:
    named = set(re.findall(r"\b(?:PLANWAVE|OPENAI|ANTHROPIC)_[A-Z_]*[A-Z]\b", text_of(path)))
    assert named - {"PLANWAVE_MEMORY"} <= variables()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_named_metrics_and_locks_exist(path: Path) -> None:
    named = re.findall(r"planwave_[a-z_]+", text_of(path))
    assert set(named) <= PrometheusObserver().label_names.keys()
    for lock in re.findall(r"requirements-\w+\.lock", text_of(path)):
        assert (ROOT / lock).is_file()
        assert lock in DOCKERFILE


def test_every_container_runs_a_command_that_exists() -> None:
    commands = [SERVICES[name]["command"] for name in OF_PLANWAVE]
    commands += [each["command"] for each in CONTAINERS.values()]
    assert {program for program, *_ in commands} == {"planwave"}
    known: dict[str, object] = get_command(app).commands  # type: ignore[attr-defined]
    assert {tuple(words) for _, *words in commands} == {("serve",), ("worker",), ("migrate",)}
    assert {words[0] for _, *words in commands} <= set(known)


def test_the_versions_of_the_chart_are_those_of_the_package() -> None:
    chart = yaml.safe_load(text_of(CHART / "Chart.yaml"))
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'version = "{chart["appVersion"]}"' in project
    assert VALUES["image"]["tag"] == chart["appVersion"]


# -- compose -------------------------------------------------------------------------------------


def test_services_serve_and_drive_over_one_database_and_carrier() -> None:
    assert {*OF_PLANWAVE} == {"api", "worker", "migrate"}
    for name in OF_PLANWAVE:
        environment: dict[str, str] = SERVICES[name]["environment"]
        assert set(environment) <= variables()
        temporal = TemporalSettings(**json.loads(environment["PLANWAVE_TEMPORAL"]))
        assert temporal.address.split(":")[0] in SERVICES
        assert (
            f"@postgres:5432/{SERVICES['postgres']['environment']['POSTGRES_DB']}"
            in (environment["PLANWAVE_DATABASE_URL"])
        )
        (grace,) = re.findall(r"^(\d+)s$", SERVICES[name]["stop_grace_period"])
        assert int(grace) >= Limits().drain_s + 5
        assert SERVICES[name]["build"]["args"]["LOCK"] == "requirements-scale.lock"
        assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert SERVICES["api"]["deploy"]["replicas"] == 2
    assert SERVICES["worker"]["deploy"]["replicas"] >= 2


def test_the_server_of_temporal_has_its_dynamic_configuration() -> None:
    """A test of the carriers shows what it does."""
    temporal = SERVICES["temporal"]
    (mounted,) = temporal["volumes"]
    assert mounted.split(":") == [
        "./temporal.yaml", temporal["environment"]["DYNAMIC_CONFIG_FILE_PATH"], "ro"
    ]  # fmt: skip


def test_services_start_in_an_order_that_is_there() -> None:
    for service in SERVICES.values():
        needed = service.get("depends_on", {})
        assert set(needed) <= set(SERVICES)
        for name, how in needed.items() if isinstance(needed, dict) else ():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
    assert SERVICES["api"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_secrets_come_from_the_environment() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", text_of(DEPLOY / "compose.yaml")))
    example = dict(
        line.split("=", 1)
        for line in text_of(DEPLOY / ".env.example").splitlines()
        if line and not line.startswith("#")
    )
    assert asked == {"PLANWAVE_TOKEN", "POSTGRES_PASSWORD"}
    assert asked <= set(example)
    assert set(example.values()) == {""}
    assert set(example) <= variables() | asked
    git_ignores = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert any(each in git_ignores for each in (".env", "deploy/.env"))


def test_the_proxy_reaches_what_is_ready_and_keeps_mcp_sessions() -> None:
    (published,) = SERVICES["proxy"]["ports"]
    bound = re.findall(r"bind :(\d+)$", PROXY, re.MULTILINE)
    assert published == f"127.0.0.1:8000:{bound[0]}", "published on loopback alone"
    assert re.findall(r"server-template \w+ \d+ (\w+):(\d+)", PROXY) == [("api", PORT)]
    (check,) = re.findall(r"httpchk GET (\S+)", PROXY)
    assert check in HEALTH_PATHS
    assert set(re.findall(r"\.hdr\(([^)]*)\)", PROXY)) == {SESSION_HEADER}
    waits = [int(each) for each in re.findall(r"timeout (?:client|server) (\d+)s", PROXY)]
    assert min(waits) > max(PING_INTERVAL_S, Limits().socket_ping_s)


# -- Helm ----------------------------------------------------------------------------------------


def test_the_chart_has_the_objects_of_an_installation() -> None:
    kinds = sorted(each["kind"] for each in OBJECTS.values())
    assert kinds == ["ConfigMap", "Deployment", "Deployment", "Job", "Secret", "Service"]
    given = {"Values": {**VALUES, "existingSecret": "own"}, "Release": {"Name": "planwave"}}
    assert yaml.safe_load(rendered(TEMPLATES["secret"], given)) is None
    job = yaml.safe_load(rendered(TEMPLATES["migrate"], given))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"][1] == {"secretRef": {"name": "own"}}


def test_every_value_is_used_by_a_template() -> None:
    used = set(re.findall(r"\.Values\.([\w.]+)", "\n".join(TEMPLATES.values())))
    leaves: set[str] = set()

    def walk(value: Any, path: str) -> None:
        if path in used:
            leaves.add(path)
        elif isinstance(value, dict):
            for name, each in value.items():
                walk(each, f"{path}.{name}".strip("."))
        else:
            raise AssertionError(f"no template uses {path}")

    walk(VALUES, "")
    assert leaves == used


def test_settings_of_the_chart_are_valid() -> None:
    settings: dict[str, str] = OBJECTS["configmap"]["data"]
    secrets: dict[str, str] = OBJECTS["secret"]["stringData"]
    assert settings.keys() | secrets.keys() <= variables()
    assert {"PLANWAVE_DATABASE_URL", "PLANWAVE_TOKEN"} == secrets.keys()
    assert not any(secrets.values()), "nothing secret is in the repository"
    assert not settings.keys() & secrets.keys()
    temporal = TemporalSettings(**json.loads(settings["PLANWAVE_TEMPORAL"]))
    assert temporal.task_queue == VALUES["temporal"]["taskQueue"]
    assert settings["PLANWAVE_CARRIER"] == "temporal"


@pytest.mark.parametrize("role", CONTAINERS)
def test_containers_have_the_settings_and_the_labels_of_their_role(role: str) -> None:
    sources = {next(iter(each)): next(iter(each.values())) for each in CONTAINERS[role]["envFrom"]}
    assert sources["configMapRef"]["name"] == OBJECTS["configmap"]["metadata"]["name"]
    assert sources["secretRef"]["name"] == OBJECTS["secret"]["metadata"]["name"]
    labels = OBJECTS[role]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == role
    if role != "migrate":
        assert OBJECTS[role]["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("role", ["api", "worker"])
def test_probes_ask_what_is_there_and_pods_have_time_to_drain(role: str) -> None:
    container, pod = CONTAINERS[role], OBJECTS[role]["spec"]["template"]["spec"]
    (port,) = container["ports"]
    assert str(port["containerPort"]) == PORT
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")]
    assert [each["path"] for each in probes] == ["/healthz", "/readyz"]
    assert {each["path"] for each in probes} <= HEALTH_PATHS
    assert {each["port"] for each in probes} == {port["name"]}
    drain_s = float(OBJECTS["configmap"]["data"]["PLANWAVE_LIMIT_DRAIN_S"])
    assert pod["terminationGracePeriodSeconds"] >= drain_s + 5
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
    uid = re.findall(r"useradd --uid (\d+)", DOCKERFILE)
    assert str(pod["securityContext"]["runAsUser"]) == uid[0]


def test_the_service_reaches_the_processes_that_serve() -> None:
    service = OBJECTS["service"]["spec"]
    assert service["selector"] == OBJECTS["api"]["spec"]["selector"]["matchLabels"]
    assert service["ports"][0]["targetPort"] == CONTAINERS["api"]["ports"][0]["name"]


# -- KEDA ----------------------------------------------------------------------------------------


def test_what_is_scaled_is_the_worker_of_the_chart() -> None:
    assert SCALED["spec"]["scaleTargetRef"]["name"] == OBJECTS["worker"]["metadata"]["name"]
    (secret,) = AUTHENTICATION["spec"]["secretTargetRef"]
    assert secret["name"] == OBJECTS["secret"]["metadata"]["name"]
    assert secret["key"] in OBJECTS["secret"]["stringData"]
    database, carrier = SCALED["spec"]["triggers"]
    assert database["authenticationRef"]["name"] == AUTHENTICATION["metadata"]["name"]
    assert carrier["metadata"]["endpoint"] == VALUES["temporal"]["address"]
    assert carrier["metadata"]["taskQueue"] == VALUES["temporal"]["taskQueue"]
    assert carrier["metadata"]["namespace"] == VALUES["temporal"]["namespace"]


async def test_the_query_counts_what_waits(database_url: str) -> None:
    at = "2026-01-01T00:00:00.000000Z"
    async with PostgresStore.open(database_url) as store:
        for name, queued in (("x1", True), ("x2", True), ("x3", False)):
            record = ExecutionRecord(name, None, "t", "g", "starting", at, queued=queued)
            await store.create_execution(record, [])
        waiting = (await store.load()).waiting
    with psycopg.connect(database_url) as raw:
        (counted,) = raw.execute(SCALED["spec"]["triggers"][0]["metadata"]["query"]).fetchall()
    assert counted == (waiting,) == (2,)
