"""Whether this machine can run an embedded model, and with how many threads.

The values come from the kernel and respect the limits of control groups (v1 and v2), so a container
sees its own quota. A value that cannot be read is unknown and never makes a model unavailable.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planwave.providers.local.model_files import MODEL_FILES

_MAX_THREADS = 8
_SAMPLE_S = 0.2
_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_HOSTED = "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or add an endpoint in planwave.toml"


@dataclass(frozen=True, slots=True)
class Machine:
    """The capacity of the machine; None is unknown.

    Attributes:
        cores: Cores this process may use, a container's quota included.
        idle_cores: The number of them that are idle now.
        free_memory: Bytes that can be allocated without swapping.
        avx2: Whether the processor has AVX2, which the embedded server needs.
    """

    cores: float
    idle_cores: float | None = None
    free_memory: int | None = None
    avx2: bool | None = None


def unfit_reason(memory: int, machine: Machine) -> tuple[str, str] | None:
    """Return why a model with this much memory (bytes) cannot run here, and a hint; None if it can."""
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
    """Return a hint that names the largest model that plans, is smaller, and fits."""
    fitting = [
        file for file in MODEL_FILES.values() if file.plans and file.memory <= min(free, memory - 1)
    ]
    best = max(fitting, key=lambda file: file.memory, default=None)
    if best is None:
        return None
    return f"set PLANWAVE_LOCAL_MODEL={best.name}, which needs {best.memory / 1e9:.1f} GB"


def threads_for(machine: Machine, threads: int | None = None) -> int:
    """Return the number of threads for a model; ``threads`` takes precedence.

    On busy cores fewer threads are faster: the threads synchronize at every layer of the model, so
    one thread on a shared core delays all.
    """
    if threads is not None:
        return threads
    free = machine.cores if machine.idle_cores is None else machine.idle_cores
    reserved = 1 if machine.cores >= 3 else 0
    most = min(_MAX_THREADS, int(machine.cores) - reserved)
    return max(1, min(most, int(free + 0.5)))


def this_machine(*, sample_s: float = 0.0) -> Machine:
    """Return the capacity; with ``sample_s`` measure idle cores over that many seconds."""
    cores = _cores()
    return Machine(
        cores=cores,
        idle_cores=_idle_cores(cores, sample_s) if sample_s else None,
        free_memory=_free_memory(),
        avx2=_has_avx2(_PROC / "cpuinfo"),
    )


def machine_under_load() -> Machine:
    """Return the capacity with the current load; takes 0.2 s."""
    return this_machine(sample_s=_SAMPLE_S)


def _cores() -> float:
    allowed = getattr(os, "sched_getaffinity", None)
    cores = float(len(allowed(0)) if allowed else os.cpu_count() or 1)
    return min([cores, *(quota for group in _control_groups("cpu") for quota in _quota(group))])


def _quota(group: Path) -> Iterator[float]:
    """Yield the CPU quota of a control group in cores; nothing if it has no limit."""
    quota, _, period = _read_text(group / "cpu.max").partition(" ")
    if not quota:
        quota = _read_text(group / "cpu.cfs_quota_us").strip()
        period = _read_text(group / "cpu.cfs_period_us")
    if quota.isdigit() and period.strip().isdigit():
        yield int(quota) / int(period)


def _control_groups(controller: str) -> Iterator[Path]:
    """Yield the control groups of this process (v1 and v2), each before its parent.

    In a container the path may be that of the host; then only the top directory exists.
    """
    paths = {"": "/", controller: "/"}
    for line in _read_text(_PROC / "self" / "cgroup").splitlines():
        _, _, entry = line.partition(":")
        names, _, path = entry.partition(":")
        paths |= {name: path for name in names.split(",") if name in paths}
    for top, path in ((_CGROUP, paths[""]), (_CGROUP / controller, paths[controller])):
        group = Path(path.lstrip("/"))
        yield from (top / each for each in (group, *group.parents))


def _idle_cores(cores: float, seconds: float) -> float | None:
    """Measure the cores that no other program uses.

    The work of this process counts as idle: at the start of a command it loads modules on one core,
    which it leaves to the model a moment later.
    """
    before, own_before = _cpu_ticks(), time.process_time()
    if before is None:
        return _idle_by_load(cores)
    time.sleep(seconds)
    after, own_s = _cpu_ticks(), time.process_time() - own_before
    if after is None or after[1] <= before[1]:
        return _idle_by_load(cores)
    total = after[1] - before[1]
    unused = after[0] - before[0] + own_s * os.sysconf("SC_CLK_TCK")
    return cores * min(unused, total) / total


def _cpu_ticks() -> tuple[int, int] | None:
    """Return the idle and the total ticks of the processor since boot."""
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
    groups = _control_groups("memory")
    available = (size for group in groups for size in _available_memory(group))
    return min([*_machine_memory(), *available], default=None)


def _machine_memory() -> Iterator[int]:
    for line in _read_text(_PROC / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _available_memory(group: Path) -> Iterator[int]:
    """Yield the bytes that a control group can still allocate; nothing if it has no limit."""
    for limit, usage in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, used = _read_text(group / limit).strip(), _read_text(group / usage).strip()
        if most.isdigit() and used.isdigit():
            yield int(most) - int(used) + _reclaimable_memory(group)


def _reclaimable_memory(group: Path) -> int:
    """Return the bytes of cached file pages in a group, which the kernel can reclaim.

    A model file that was just downloaded or verified is cached and counts as used memory.
    """
    pages: dict[str, int] = {}
    for line in _read_text(group / "memory.stat").splitlines():
        name, _, amount = line.partition(" ")
        pages[name] = int(amount) if amount.isdigit() else 0
    kinds = ("inactive_file", "active_file")
    return sum(pages.get(f"total_{kind}", pages.get(kind, 0)) for kind in kinds)


@cache
def _has_avx2(cpuinfo: Path) -> bool | None:
    """Return whether the processor has AVX2; cached, as the file is long on many cores."""
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
