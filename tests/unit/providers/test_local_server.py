"""The server program: what it allows, and how it talks to planwave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planwave.providers import local_server

WANTED = {
    "path": "/models/a.gguf",
    "name": "a",
    "slots": 2,
    "context": 4_096,
    "threads": 1,
    "key": "secret",
}


@pytest.fixture
def params(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = SimpleNamespace(
        model=SimpleNamespace(),
        cpuparams=SimpleNamespace(),
        cpuparams_batch=SimpleNamespace(),
        sampling=SimpleNamespace(),
        hostnames=["0.0.0.0"],  # noqa: S104  # must not stay
    )
    fake = SimpleNamespace(CommonParams=lambda: made, Server=lambda params: params)
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)  # type: ignore[arg-type]
    assert local_server._serve(WANTED) is made
    return made


def test_the_server_listens_on_loopback_wants_its_key_and_shows_no_page(params: Any) -> None:
    assert params.hostnames == ["127.0.0.1"]
    assert params.api_keys == ["secret"]
    assert params.cors_origins == "http://127.0.0.1"
    assert params.ui is False
    assert params.offline is True


def test_every_slot_has_the_whole_context_it_was_promised(params: Any) -> None:
    assert params.n_ctx == 2 * 4_096
    assert params.n_parallel == 2
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 1


def test_prompts_are_kept_for_reuse_in_little_memory(params: Any) -> None:
    assert params.cache_prompt is True
    assert params.cache_ram_mib <= 256


def test_a_model_that_cannot_be_loaded_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("print('native noise')\nraise ImportError('no AVX2')\n")
    done = subprocess.run(
        [sys.executable, "-P", str(Path(local_server.__file__))],
        input=json.dumps(WANTED) + "\n",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"error": "ImportError: no AVX2"})
