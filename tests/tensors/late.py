"""A device that fails later than it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import nnc_core as nnc
from nnc_core.codegen.interpret import interpret
from nnc_core.stacks import stack_for


class BrokenError(Exception):
    """What a kernel may come to."""


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A device that works later, and fails at each tanh."""

    def broken(nest: Any, buffers: Any) -> None:
        if nest.name == "tanh":
            raise BrokenError("the kernel came to nothing")
        interpret(nest, buffers)

    monkeypatch.setattr("nnc_core.builtin.strict.interpret", broken)
    with nnc.use_device("strict-async:0"):
        yield "strict-async:0"
    stack_for("strict-async:0").device.default_stream.synchronize()
