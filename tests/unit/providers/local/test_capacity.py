"""Whether a machine can run the embedded model, decided on facts that are handed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from planwave.providers.local import capacity
from planwave.providers.local.capacity import Machine, this_machine, threads_for, unfit_reason

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
        (Machine(cores=2.5, idle_cores=2.5), 2),
        (Machine(cores=4, idle_cores=4.0), 3),
        (Machine(cores=4, idle_cores=1.2), 1),
        (Machine(cores=64, idle_cores=60.0), 8),
    ],
)
def test_threads_follow_idle_cores(machine: Machine, threads: int) -> None:
    assert threads_for(machine) == threads


def test_thread_setting_overrides_idle_cores() -> None:
    assert threads_for(Machine(cores=2, idle_cores=0.0), threads=5) == 5


def test_sufficient_or_unknown_machine_fits() -> None:
    assert unfit_reason(2 * GB, Machine(cores=2, free_memory=3 * GB, avx2=True)) is None
    assert unfit_reason(2 * GB, Machine(cores=2)) is None


def test_insufficient_memory_is_reported_with_hint() -> None:
    unfit = unfit_reason(2_500_000_000, Machine(cores=2, free_memory=GB))
    assert unfit is not None
    assert "needs 2.5 GB of free memory, 1.0 GB are free" in unfit[0]
    assert "PLANWAVE_LOCAL_MODEL" in unfit[1]


@pytest.mark.parametrize(
    ("free_gb", "way_out"),
    [
        (2.4, "PLANWAVE_LOCAL_MODEL=qwen2.5-coder-0.5b, which needs 1.0 GB"),
        (0.9, "OPENAI_API_KEY"),
    ],
)
def test_hint_names_only_a_fitting_planning_model(free_gb: float, way_out: str) -> None:
    unfit = unfit_reason(2_500_000_000, Machine(cores=2, free_memory=int(free_gb * GB)))
    assert unfit is not None
    assert way_out in unfit[1]
    assert "smollm2" not in unfit[1]


def test_hint_does_not_name_the_same_model() -> None:
    unfit = unfit_reason(1_000_000_000, Machine(cores=2, free_memory=int(0.9 * GB)))
    assert unfit is not None
    assert "0.5b" not in unfit[1]


def test_missing_avx2_is_reported_with_hint() -> None:
    unfit = unfit_reason(1, Machine(cores=2, free_memory=9 * GB, avx2=False))
    assert unfit is not None
    assert "AVX2" in unfit[0]
    assert "OPENAI_API_KEY" in unfit[1]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder that stands in for /proc and the container's limits."""
    monkeypatch.setattr(capacity, "_PROC", tmp_path)
    monkeypatch.setattr(capacity, "_CGROUP", tmp_path)
    monkeypatch.setattr(capacity.os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.setattr(capacity.platform, "machine", lambda: "x86_64")
    return tmp_path


def test_container_limits_override_machine_size(kernel: Path) -> None:
    (kernel / "cpu.max").write_text("150000 100000\n")
    (kernel / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n")
    (kernel / "memory.max").write_text("4000000000\n")
    (kernel / "memory.current").write_text("3000000000\n")
    (kernel / "memory.stat").write_text("anon 5\ninactive_file 400000000\nactive_file 100000000\n")
    (kernel / "cpuinfo").write_text("processor : 0\nflags : fpu avx avx2\n")
    assert this_machine() == Machine(cores=1.5, free_memory=1_500_000_000, avx2=True)


def put(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_limits_of_parent_cgroups_apply(kernel: Path) -> None:
    put(kernel / "self", cgroup="0::/app.slice/planwave.service")
    put(kernel / "app.slice", cpu__max="300000 100000", memory__max="max", memory__current="9")
    put(
        kernel / "app.slice" / "planwave.service",
        cpu__max="max 100000",
        memory__max="2000000000",
        memory__current="500000000",
    )
    assert this_machine() == Machine(cores=3, free_memory=1_500_000_000)


V1 = "9:name=systemd:/x\n4:memory:{path}\n2:cpu,cpuacct:{path}\n1:cpuset:/"


@pytest.mark.parametrize("place", ["docker/abc", "."])
def test_cgroup_v1_limits_apply(kernel: Path, place: str) -> None:
    put(kernel / "self", cgroup=V1.format(path="/docker/abc"))
    put(kernel / "cpu" / place, cpu__cfs_quota_us="250000", cpu__cfs_period_us="100000")
    put(
        kernel / "memory" / place,
        memory__limit_in_bytes="3000000000",
        memory__usage_in_bytes="2000000000",
        memory__stat="inactive_file 1\ntotal_inactive_file 300\ntotal_active_file 20",
    )
    assert this_machine() == Machine(cores=2.5, free_memory=1_000_000_320)


def test_cgroup_v1_without_limits_uses_machine_size(kernel: Path) -> None:
    put(kernel / "self", cgroup=V1.format(path="/"))
    put(kernel / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    put(
        kernel / "memory",
        memory__limit_in_bytes="9223372036854771712",
        memory__usage_in_bytes="2000000000",
    )
    put(kernel, meminfo="MemAvailable: 1000 kB")
    assert this_machine() == Machine(cores=8, free_memory=1_024_000)


def test_without_limits_machine_size_applies(kernel: Path) -> None:
    (kernel / "cpu.max").write_text("max 100000\n")
    (kernel / "memory.max").write_text("max\n")
    (kernel / "meminfo").write_text("MemAvailable: 1000 kB\n")
    (kernel / "cpuinfo").write_text("flags : fpu avx\n")
    assert this_machine() == Machine(cores=8, free_memory=1_024_000, avx2=False)


def test_unreadable_kernel_files_leave_facts_unknown(kernel: Path) -> None:
    assert this_machine() == Machine(cores=8)


@pytest.mark.parametrize(("own_s", "idle"), [(0.0, 70), (0.2, 90), (0.4, 100)])
def test_idle_cores_are_measured_and_own_work_leaves_them_idle(
    own_s: float, idle: int, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [0.0]

    def pass_time(seconds: float) -> None:
        (kernel / "stat").write_text("cpu 30 0 0 160 10 0 0 0 0 0\n")
        own[0] += own_s

    (kernel / "stat").write_text("cpu 0 0 0 100 0 0 0 0 0 0\n")
    monkeypatch.setattr(capacity.time, "sleep", pass_time)
    monkeypatch.setattr(capacity.time, "process_time", lambda: own[0])
    monkeypatch.setattr(capacity.os, "sysconf", {"SC_CLK_TCK": 100}.__getitem__)
    assert this_machine(sample_s=1.0).idle_cores == 8 * idle / 100


def test_idle_cores_fall_back_to_load_average(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity.os, "getloadavg", lambda: (5.5, 1.0, 1.0))
    assert this_machine(sample_s=1.0).idle_cores == 2.5


def test_idle_cores_are_unknown_without_sources(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unobtainable() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(capacity.os, "getloadavg", unobtainable)
    assert this_machine(sample_s=1.0).idle_cores is None
