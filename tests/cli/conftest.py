"""The command called inside this process."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from nnc_core.cli.group import nnc

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """run("demo", "--epochs", 1) gives click's result; exceptions other than exits come through."""

    def call(*arguments: object) -> Result:
        gc.collect()  # the network of the call before, which is part of a cycle
        return CliRunner().invoke(nnc, [str(a) for a in arguments], catch_exceptions=False)

    return call
