"""Whether this machine can run an embedded model, and with how many threads.

Facts are read from the kernel where it gives them; a fact that cannot be read never stands in the
way. Containers and services are seen as their control groups limit them, in both layouts of these,
not as the machine below them is.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planwave.providers.local.catalog import MODEL_FILES

_MOST_THREADS = 8
_SAMPLE_S = 0.2
_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_HOSTED = "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or add an endpoint in planwave.toml"


@dataclass(frozen=True, slots=True)
class Machine:
    """What is known of the machine; None is unknown.

    Attributes:
        cores: Cores this process may use, a container's quota included.
        idle_cores: How many of them have nothing to do right now.
        free_memory: Bytes that can be taken without swapping.
        avx2: Whether the processor can run the embedded server's code.
    """

    cores: float
    idle_cores: float | None = None
    free_memory: int | None = None
    avx2: bool | None = None


def unfit_reason(memory: int, machine: Machine) -> tuple[str, str] | None:
    """Give why a model that takes this much memory (bytes) cannot run here, and what to do.

    None where nothing speaks against it.
    """
    if machine.avx2 is False:
        return (
            "this processor has no AVX2, which the embedded model server needs",
            _HOSTED,
        )
    if machine.free_memory is not None and machine.free_memory < memory:
        return (
            f"the embedded model needs {memory / 1e9:.1f} GB of free memory, "
            f"{machine.free_memory / 1e9:.1f} GB are free",
            f"free some memory, or {_lighter(memory, machine.free_memory) or _HOSTED}",
        )
    return None


def _lighter(memory: int, free: int) -> str | None:
    """Name the largest model that can plan, takes less than this, and fits."""
    fitting = [
        file for file in MODEL_FILES.values() if file.plans and file.memory <= min(free, memory - 1)
    ]
    best = max(fitting, key=lambda file: file.memory, default=None)
    if best is None:
        return None
    return f"set PLANWAVE_LOCAL_MODEL={best.name}, which needs {best.memory / 1e9:.1f} GB"


def threads_for(machine: Machine, wanted: int | None = None) -> int:
    """Give the number of threads to compute with; ``wanted`` wins.

    On cores that others use, fewer threads are faster: the threads wait for each other at every
    layer, so the one that has to share its core holds up all.
    """
    if wanted is not None:
        return wanted
    free = machine.cores if machine.idle_cores is None else machine.idle_cores
    spared = 1 if machine.cores >= 3 else 0
    most = min(_MOST_THREADS, int(machine.cores) - spared)
    return max(1, min(most, int(free + 0.5)))


def this_machine(*, sample_s: float = 0.0) -> Machine:
    """Read the facts; with ``sample_s`` also how many cores are idle, watching that many seconds."""
    cores = _cores()
    return Machine(
        cores=cores,
        idle_cores=_idle_cores(cores, sample_s) if sample_s else None,
        free_memory=_free_memory(),
        avx2=_has_avx2(_PROC / "cpuinfo"),
    )


def machine_under_load() -> Machine:
    """Read the facts together with the load of this moment; takes a fifth of a second."""
    return this_machine(sample_s=_SAMPLE_S)


def _cores() -> float:
    allowed = getattr(os, "sched_getaffinity", None)
    cores = float(len(allowed(0)) if allowed else os.cpu_count() or 1)
    return min([cores, *(quota for group in _control_groups("cpu") for quota in _quota(group))])


def _quota(group: Path) -> Iterator[float]:
    """Give the cores a control group may use, nothing where it is not limited."""
    quota, _, period = _read_text(group / "cpu.max").partition(" ")
    if not quota:
        quota = _read_text(group / "cpu.cfs_quota_us").strip()
        period = _read_text(group / "cpu.cfs_period_us")
    if quota.isdigit() and period.strip().isdigit():
        yield int(quota) / int(period)


def _control_groups(controller: str) -> Iterator[Path]:
    """Give the control groups this process is in, each before the one around it, in both layouts.

    In a container the path may be that of the machine below; then only the top is there.
    """
    paths = {"": "/", controller: "/"}
    for line in _read_text(_PROC / "self" / "cgroup").splitlines():
        _, _, place = line.partition(":")
        names, _, path = place.partition(":")
        paths |= {name: path for name in names.split(",") if name in paths}
    for top, path in ((_CGROUP, paths[""]), (_CGROUP / controller, paths[controller])):
        group = Path(path.lstrip("/"))
        yield from (top / each for each in (group, *group.parents))


def _idle_cores(cores: float, seconds: float) -> float | None:
    before = _cpu_ticks()
    if before is None:
        return _idle_by_load(cores)
    time.sleep(seconds)
    after = _cpu_ticks()
    if after is None or after[1] <= before[1]:
        return _idle_by_load(cores)
    return cores * (after[0] - before[0]) / (after[1] - before[1])


def _cpu_ticks() -> tuple[int, int] | None:
    """Give the idle and all ticks of the processor since the start."""
    words = _read_text(_PROC / "stat").partition("\n")[0].split()
    if len(words) < 6 or words[0] != "cpu":
        return None
    ticks = [int(word) for word in words[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _idle_by_load(cores: float) -> float | None:
    try:
        return max(0.0, cores - os.getloadavg()[0])
    except (AttributeError, OSError):
        return None


def _free_memory() -> int | None:
    left = (amount for group in _control_groups("memory") for amount in _memory_left_in(group))
    return min([*_machine_memory(), *left], default=None)


def _machine_memory() -> Iterator[int]:
    for line in _read_text(_PROC / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _memory_left_in(group: Path) -> Iterator[int]:
    """Give the bytes a control group still lets its processes take, nothing without a limit."""
    for limit, usage in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, used = _read_text(group / limit).strip(), _read_text(group / usage).strip()
        if most.isdigit() and used.isdigit():
            yield int(most) - int(used) + _reclaimable_memory(group)


def _reclaimable_memory(group: Path) -> int:
    """Give the bytes of file pages in a group, which the kernel takes back when asked.

    A model file that was just fetched or checked is among them, and is counted as used.
    """
    pages: dict[str, int] = {}
    for line in _read_text(group / "memory.stat").splitlines():
        name, _, amount = line.partition(" ")
        pages[name] = int(amount) if amount.isdigit() else 0
    kinds = ("inactive_file", "active_file")
    return sum(pages.get(f"total_{kind}", pages.get(kind, 0)) for kind in kinds)


@cache
def _has_avx2(cpuinfo: Path) -> bool | None:
    """Say what never changes once: with many cores the file takes long to read."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    for line in _read_text(cpuinfo).splitlines():
        if line.startswith("flags"):
            return "avx2" in line.split()
    return None


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
