"""The kit's cases of programs on several streams find streams that do not wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nnc_core.builtin import FLAVOURS, StrictDevice
from nnc_core.builtin.queues import QueueStream
from nnc_core.stacks import Stack, make_stack
from nnc_plugins.conformance import test_side_streams as kit


@pytest.fixture
def stack() -> Iterator[Stack]:
    device = StrictDevice(next(flavour for flavour in FLAVOURS if flavour.queues))
    device.streams = 3
    yield make_stack(device)
    device.close()


def test_streams_that_wait_pass(stack: Stack) -> None:
    kit.test_what_waits_for_a_stream_that_is_held_is_held(stack)


def test_a_stream_that_does_not_wait_is_found(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueueStream, "wait", lambda self, event: None)
    with pytest.raises(AssertionError):
        kit.test_what_waits_for_a_stream_that_is_held_is_held(stack)
