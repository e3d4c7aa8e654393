from dataclasses import replace
from pathlib import Path

import pytest

from planwave.cli.context import CommandContext
from planwave.config.files import LoadedSettings
from planwave.errors import UnknownModel
from planwave.settings import ProviderSettings, Settings
from tests.support.cli.fake_factories import fake_factories


def test_options_override_settings() -> None:
    composition = fake_factories(provider="anthropic", model="claude")
    plain = CommandContext(composition).settings()
    assert (plain.provider, plain.model, plain.storage_dir) == (
        "anthropic",
        "claude",
        Path("storage"),
    )
    requested = CommandContext(composition, storage="there", provider="openai").settings()
    assert (requested.provider, requested.storage_dir) == ("openai", Path("there"))


def test_storage_option_expands_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    requested = CommandContext(fake_factories(), storage="~/kept").settings()
    assert requested.storage_dir == Path("/home/somebody/kept")


def test_provider_option_drops_the_configured_model() -> None:
    composition = fake_factories(provider="anthropic", model="claude")
    assert CommandContext(composition, provider="openai").settings().model is None
    assert CommandContext(composition, model="claude-2").settings().provider == "anthropic"


def test_local_model_option_sets_local_model() -> None:
    requested = CommandContext(
        fake_factories(), provider="local", model="qwen2.5-coder-0.5b"
    ).settings()
    assert requested.local_model == "qwen2.5-coder-0.5b"


def test_storage_option_overrides_environment(monkeypatch) -> None:
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", "env")
    assert CommandContext(fake_factories()).settings().storage_dir == Path("env")
    assert CommandContext(fake_factories(), storage="option").settings().storage_dir == Path(
        "option"
    )


def test_unknown_embedded_model_is_rejected() -> None:
    with pytest.raises(UnknownModel, match="no embedded model is called 'odd'") as caught:
        CommandContext(fake_factories(), provider="local", model="odd").settings()
    assert "qwen2.5-coder-1.5b" in str(caught.value.hint)
    own = CommandContext(fake_factories(), provider="local", model="./my.gguf").settings()
    assert own.local_model == "./my.gguf"


def test_unknown_variable_is_a_warning_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PLANWAVE_STORGE_DIR", "PLANWAVE_LIMIT_NODE", "PLANWAVE_QQQQ"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PLANWAVE_DEBUG", "1")
    monkeypatch.setenv("PLANWAVE_MY_KEY", "secret")
    endpoint = ProviderSettings(api_key_env="PLANWAVE_MY_KEY")
    loaded = LoadedSettings(Settings(providers={"mine": endpoint}))
    ctx = CommandContext(replace(fake_factories(), settings=lambda _: loaded))
    ctx.settings()
    ctx.settings()
    assert capsys.readouterr().err.splitlines() == [
        "! PLANWAVE_LIMIT_NODE in the environment is no setting; did you mean PLANWAVE_LIMIT_NODES?",
        "! PLANWAVE_QQQQ in the environment is no setting",
        "! PLANWAVE_STORGE_DIR in the environment is no setting; "
        "did you mean PLANWAVE_STORAGE_DIR?",
    ]


def test_import_options_add_to_the_configured_modules() -> None:
    ctx = CommandContext(fake_factories(node_modules=["a"]), node_modules=["b"])
    ctx.take({"node_modules": ["c"]})
    assert ctx.settings().node_modules == ["a", "b", "c"]
    assert ctx.command_hint("show last") == "planwave show last --import b --import c"
