"""Whether this machine can run an embedded model, and with how many threads.

Facts are read from the kernel where it gives them; a fact that cannot be read never stands in the
way. Containers are seen as they are limited, not as the machine below them is.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

_MOST_THREADS = 8
_SAMPLE_S = 0.2
_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


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
            "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or add an endpoint in planwave.toml",
        )
    if machine.free_memory is not None and machine.free_memory < memory:
        return (
            f"the embedded model needs {memory / 1e9:.1f} GB of free memory, "
            f"{machine.free_memory / 1e9:.1f} GB are free",
            "free some memory, or set PLANWAVE_LOCAL_MODEL=qwen2.5-coder-0.5b, which needs 1 GB",
        )
    return None


def threads_for(machine: Machine, wanted: int | None = None) -> int:
    """Give the number of threads to compute with; ``wanted`` wins.

    On cores that others use, fewer threads are faster: the threads wait for each other at every
    layer, so the one that has to share its core holds up all.
    """
    if wanted is not None:
        return wanted
    free = machine.cores if machine.idle_cores is None else machine.idle_cores
    spared = 1 if machine.cores > 2 else 0
    most = min(_MOST_THREADS, int(machine.cores) - spared)
    return max(1, min(most, int(free + 0.5)))


def this_machine(*, sample_s: float = 0.0) -> Machine:
    """Read the facts; with ``sample_s`` also how many cores are idle, watching that many seconds."""
    cores = _cores()
    return Machine(
        cores=cores,
        idle_cores=_idle_cores(cores, sample_s) if sample_s else None,
        free_memory=_free_memory(),
        avx2=_has_avx2(),
    )


def busy_machine() -> Machine:
    """Read the facts together with the load of this moment; takes a fifth of a second."""
    return this_machine(sample_s=_SAMPLE_S)


def _cores() -> float:
    allowed = getattr(os, "sched_getaffinity", None)
    cores = float(len(allowed(0)) if allowed else os.cpu_count() or 1)
    quota, _, period = _text(_CGROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        cores = min(cores, int(quota) / int(period))
    return cores


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
    words = _text(_PROC / "stat").partition("\n")[0].split()
    if len(words) < 6 or words[0] != "cpu":
        return None
    ticks = [int(word) for word in words[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _idle_by_load(cores: float) -> float | None:
    if not hasattr(os, "getloadavg"):
        return None
    return max(0.0, cores - os.getloadavg()[0])


def _free_memory() -> int | None:
    free = [amount for amount in (_machine_memory(), _container_memory()) if amount is not None]
    return min(free, default=None)


def _machine_memory() -> int | None:
    for line in _text(_PROC / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container_memory() -> int | None:
    most, used = _text(_CGROUP / "memory.max").strip(), _text(_CGROUP / "memory.current").strip()
    if not (most.isdigit() and used.isdigit()):
        return None
    kept = 0  # file pages the kernel gives back when asked
    for line in _text(_CGROUP / "memory.stat").splitlines():
        if line.startswith("inactive_file "):
            kept = int(line.split()[1])
    return int(most) - int(used) + kept


def _has_avx2() -> bool | None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    for line in _text(_PROC / "cpuinfo").splitlines():
        if line.startswith("flags"):
            return "avx2" in line.split()
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
