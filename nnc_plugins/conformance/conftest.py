"""The device under test, the seed of what is sampled, and the failures that its author expects."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from nnc_core.base.config import config as settings
from nnc_core.base.errors import Error
from nnc_core.device import Device
from nnc_core.stacks import Stack, plugin_manager, stack_for
from nnc_core.values.modes import use_device
from nnc_plugins.conformance.ahead import Ahead

HERE = Path(__file__).parent
STACK, SEED = pytest.StashKey[Stack](), pytest.StashKey[int]()
UNMATCHED = pytest.StashKey[list[str]]()


class NoDeviceError(Exception):
    """There is nothing to test."""


def opened(config: pytest.Config) -> Stack:
    """The layers on the device that --nnc-device names, opened at the first call; NoDeviceError if it cannot be."""
    if STACK not in config.stash:
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # other plugins' faults are no failure of this device
            config.stash[STACK] = _open(config.getoption("--nnc-device"))
    return config.stash[STACK]


def _open(id: str) -> Stack:
    try:
        stack = stack_for(id)
    except Error as error:
        plugins = "\n".join(f"  {record}" for record in plugin_manager().records)
        raise NoDeviceError(f"{error}\nplugins:\n{plugins or '  none'}") from error
    if stack.device.spec.kind == "null":
        raise NoDeviceError(f"{id} counts and computes nothing: there is no result to check; "
                            "take strict:0 or a real device")
    return stack


def chosen_seed(config: pytest.Config) -> int:
    """The seed of NNC_TEST_SEED: a number ("random" draws one), 0 without it."""
    if SEED not in config.stash:
        wanted = os.environ.get("NNC_TEST_SEED", "0")
        config.stash[SEED] = random.SystemRandom().randrange(2**32) if wanted == "random" else int(wanted)
    return config.stash[SEED]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: the cases that a sample leaves out")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    mine = [item for item in items if HERE in item.path.parents]
    if mine:
        try:
            opened(config)
        except NoDeviceError as error:
            pytest.exit(f"nnc conformance: {error}", returncode=4)
    for item in mine:
        # A host fallback is announced in the summary of warnings and is no failure.
        item.add_marker(pytest.mark.filterwarnings("default::nnc_core.base.errors.FallbackWarning"))
    expected = _expected_failures(config.getoption("--nnc-xfails"))
    config.stash[UNMATCHED] = [name for name in expected if not any(name in item.nodeid for item in mine)]
    for item in mine:
        named = [name for name in expected if name in item.nodeid]
        if named:
            item.add_marker(pytest.mark.xfail(reason=f"{named[0]!r} is expected to fail"))


def _expected_failures(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise pytest.UsageError(f"--nnc-xfails: {error}") from None
    return [name for line in lines if (name := line.partition("#")[0].strip())]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    try:
        spec, seed = opened(config).device.spec, chosen_seed(config)
    except NoDeviceError:
        return  # the run has said so
    terminalreporter.line(f"nnc conformance of {spec.id} ({spec.name}); samples drawn with seed {seed}: "
                          f"NNC_TEST_SEED={seed} repeats them, -m \"\" runs everything")
    for name in config.stash.get(UNMATCHED, []):
        terminalreporter.line(f"expected to fail, but no test is called so: {name}")


@pytest.fixture(scope="session", autouse=True)
def _no_interpreter() -> Iterator[None]:
    """Check the code that stays, not what computes until it pays to make that."""
    before, settings.compile_at_once = settings.compile_at_once, True
    yield
    settings.compile_at_once = before


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config) -> Stack:
    """The eight layers on the device under test."""
    return opened(pytestconfig)


@pytest.fixture(scope="session")
def device(stack: Stack) -> Device:
    """The device under test."""
    return stack.device


@pytest.fixture(scope="session")
def _ahead(pytestconfig: pytest.Config, stack: Stack) -> Ahead:
    return Ahead(stack, chosen_seed(pytestconfig), isolated=pytestconfig.getoption("--nnc-isolate"))


@pytest.fixture
def compiled_ahead(request: pytest.FixtureRequest, _ahead: Ahead) -> None:
    """The kernels of the test are there, where compiling many at once is quicker."""
    _ahead.reach(request.node)


@pytest.fixture
def on_device(stack: Stack) -> Iterator[str]:
    """Its id, made the default device for a test."""
    with use_device(stack.device):
        yield stack.device.spec.id


@pytest.fixture
def rng(pytestconfig: pytest.Config) -> np.random.Generator:
    """Random numbers that begin anew from the seed in each test."""
    return np.random.default_rng(chosen_seed(pytestconfig))
