"""A service of agents that is there to be killed: real SDKs, HTTP and tools, with the client of ``crash_child``.

The process runs ``main OPTIONS``: it lives one life as ordered (``AgentOptions`` as JSON), with the
service that ``planwave serve`` composes. The model and the HTTP service are in the process of the test;
``tests/support/recovery/agent_history.py`` is the other end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planwave import bootstrap
from planwave.errors import PlanwaveError
from planwave.executor.options import RunOptions
from planwave.settings import Limits, McpServerSettings, Settings
from tests.support.graph.agent_documents import random_agents
from tests.support.recovery.acts import ACT_LOG
from tests.support.recovery.crash_child import LONGEST_LIFE_S, ChildOptions, CrashClient, live
from tests.support.recovery.crash_points import CrashPoint, crash_at
from tests.support.storage.either_database import Place

MCP_SERVER = Path(__file__).parents[1] / "mcp" / "acting_server.py"
API_KEY = "sk-canary-19"
EDITED = "as a person says"
"""The text of arguments that a person has changed."""
GIVEN = "a person gave it"
"""The result that a person gives of a call that was cut off."""
_EDIT = "edit"


@dataclass(frozen=True, kw_only=True)
class AgentOptions(ChildOptions):
    """What one life is to be like, and where its world is.

    Attributes:
        llm_url: The model, with the API of OpenAI.
        service: ``host:port`` of the HTTP service.
        act_log: The file of acts.
        mcp_marks: Where MCP servers write the ids of their processes.
        answers: The decisions by the kind of the question, ``edit`` for an approval with other arguments;
            a kind that is missing gets any.
    """

    llm_url: str
    service: str
    act_log: str
    mcp_marks: str
    answers: Mapping[str, str] = field(default_factory=dict[str, str])


class AgentClient(CrashClient):
    """Makes executions of agents; changes the arguments of some calls that it approves."""

    fork_chance, revise_chance = 0.7, 0.0
    _order: AgentOptions

    def _random_graph(self) -> tuple[dict[str, Any], RunOptions | None]:
        return random_agents(self._choose, self._order.service), None

    def _answer_to(self, request: Any) -> dict[str, Any]:
        kind, actions = request["kind"], request["actions"]
        if kind == "interrupted":
            actions = [*actions, "run_again"]
        elif request["editable"]:
            actions = [*actions, _EDIT]
        decision = self._order.answers.get(kind) or self._choose.choice(actions)
        if decision == _EDIT:
            return {"decision": "approve", "value": {**request["value"], "text": EDITED}}
        return {"decision": decision, **({"value": GIVEN} if decision == "give_result" else {})}

    async def _retry_or_fork(self, execution_id: str) -> None:
        """Run what failed again, or some agent, or one that is served its calls though it was changed."""
        steps = {"n0": {"data": {"maxSteps": 19}}}
        ways = {
            "retry": lambda: self._service.executions.retry(execution_id),
            "rerun": lambda: self._service.executions.fork(execution_id, rerun=["n0"]),
            "change": lambda: self._service.executions.fork(execution_id, changes=steps),
        }
        with suppress(PlanwaveError):  # nothing of it failed
            made = await ways[self._choose.choice(sorted(ways))]()
            self._facts.write("accepted", made.execution_id)
            await self._follow(made.execution_id, 0)


async def run_child(order: AgentOptions) -> None:
    """Live as ordered."""
    os.environ[ACT_LOG] = order.act_log
    environment = {ACT_LOG: order.act_log, "MARK": order.mcp_marks}
    settings = Settings(
        storage_dir=Path(order.directory),
        database_url=order.database_url,
        openai_api_key=API_KEY,
        openai_base_url=order.llm_url,
        allowed_outbound=[order.service],
        node_modules=["tests.support.recovery.acting_tools"],
        mcp={
            "mcp": McpServerSettings(
                command=sys.executable,
                args=[str(MCP_SERVER)],
                env=environment,
                trust_hints=True,
            )
        },
        limits=Limits(recoveries=order.recoveries, recoveries_per_s=10_000),
    )
    store = crash_at(
        Place(settings.storage_dir, order.database_url).open(), CrashPoint.parse(order.point)
    )
    bootstrap._open_store = lambda *_: store
    await live(bootstrap.open_service(settings), AgentClient, order)


def main() -> None:
    """Live as ordered in the first argument."""
    signal.alarm(2 * LONGEST_LIFE_S)  # a process whose parent is gone does not stay
    asyncio.run(run_child(AgentOptions(**json.loads(sys.argv[1]))))
