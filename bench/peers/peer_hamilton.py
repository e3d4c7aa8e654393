"""Hamilton's AsyncDriver: functions made from the graph; parameter names are dependencies."""

from __future__ import annotations

from importlib.metadata import version as version_of

from hamilton import async_driver, telemetry
from hamilton.ad_hoc_utils import create_temporary_module

telemetry.disable_telemetry()
NAME = "hamilton"
MODE = "eager"


def version():
    return "apache-hamilton " + version_of("apache-hamilton")


async def build(dag, body):
    source = []
    for n in dag.nodes:
        deps = dag.deps[n]
        source.append(
            f"async def {n}({', '.join(d + ': int' for d in deps)}) -> int:\n"
            f"    return await BODY('{n}', [{', '.join(deps)}])\n"
        )
    names = {"BODY": body, "__name__": "bench_functions"}
    exec("\n".join(source), names)
    module = create_temporary_module(*(names[n] for n in dag.nodes))
    return await async_driver.Builder().with_modules(module).build(), dag.sinks


async def run(built):
    driver, sinks = built
    await driver.execute(sinks)
