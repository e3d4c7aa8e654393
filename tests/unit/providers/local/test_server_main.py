"""The server program: what it allows, and how it talks to planwave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planwave.providers.local import server_main

WANTED = {
    "path": "/models/a.gguf",
    "name": "a",
    "slots": 2,
    "context": 4_096,
    "threads": 1,
    "key": "secret",
    "states": "/models/prompt-state",
}


@pytest.fixture
def params(monkeypatch: pytest.MonkeyPatch) -> Any:
    created = SimpleNamespace(
        model=SimpleNamespace(),
        cpuparams=SimpleNamespace(),
        cpuparams_batch=SimpleNamespace(),
        sampling=SimpleNamespace(),
        hostnames=["0.0.0.0"],  # noqa: S104  # must not stay
    )
    fake = SimpleNamespace(CommonParams=lambda: created, Server=lambda params: params)
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)  # type: ignore[arg-type]
    assert server_main._serve(WANTED) is created
    return created


def test_server_listens_on_loopback_with_key_and_without_page(params: Any) -> None:
    assert params.hostnames == ["127.0.0.1"]
    assert params.api_keys == ["secret"]
    assert params.cors_origins == "http://127.0.0.1"
    assert params.ui is False
    assert params.offline is True


def test_every_slot_has_the_full_context(params: Any) -> None:
    assert params.n_ctx == 2 * 4_096
    assert params.n_parallel == 2
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 1


def test_repetition_penalty_allows_quotes(params: Any) -> None:
    # Shorter runs were punished once: "productionenvironments", "financialmeans".
    assert params.sampling.dry_allowed_length >= 40
    assert params.sampling.dry_penalty_last_n <= 256
    assert params.sampling.dry_multiplier > 0, "saying it again and again is still punished"


def test_calls_without_a_temperature_get_the_most_probable_words(params: Any) -> None:
    assert params.sampling.temp == 0.0


def test_prompt_states_are_saved_in_the_folder_that_was_asked_for(params: Any) -> None:
    assert params.slot_save_path == "/models/prompt-state/"


def test_without_a_folder_no_prompt_state_is_saved(params: Any) -> None:
    del params.slot_save_path
    server_main._serve(WANTED | {"states": ""})
    assert not hasattr(params, "slot_save_path")


def test_prompt_cache_is_small(params: Any) -> None:
    assert params.cache_prompt is True
    assert params.cache_ram_mib <= 256


def test_model_load_error_is_printed_as_json(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("print('native noise')\nraise ImportError('no AVX2')\n")
    done = subprocess.run(
        [sys.executable, "-P", str(Path(server_main.__file__))],
        input=json.dumps(WANTED) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"error": "ImportError: no AVX2"})


def test_server_ends_when_parent_dies_during_loading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "loaded")
    (tmp_path / "xllamacpp.py").write_text(f"""
import threading
from types import SimpleNamespace

def CommonParams():
    names = ("model", "cpuparams", "cpuparams_batch", "sampling")
    return SimpleNamespace(**{{name: SimpleNamespace() for name in names}})

def Server(params):
    open({str(tmp_path / "loaded")!r}).read()
    threading.Thread(target=threading.Event().wait).start()  # like native ones, it never ends
    return SimpleNamespace(listening_address="http://127.0.0.1:1")
""")
    with subprocess.Popen(
        [sys.executable, "-P", str(Path(server_main.__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(tmp_path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(WANTED).encode() + b"\n")
            process.stdin.close()
            process.stdout.close()
            (tmp_path / "loaded").write_text("go on")
            assert process.wait(120) == 0
        finally:
            process.kill()
