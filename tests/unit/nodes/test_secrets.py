"""Secrets of the operator: which have a value, where they may go, and how they are kept out of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import SecretStr

from planwave.bootstrap import open_catalogue, open_secrets
from planwave.config.files import load_settings
from planwave.errors import InputError
from planwave.nodes.secrets import Secret, open_redactor, read_secrets, redactor_of
from planwave.settings import Settings, unknown_variables
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.node_checks import check_node

SETTINGS = Settings.model_validate(
    {
        "secrets": {
            "crm": {"env": "CRM_TOKEN", "hosts": ["CRM.example.com"]},
            "empty": {"env": "EMPTY_TOKEN", "hosts": ["a.example"]},
            "absent": {"env": "PLANWAVE_ABSENT", "hosts": ["a.example"]},
        }
    }
)
CRM = Secret("crm", SecretStr('s3"cr/et'), ("crm.example.com", "inner.example:8080", "[::1]:443"))


def test_only_secrets_with_a_value_are_there_and_none_is_shown() -> None:
    found = read_secrets(SETTINGS, {"CRM_TOKEN": " s3cret\n", "EMPTY_TOKEN": "", "OTHER": "x"})
    assert list(found) == ["crm"]
    assert found["crm"].value.get_secret_value() == "s3cret"
    assert found["crm"].hosts == ("crm.example.com",)
    assert "s3cret" not in repr(found)


def test_the_variable_of_a_secret_is_a_known_one() -> None:
    assert unknown_variables(["PLANWAVE_ABSENT", "PLANWAVE_OTHER"], SETTINGS).keys() == {
        "PLANWAVE_OTHER"
    }


@pytest.mark.parametrize(
    "table",
    ["[secrets.crm]\nhosts = ['x']", "[secrets.'a b']\nenv='X'",
     "[secrets.crm]\nenv = 'X'\nhosts = ['https://x/']", "[secrets.crm]\nvalue = 'X'\nhosts = ['x']"],
)  # fmt: skip
def test_a_secret_needs_a_variable_and_names_hosts_where_it_is_sent(
    tmp_path: Path, table: str
) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text(table, "utf-8")
    with pytest.raises(InputError):
        load_settings(file)


@pytest.mark.parametrize("hosts", ["", "hosts = []"])
def test_a_secret_without_hosts_is_sent_nowhere(tmp_path: Path, hosts: str) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text(f"[secrets.hook]\nenv = 'X'\n{hosts}", "utf-8")
    (found,) = read_secrets(load_settings(file), {"X": "value"}).values()
    assert not found.may_be_sent_to("https://example.com/")


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://crm.example.com/x", True),
        ("HTTPS://CRM.Example.com:443/x", True),
        ("http://crm.example.com/x", False),
        ("https://crm.example.com:8443/x", False),
        ("https://crm.example.com.evil.test/x", False),
        ("https://evil.test/?crm.example.com", False),
        ("https://crm.example.com@evil.test/", False),
        ("http://inner.example:8080/x", True),
        ("https://inner.example:8080/x", True),
        ("http://inner.example/x", False),
        ("https://[::1]/x", True),
    ],
)
def test_a_secret_goes_to_the_services_of_the_operator_alone(url: str, may: bool) -> None:
    assert CRM.may_be_sent_to(url) is may


OPERATOR: dict[str, Any] = {
    "secrets": {"crm": {"env": "CRM"}, "short": {"env": "SHORT"}},
    "openai_api_key": "sk-0123456789abcdef",
    "anthropic_api_key": "short",
    "token": "token-0123456789",
    "providers": {
        "other": {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "OTHER"},
        "ollama": {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "OLLAMA"},
    },
    "mcp": {
        "program": {
            "command": "sh",
            "env": {"API_KEY": "mcp-key-value", "MODE": "production", "ID": "abcdef0123456789"},
            "pass_env": ["DB_PASSWORD", "REGION"],
        },
        "remote": {"url": "http://127.0.0.1:1/mcp", "header_env": {"X-Any": "HEADER"}},
    },
}
ENVIRONMENT = {
    "CRM": "crm-value", "SHORT": "pin", "OTHER": "other-0123456789", "OLLAMA": "ollama",
    "DB_PASSWORD": "hunter2-hunter2", "REGION": "eu-central", "HEADER": "header-value",
}  # fmt: skip


def test_every_secret_of_the_operator_is_withheld_and_no_plain_word_is() -> None:
    settings = Settings.model_validate(OPERATOR, by_name=True)
    redactor = open_redactor(settings, ENVIRONMENT)
    secret = {
        "crm-value", "sk-0123456789abcdef", "token-0123456789", "other-0123456789", "mcp-key-value",
        "abcdef0123456789", "hunter2-hunter2", "header-value",
    }  # fmt: skip
    plain = {"pin", "short", "ollama", "production", "eu-central"}
    assert {text for text in secret | plain if redactor.text(text) != text} == secret
    assert redactor_of([CRM]).text('"s3\\"cr/et"') == '"[secret crm]"'


@pytest.mark.parametrize(("name", "codes"), [("crm", []), ("empty", ["unknown-secret"])])
def test_the_check_of_a_service_knows_the_secrets_that_have_a_value(
    name: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_TOKEN", "s3cret")
    monkeypatch.setenv("EMPTY_TOKEN", "")
    registry = open_catalogue(SETTINGS, cast("Any", ListedProviders({"openai": ["m"]})))
    data = {
        "name": "get",
        "description": "Get it.",
        "url": "https://crm.example.com/",
        "secretHeaders": {"X-Key": f"{{{name}}}"},
    }
    found = check_node("http_tool", data, registry=registry)
    assert [each.code for each in found if each.code != "unused-tool"] == codes
    assert open_secrets(SETTINGS)["crm"].value.get_secret_value() == "s3cret"
