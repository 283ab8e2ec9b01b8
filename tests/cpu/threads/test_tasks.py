"""Addresses of buffers, and how much work is worth how many threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_cpu.addresses import address_of
from nnc_cpu.memory import reserve
from nnc_cpu.threads.tasks import tasks_of
from tests.cpu.threads.counting import pieces


def read_only() -> Any:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


BUFFERS = {
    "array": lambda: np.zeros(5, np.uint8), "block": lambda: reserve(100), "view": lambda: reserve(100)[64:80],
    "empty": lambda: np.zeros(0, np.uint8), "scalar": lambda: np.zeros(()), "read-only": read_only,
    "gaps": lambda: np.zeros((4, 6))[1:, ::2], "borrowed": lambda: np.frombuffer(b"borrowed", np.uint8),
}  # fmt: skip


@pytest.mark.parametrize("name", BUFFERS)
def test_addresses(name: str) -> None:
    buffer = BUFFERS[name]()
    assert address_of(buffer) == buffer.__array_interface__["data"][0]


def test_the_address_of_a_mapped_file(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "file", np.float32, "w+", shape=(8,))
    assert address_of(mapped) == mapped.__array_interface__["data"][0]


@pytest.mark.parametrize(("total", "seconds", "threads"), [
    (1000, 1e-6, 1), (1000, 59e-6, 1), (1000, 61e-6, 2), (1000, 1.0, 1000), (3, 1.0, 3), (1, 1.0, 1), (0, 0.0, 1)])
def test_as_many_threads_as_the_time_is_worth(total: int, seconds: float, threads: int) -> None:
    assert tasks_of(None, 0, 0, total, seconds).most_threads == threads


@pytest.mark.parametrize(("count", "expected"), [
    (1, [1]), (5, [1] * 5), (16, [4, 3, 2, 1, 1, 1, 1, 1, 1, 1]), (1600, [400, 300, 225, 168, 126])])
def test_pieces_get_smaller_as_fewer_tasks_are_left(count: int, expected: list[int]) -> None:
    """Whoever takes them, so that threads end together."""
    with nnc.config.using(threads=2):
        found = pieces(count, 2)
    assert sum(found) == count
    assert found[: len(expected)] == expected
    assert found[-1] <= max(1, count // 128)
    assert sorted(found[:-1], reverse=True) == found[:-1]


def test_a_single_thread_takes_all_at_once() -> None:
    with nnc.config.using(threads=1):
        assert pieces(100, 64) == [100]
