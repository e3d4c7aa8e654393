import asyncio
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from planwave import bootstrap
from planwave.cli.app import app
from planwave.errors import InputError
from planwave.providers.protocols import ProviderInfo
from planwave.service.carriers.carrier import Role
from planwave.settings import Settings
from tests.support.cli.fake_factories import fake_factories
from tests.support.llm.fake_providers import FakeProviders
from tests.support.polling import until


class Server:
    """Listens nowhere, and remembers how it was asked to."""

    def __init__(self, exit_code: int = 0, error: Exception | None = None) -> None:
        self.asked: list[Settings] = []
        self.roles: list[str] = []
        self._exit_code = exit_code
        self._error = error

    async def __call__(self, settings: Settings, told: Callable[[str], object], role: str) -> int:
        self.asked.append(settings)
        self.roles.append(role)
        if self._error is not None:
            raise self._error
        told(f"http://{settings.host}:{settings.port or 4711}")
        return self._exit_code


def test_serve_prints_url_and_how_to_stop(tmp_path: Path) -> None:
    server = Server()
    requested = ["serve", "--host", "::1", "--port", "0", "--storage", str(tmp_path)]
    done = CliRunner().invoke(app, requested, obj=fake_factories(serve=server))
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "planwave listens on http://::1:4711",
        "  web UI: http://::1:4711/",
        "  API documentation: http://::1:4711/docs",
        f"  storage: {tmp_path}",
        "  Ctrl-C stops it after running steps have ended; a second Ctrl-C stops it at once",
    ]
    (settings,) = server.asked
    assert (settings.host, settings.port, settings.storage_dir) == ("::1", 0, tmp_path)


def test_serve_options_override_settings() -> None:
    server = Server()
    CliRunner().invoke(app, ["serve"], obj=fake_factories(serve=server, host="10.1.2.3", port=81))
    CliRunner().invoke(app, ["serve", "--port", "82"], obj=fake_factories(serve=server, port=81))
    assert [(each.host, each.port) for each in server.asked] == [
        ("10.1.2.3", 81),
        ("127.0.0.1", 82),
    ]


@pytest.mark.parametrize("where", [["serve", "--json"], ["--json", "serve"]])
def test_serve_json_prints_one_line(where: list[str]) -> None:
    composition = fake_factories(serve=Server(), token=SecretStr("secret"), api_docs=False)
    done = CliRunner().invoke(app, where, obj=composition)
    (line,) = done.stdout.splitlines()
    received = json.loads(line)
    assert (received["url"], received["needs_token"]) == ("http://127.0.0.1:8000", True)
    assert "secret" not in done.output


def test_serve_mentions_token_without_showing_it() -> None:
    composition = fake_factories(serve=Server(), token=SecretStr("secret"), api_docs=False)
    shown = CliRunner().invoke(app, ["serve"], obj=composition).output
    assert "Authorization: Bearer" in shown
    assert "secret" not in shown
    assert "/docs" not in shown


def test_serve_says_that_the_web_ui_is_not_built() -> None:
    done = CliRunner().invoke(app, ["serve"], obj=fake_factories(serve=Server(), has_web_ui=False))
    assert "  web UI: not built; make web builds it, and needs Node\n" in done.stdout


def test_serve_prints_addresses_below_root_path() -> None:
    server = Server()
    done = CliRunner().invoke(
        app, ["serve", "--root-path", "/flows/"], obj=fake_factories(serve=server)
    )
    assert "  web UI: http://127.0.0.1:8000/flows/\n" in done.stdout
    assert "  API documentation: http://127.0.0.1:8000/flows/docs\n" in done.stdout
    assert server.asked[0].root_path == "/flows"


@pytest.mark.parametrize("path", ["flows", "/a b", "/api", "/ws/x", "http://x/"])
def test_serve_rejects_invalid_root_path(path: str) -> None:
    done = CliRunner().invoke(app, ["serve", "--root-path", path], obj=fake_factories())
    assert done.exit_code == 2
    assert "--root-path" in done.output


async def test_serve_open_starts_browser_with_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    program = f"import pathlib, sys; pathlib.Path({str(opened)!r}).write_text(sys.argv[1])"
    monkeypatch.setenv("BROWSER", f"{sys.executable} -c {shlex.quote(program)} %s")
    monkeypatch.setattr("webbrowser._tryorder", None)  # read from BROWSER once
    arguments = ["serve", "--open", "--root-path", "/x"]
    await asyncio.to_thread(CliRunner().invoke, app, arguments, obj=fake_factories(serve=Server()))
    await until(lambda: opened.exists() and opened.read_text())
    assert opened.read_text() == "http://127.0.0.1:8000/x/"


def test_serve_exits_with_code_of_server() -> None:
    done = CliRunner().invoke(app, ["serve"], obj=fake_factories(serve=Server(exit_code=143)))
    assert done.exit_code == 143


def test_serve_reports_refused_address_as_usage_error() -> None:
    refusal = InputError("no token", code="token-required", hint="set one")
    done = CliRunner().invoke(app, ["serve"], obj=fake_factories(serve=Server(error=refusal)))
    assert done.exit_code == 2
    assert "no token" in done.output


def test_serve_rejects_invalid_port() -> None:
    done = CliRunner().invoke(app, ["serve", "--port", "65536"], obj=fake_factories())
    assert done.exit_code == 2


class Keyless(FakeProviders):
    infos = (
        ProviderInfo("openai", "openai", False, "OPENAI_API_KEY is not set", "set it"),
        ProviderInfo("local", "local", True, "", "", ("small",), "small", open_models=False),
    )

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        return super().resolve(provider or "local", model)


@pytest.mark.parametrize(("providers", "warnings"), [(Keyless(), 1), (FakeProviders(), 0)])
def test_serve_warns_once_that_steps_fall_back_to_the_embedded_model(
    providers: FakeProviders, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    obj = fake_factories(serve=Server(), providers=providers)
    assert CliRunner().invoke(app, ["serve"], obj=obj).exit_code == 0
    logged = [each.getMessage() for each in caplog.records if "embedded one" in each.getMessage()]
    assert len(logged) == warnings
    assert all(text.startswith("no API key is set: ") and "small" in text for text in logged)


def test_a_service_drives_too_if_it_is_asked_to() -> None:
    server = Server()
    for arguments in (["serve"], ["serve", "--with-worker"], ["worker"]):
        assert CliRunner().invoke(app, arguments, obj=fake_factories(serve=server)).exit_code == 0
    assert server.roles == ["service", "service-with-worker", "worker"]


def test_a_worker_says_what_it_drives_and_where_its_health_is(tmp_path: Path) -> None:
    shown = (
        CliRunner()
        .invoke(
            app,
            ["worker", "--port", "82"],
            obj=fake_factories(serve=Server(), storage_dir=tmp_path),
        )
        .output
    )
    assert shown.splitlines() == [
        f"planwave worker drives executions of {tmp_path}",
        "  Temporal: 127.0.0.1:7233, task queue planwave",
        "  health: http://127.0.0.1:82/healthz",
        "  Ctrl-C stops it after running steps have ended; a second Ctrl-C stops it at once",
    ]
    done = CliRunner().invoke(app, ["worker", "--json"], obj=fake_factories(serve=Server()))
    assert json.loads(done.output).keys() == {"url", "pid", "storage"}


@pytest.mark.parametrize("role", ["worker", "service-with-worker"])
async def test_nothing_is_handed_to_a_worker_by_the_carrier_of_one_process(role: Role) -> None:
    with pytest.raises(InputError) as refused:
        await bootstrap.serve(Settings(), lambda _: None, role)
    assert refused.value.code == "worker-needs-carrier"
    assert "without --with-worker" in (refused.value.hint or "")
