"""What a flow adds to the time of the first token of a provider, through ``/v1/chat/completions``.

    python bench/first_token.py [--requests 200] [--proxy PYTHON]

The provider (``tests/support/llm/fake_llm_server.py``), the service and the client are a process each; requests
go to the provider and to the service in turn, on connections that are kept. ``--proxy`` names a Python with
``litellm[proxy]``, whose proxy is measured beside them. Prints milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.support.llm.fake_llm_server import FakeLLMServer, TextReply  # noqa: E402

MODEL = "gpt-5.6-luna"
_FLOW: dict[str, Any] = {
    "nodes": [{"id": "ask", "type": "user_input"}, {"id": "answer", "type": "agent"}],
    "edges": [
        {
            "source": "ask",
            "sourceHandle": "message",
            "target": "answer",
            "targetHandle": "userPrompt",
            "data": {"channel": "flow"},
        },
        {
            "source": "ask",
            "sourceHandle": "extras",
            "target": "answer",
            "targetHandle": "caller",
            "data": {"channel": "flow"},
        },
    ],
}
_WARM_UP = 10


async def serve_provider() -> None:
    """Answer every request with a few words, at once; print the address."""
    async with FakeLLMServer(reply_to=lambda _: TextReply("one two three four", chunks=4)) as llm:
        print(llm.openai_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def process(*command: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program until the block ends."""
    running = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **env},
    )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


@contextmanager
def planwave(provider: str, directory: str, *, concurrency: int = 16) -> Iterator[tuple[str, int]]:
    """Serve the flow as a model; yield the address of the API and the id of the process."""
    config = Path(directory) / "planwave.toml"
    config.write_text(
        f'[providers.openai]\nkind = "openai"\nbase_url = "{provider}"\n'
        f'api_key_env = "OPENAI_API_KEY"\nmax_concurrency = {concurrency}\n',
        "utf-8",
    )
    env = {
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": "sk-test",
        "PLANWAVE_LIMIT_CONCURRENT_EXECUTIONS": "1000",
        "PLANWAVE_STORAGE_DIR": directory,
        "PLANWAVE_LIMIT_REQUESTS_BURST": "1000000",
        "PLANWAVE_LIMIT_REQUESTS_PER_S": "100000",
        "PLANWAVE_LIMIT_EXECUTIONS_PER_MINUTE": "1000000",
    }
    program = "from planwave.main import main; main()"
    command = (
        sys.executable,
        "-c",
        program,
        "serve",
        "--port",
        "0",
        "--json",
        "--config",
        str(config),
    )
    with process(*command, **env) as running:
        assert running.stdout is not None
        url = json.loads(running.stdout.readline())["url"]
        made = httpx2.post(f"{url}/api/flows", json={"name": MODEL, "graph": _FLOW}).json()
        path = f"/api/flows/{made['plan_id']}/publication"
        httpx2.put(f"{url}{path}", json={"model": True}).raise_for_status()
        yield f"{url}/v1", running.pid


@contextmanager
def litellm(
    python: str, provider: str, directory: str, port: int = 18_471
) -> Iterator[tuple[str, int]]:
    """Serve the provider through LiteLLM's proxy; yield the address of its API and the id of the process."""
    settings = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": f"openai/{MODEL}",
                    "api_base": provider,
                    "api_key": "sk-test",
                },
            }
        ]
    }
    config = Path(directory) / "litellm.json"
    config.write_text(json.dumps(settings), "utf-8")
    program = str(Path(python).with_name("litellm"))
    # Without a key of its own, and without asking for the prices of models: all is on this machine.
    env = {
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    command = (program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1")
    with process(*command, **env) as running:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                httpx2.get(f"{url}/health/liveliness").raise_for_status()
                break
            except httpx2.HTTPError:
                time.sleep(0.5)
        yield f"{url}/v1", running.pid


def first_token_ms(client: httpx2.Client, url: str) -> float:
    """Return the time from a request to the first text of its answer."""
    body = {
        "model": MODEL,
        "stream": True,
        "messages": [{"role": "user", "content": "Count."}],
    }
    headers = {"Authorization": "Bearer sk-test"}
    began = time.perf_counter()
    found = 0.0
    with client.stream("POST", f"{url}/chat/completions", json=body, headers=headers) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if found or not line.startswith("data: {"):
                continue
            choices = json.loads(line[6:])["choices"]
            if choices and choices[0]["delta"].get("content"):
                found = time.perf_counter() - began
    return found * 1_000


def report(name: str, times: list[float], floor: float | None = None) -> None:
    """Print one line."""
    ordered = sorted(times)
    median, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    added = "" if floor is None else f"  added at the median {median - floor:6.2f}"
    print(f"{name:<10} median {median:6.2f}  p99 {p99:7.2f}{added}")


def main() -> None:
    """Measure all in turn."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--proxy", help="a Python with litellm[proxy]")
    parser.add_argument("--provider", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.provider:
        asyncio.run(serve_provider())
        return
    with ExitStack() as opened:
        directory = opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-token-"))
        provider = opened.enter_context(process(sys.executable, __file__, "--provider"))
        assert provider.stdout is not None
        floor = provider.stdout.readline().strip()
        urls = {"provider": floor, "planwave": opened.enter_context(planwave(floor, directory))[0]}
        if chosen.proxy:
            urls["litellm"] = opened.enter_context(litellm(chosen.proxy, floor, directory))[0]
        client = opened.enter_context(httpx2.Client(timeout=60, trust_env=False))
        times: dict[str, list[float]] = {name: [] for name in urls}
        for number in range(chosen.requests + _WARM_UP):
            for name, url in urls.items():
                taken = first_token_ms(client, url)
                if number >= _WARM_UP:
                    times[name].append(taken)
    for name, found in times.items():
        report(name, found, None if name == "provider" else statistics.median(times["provider"]))


if __name__ == "__main__":
    main()
