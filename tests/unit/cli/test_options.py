from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planwave.cli.options import CommandContext, command_context
from planwave.errors import UnknownModel
from tests.support.cli.fake_factories import fake_factories


def test_options_lie_over_settings() -> None:
    composition = fake_factories(provider="anthropic", model="claude")
    plain = CommandContext(composition).settings()
    assert (plain.provider, plain.model, plain.storage_dir) == (
        "anthropic",
        "claude",
        Path("storage"),
    )
    asked = CommandContext(composition, storage="there", provider="openai").settings()
    assert (asked.provider, asked.storage_dir) == ("openai", Path("there"))


def test_a_storage_below_the_home_directory_is_there_and_an_empty_name_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    asked = CommandContext(fake_factories(), storage="~/kept").settings()
    assert asked.storage_dir == Path("/home/somebody/kept")
    ctx = SimpleNamespace(obj=CommandContext(fake_factories()))
    assert command_context(cast(Any, ctx), False, "").settings().storage_dir == Path("storage")


def test_another_provider_does_not_inherit_the_model_of_the_settings() -> None:
    composition = fake_factories(provider="anthropic", model="claude")
    assert CommandContext(composition, provider="openai").settings().model is None
    assert CommandContext(composition, model="claude-2").settings().provider == "anthropic"


def test_a_model_of_the_embedded_provider_is_the_one_that_gets_fetched() -> None:
    asked = CommandContext(
        fake_factories(), provider="local", model="qwen2.5-coder-0.5b"
    ).settings()
    assert asked.local_model == "qwen2.5-coder-0.5b"


def test_the_first_place_is_the_environment_the_second_the_option(monkeypatch) -> None:
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", "env")
    assert CommandContext(fake_factories()).settings().storage_dir == Path("env")
    assert CommandContext(fake_factories(), storage="option").settings().storage_dir == Path(
        "option"
    )


def test_an_embedded_model_nobody_knows_is_said_so_before_anything_is_fetched() -> None:
    with pytest.raises(UnknownModel, match="no embedded model is called 'odd'") as caught:
        CommandContext(fake_factories(), provider="local", model="odd").settings()
    assert "qwen2.5-coder-1.5b" in str(caught.value.hint)
    own = CommandContext(fake_factories(), provider="local", model="./my.gguf").settings()
    assert own.local_model == "./my.gguf"
