"""Launches that threads share: every task once, the same bits for every number of threads, and none in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FallbackWarning
from nnc_core.device import Kernel
from nnc_cpu.threads import pool, system
from nnc_cpu.threads.tasks import TaskKernel
from tests.codegen.test_nests import CASES
from tests.cpu.machine_code.running import kernels, run
from tests.cpu.threads.counting import counted

THREADS = (1, 2, 3, 7)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000, 100_000])
def test_each_task_is_done_once(count: int, threads: int) -> None:
    with nnc.config.using(threads=threads):
        for _ in range(5):
            assert (counted(count, 64) == 1).all()


def test_many_launches_one_after_another() -> None:
    with nnc.config.using(threads=3):
        for count in np.random.default_rng(0).integers(1, 200, 3000):
            assert (counted(int(count), 64) == 1).all()


def test_pauses_are_measured_where_nothing_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call is slow, the second is interrupted: threads look out for SPIN all the same."""
    times = iter([0.0, 20e-6, 5e-3, 5e-3 + 10e-6, 5e-3 + 21e-6, 5e-3 + 35e-6])
    monkeypatch.setattr(pool, "perf_counter", lambda: next(times))
    assert pool.code().spins() == pytest.approx(pool.PAUSES * pool.SPIN / 10e-6, abs=1)


def test_several_threads_launch_at_once() -> None:
    """One of them has the pool, the others go on by themselves."""

    def work(k: int) -> bool:
        with nnc.config.using(threads=1 + k % 4):
            return all((counted(50 * (k % 7) + 1, 64) == 1).all() for _ in range(100))

    with ThreadPoolExecutor(6) as executor:
        assert all(executor.map(work, range(24)))


class Shared(TaskKernel):
    """Another kernel's tasks, as if they took long."""

    def __init__(self, kernel: Kernel) -> None:
        assert isinstance(kernel, TaskKernel)
        self.kernel = kernel

    @property
    def tasks(self):  # type: ignore[no-untyped-def]
        return self.kernel.tasks._replace(most_threads=64)


SOME = CASES[::4]


@cache
def compiled() -> list[Kernel]:
    return kernels([case.nest for case in SOME], "here")


@pytest.mark.parametrize("threads", THREADS)
def test_kernels_give_the_same_bits(threads: int) -> None:
    for case, kernel in zip(SOME, compiled(), strict=True):
        alone, shared = case.copies(), case.copies()
        run(kernel, alone)
        with nnc.config.using(threads=threads):
            run(Shared(kernel), shared)
        for a, b in zip(alone, shared, strict=True):
            assert a.tobytes() == b.tobytes(), case.name


def test_a_system_without_threads_to_give_does_with_what_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool._HERE, "pool", None)
    monkeypatch.setattr(system, "start", lambda function, argument: False)
    with nnc.config.using(threads=3), pytest.warns(FallbackWarning, match="no more than 0 threads"):
        assert (counted(100, 64) == 1).all()


# ---- the default
@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pool._HERE, "default", None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(system, "usable_cores", lambda: 6)
    with nnc.config.using(threads=None):
        yield


@pytest.mark.parametrize(("limit", "threads"), [(None, 6), ("4", 4), ("8", 6), ("3,2", 3), ("0", 6), ("many", 6)])
@pytest.mark.usefixtures("nothing_known")
def test_as_many_threads_as_cores_and_no_more_than_the_environment_says(
        limit: str | None, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert pool.wanted_threads() == threads
    with nnc.config.using(threads=9):
        assert pool.wanted_threads() == 9
    assert pool.wanted_threads() == threads


@pytest.mark.parametrize(("membership", "files", "expected"), [
    ("0::/", {"cpu.max": "150000 100000"}, [1.5]),
    ("0::/", {"cpu.max": "max 100000"}, []),
    ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "400000 100000", "cpu.max": "800000 100000"}, [4, 8]),
    ("3:cpu,cpuacct:/x\n0::/", {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000",
                                "cpu,cpuacct/x/cpu.cfs_period_us": "100000"}, [2]),
    ("3:cpu:/x", {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"}, []),
    ("5:memory:/x", {"memory/x/cpu.max": "1 1"}, []),
    ("nonsense", {}, []),
])
def test_quotas_of_control_groups(membership: str, files: dict[str, str], expected: list[float],
                                  tmp_path: Path) -> None:
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    (tmp_path / "cgroup").write_text(membership + "\n")
    assert list(system.quotas(tmp_path / "cgroup", tmp_path / "groups")) == expected


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert list(system.quotas(tmp_path / "none", tmp_path)) == []


# ---- processes of their own
BEGIN = """
import os, sys, time, warnings
import numpy as np
import nnc_core as nnc
from nnc_cpu.threads import pool
from tests.cpu.threads.counting import counted
"""


def run_alone(text: str, *before: str) -> None:
    """In a process of its own, which ends well; `before`: a command that starts it."""
    done = subprocess.run([*before, sys.executable, "-c", BEGIN + textwrap.dedent(text)], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_small_launches_start_no_threads() -> None:
    run_alone("""
        nnc.config.threads = 4
        counted(1, 64)
        counted(100, 1)
        assert pool._HERE.pool is None or pool._HERE.pool.started == 0
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_children_of_a_fork_have_threads_of_their_own() -> None:
    run_alone("""
        nnc.config.threads = 3
        assert (counted(1000, 64) == 1).all()
        first = pool.pool()
        warnings.simplefilter("ignore")  # Python warns of forks beside threads
        for k in range(3):
            child = os.fork()
            if not child:
                try:
                    assert (counted(1000, 64) == 1).all()
                    assert pool.pool() is not first and pool.pool().started == 2
                    os._exit(0)
                finally:
                    os._exit(1)
            assert (counted(1000, 64) == 1).all()
            assert os.waitpid(child, 0)[1] == 0
        assert pool.pool() is first
    """)


def test_a_process_ends_while_threads_sleep() -> None:
    run_alone("""
        nnc.config.threads = 4
        counted(1000, 64)
        time.sleep(0.1)
    """)


def test_a_process_ends_while_another_thread_launches() -> None:
    run_alone("""
        import threading
        nnc.config.threads = 4
        def work():
            while True:
                counted(1000, 64)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
    """)


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such limit, or another way to set it")
def test_threads_have_room_for_kernels_whatever_the_limit() -> None:
    """The caller is a thread with a large stack; those of the pool had what the limit says."""
    run_alone("""
        import threading
        def work():
            nnc.config.threads = 3
            a = nnc.ones((600, 600))
            for _ in range(20):
                assert (np.asarray(nnc.jit(nnc.matmul)(a, a)) == 600).all()
            b = nnc.ones((600, 600), dtype="bfloat16")
            for _ in range(20):
                assert (np.asarray(nnc.jit(nnc.matmul)(b, b)) == 600).all()
            done.append(pool.pool().started)
        done = []
        threading.stack_size(1 << 24)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert done == [2], done
    """, "sh", "-c", 'ulimit -s 256 && exec "$@"', "sh")
