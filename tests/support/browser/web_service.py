"""``planwave serve`` as a process behind an address that stays, with a scripted model.

One service is shared by the browser tests of a process; it has a storage directory of its own. A test
may kill it and start it again, and cut its connections.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.browser.cuttable_proxy import CuttableProxy
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.cli.command_process import read_until, start_command
from tests.support.llm.fake_llm_server import fake_llm_in_thread
from tests.support.processes.forked_process import ForkedProcess
from tests.support.triggers.hook_sender import SECRET

_CONFIGURED = ("PLANWAVE_", "OPENAI_", "ANTHROPIC_")


class WebService:
    """A running service.

    Attributes:
        url: Its address, without a slash at the end; the same after a restart.
        model: What its model says.
        proxy: Cuts and restores its connections.
    """

    def __init__(
        self, directory: Path, model: ScriptedModel, proxy: CuttableProxy, llm_url: str, token: str
    ) -> None:
        self.model = model
        self.proxy = proxy
        self.url = f"http://{proxy.host}"
        self._directory = directory
        self._process: ForkedProcess | None = None
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_CONFIGURED)}
        self._environment = kept | {
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": llm_url,
            "PLANWAVE_ALLOWED_HOSTS": proxy.host,
            "PLANWAVE_NODE_MODULES": "tests.support.browser.shop_tools",
            "PLANWAVE_MODEL_DIR": str(directory / "models"),
            "PLANWAVE_LIMIT_REQUESTS_PER_S": "10000",
            "PLANWAVE_LIMIT_REQUESTS_BURST": "100000",
            "PLANWAVE_LIMIT_EXECUTIONS_PER_MINUTE": "100000",
            "PLANWAVE_SECRETS": json.dumps({"web": {"env": "WEB_SECRET", "hosts": ["127.0.0.1"]}}),
            "WEB_SECRET": SECRET,
            **({"PLANWAVE_TOKEN": token} if token else {}),
        }

    async def start(self, *arguments: str) -> None:
        """Start the process and wait until it listens."""
        with (self._directory / "serve.log").open("a") as log:
            self._process = start_command(
                "serve", "--port", "0", "--json", *arguments,
                cwd=self._directory, env=self._environment, stderr=log.fileno(),
            )  # fmt: skip
        line = await asyncio.to_thread(read_until, self._process.stdout, "\n")
        self.proxy.target_port = urlsplit(json.loads(line)["url"]).port or 0

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End the process; SIGKILL is a crash."""
        assert self._process is not None
        self._process.send_signal(number)
        await asyncio.to_thread(self._process.communicate)
        self.proxy.target_port = 0


@asynccontextmanager
async def web_service(
    directory: Path, *arguments: str, token: str = ""
) -> AsyncGenerator[WebService]:
    """Start a service in a directory, with options of ``planwave serve``, and end it."""
    model = ScriptedModel()
    with fake_llm_in_thread(reply_to=model.reply_to) as llm:
        async with CuttableProxy() as proxy:
            service = WebService(directory, model, proxy, llm.openai_url, token)
            await service.start(*arguments)
            try:
                yield service
            finally:
                await service.stop(signal.SIGKILL)
