"""Whether a machine can run the embedded model, decided on facts that are handed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from planwave.providers import local_fit
from planwave.providers.local_fit import Machine, this_machine, threads_for, unfit_reason

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("machine", "threads"),
    [
        (Machine(cores=2, idle_cores=1.9), 2),
        (Machine(cores=2, idle_cores=1.1), 1),
        (Machine(cores=2, idle_cores=0.0), 1),
        (Machine(cores=2), 2),
        (Machine(cores=1, idle_cores=1.0), 1),
        (Machine(cores=0.5, idle_cores=0.5), 1),
        (Machine(cores=4, idle_cores=4.0), 3),
        (Machine(cores=4, idle_cores=1.2), 1),
        (Machine(cores=64, idle_cores=60.0), 8),
    ],
)
def test_threads_follow_the_idle_cores(machine: Machine, threads: int) -> None:
    assert threads_for(machine) == threads


def test_the_setting_wins_over_the_load() -> None:
    assert threads_for(Machine(cores=2, idle_cores=0.0), wanted=5) == 5


def test_a_machine_with_enough_of_everything_or_of_unknown_size_fits() -> None:
    assert unfit_reason(2 * GB, Machine(cores=2, free_memory=3 * GB, avx2=True)) is None
    assert unfit_reason(2 * GB, Machine(cores=2)) is None


def test_too_little_memory_is_said_in_numbers_with_a_way_out() -> None:
    unfit = unfit_reason(2_500_000_000, Machine(cores=2, free_memory=GB))
    assert unfit is not None
    assert "needs 2.5 GB of free memory, 1.0 GB are free" in unfit[0]
    assert "PLANWAVE_LOCAL_MODEL" in unfit[1]


def test_a_processor_without_avx2_is_said_with_a_way_out() -> None:
    unfit = unfit_reason(1, Machine(cores=2, free_memory=9 * GB, avx2=False))
    assert unfit is not None
    assert "AVX2" in unfit[0]
    assert "OPENAI_API_KEY" in unfit[1]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder that stands in for /proc and the container's limits."""
    monkeypatch.setattr(local_fit, "_PROC", tmp_path)
    monkeypatch.setattr(local_fit, "_CGROUP", tmp_path)
    monkeypatch.setattr(local_fit.os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.setattr(local_fit.platform, "machine", lambda: "x86_64")
    return tmp_path


def test_a_containers_limits_count_and_not_the_machine_below(kernel: Path) -> None:
    (kernel / "cpu.max").write_text("150000 100000\n")
    (kernel / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n")
    (kernel / "memory.max").write_text("4000000000\n")
    (kernel / "memory.current").write_text("3000000000\n")
    (kernel / "memory.stat").write_text("anon 5\ninactive_file 500000000\n")
    (kernel / "cpuinfo").write_text("processor : 0\nflags : fpu avx avx2\n")
    assert this_machine() == Machine(cores=1.5, free_memory=1_500_000_000, avx2=True)


def test_without_limits_the_machines_own_facts_count(kernel: Path) -> None:
    (kernel / "cpu.max").write_text("max 100000\n")
    (kernel / "memory.max").write_text("max\n")
    (kernel / "meminfo").write_text("MemAvailable: 1000 kB\n")
    (kernel / "cpuinfo").write_text("flags : fpu avx\n")
    assert this_machine() == Machine(cores=8, free_memory=1_024_000, avx2=False)


def test_a_kernel_that_tells_nothing_leaves_the_facts_unknown(kernel: Path) -> None:
    assert this_machine() == Machine(cores=8)


def test_idle_cores_are_what_the_processor_did_not_do_while_it_was_watched(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_time(seconds: float) -> None:
        (kernel / "stat").write_text("cpu 30 0 0 160 10 0 0 0 0 0\n")

    (kernel / "stat").write_text("cpu 0 0 0 100 0 0 0 0 0 0\n")
    monkeypatch.setattr(local_fit.time, "sleep", pass_time)
    assert this_machine(sample_s=1.0).idle_cores == 8 * 70 / 100


def test_without_ticks_the_load_average_says_how_many_cores_are_idle(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_fit.os, "getloadavg", lambda: (5.5, 1.0, 1.0))
    assert this_machine(sample_s=1.0).idle_cores == 2.5
