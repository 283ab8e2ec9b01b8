"""Hypothesis profiles, and the one seed that everything sampled in the tests comes from."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

import nnc_core as nnc
from nnc_core.base.cache_folder import VARIABLE
from tests import memory
from tests.engine.plan_checker import every_plan_checked
from tests.selection import Selection
from tests.semantics.table import Table

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")

# Neither the speed of an example nor of its data is a matter for a test.
_common = {
    "deadline": None,
    "derandomize": False,  # Hypothesis' own default under CI, which leaves the seed unread
    "suppress_health_check": [HealthCheck.too_slow],
    "database": None,
    "print_blob": True,
}
settings.register_profile("quick", max_examples=20, **_common)
settings.register_profile("all", max_examples=300, **_common)
settings.load_profile(PROFILE)
# Hypothesis draws one number in twenty from those in the sources of all modules loaded so far: draws of one test would
# depend on the tests that ran before it, and so on how processes share them.
providers._get_local_constants = providers.Constants


def _chosen_seed() -> int:
    wanted = os.environ.get("NNC_TEST_SEED", "0")
    return random.SystemRandom().randrange(2**32) if wanted == "random" else int(wanted)


SEED = pytest.StashKey[int]()
GENERATORS = pytest.StashKey[list[tuple[np.random.BitGenerator, Any]]]()
FLOOR = pytest.StashKey[memory.Floor]()
SELECTION = pytest.StashKey[Selection]()
TABLE = Table()  # here, where all reports arrive, also those of other processes


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(_chosen_seed())
    config.stash[SEED] = int(config.option.hypothesis_seed)
    config.stash[SELECTION] = Selection(config, config.stash[SEED])
    memory.return_large_arrays()
    memory.keep_few_kernels()
    memory.keep_little_idle_memory()
    _keep_machine_code_apart(config)


def _keep_machine_code_apart(config: pytest.Config) -> None:
    """Tests and the processes that they start leave the user's caches alone.  Their own lasts from run to run, as
    pytest's does: kernels take most of the time of many tests."""
    os.environ.setdefault(VARIABLE, str(config.rootpath / ".pytest_cache" / "nnc"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with memory.without_collector():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around hooks of folders that mark tests as slow
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    made = yield
    return collector.config.stash[SELECTION].of(made) if isinstance(made, list) else made


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[GENERATORS] = [(bits, bits.state) for bits in _bits_of_modules()]
    memory.leave_alone_what_is_there()
    session.config.stash[FLOOR] = memory.Floor()


def _bits_of_modules() -> Iterator[np.random.BitGenerator]:
    for name, module in [*sys.modules.items()]:
        if name.startswith("tests."):
            yield from (x.bit_generator for x in vars(module).values() if isinstance(x, np.random.Generator))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test draws, from its module's generator or from the default one, does not depend on the tests that ran
    before it."""
    nnc.manual_seed(item.config.stash[SEED])
    for bits, first in item.config.stash[GENERATORS]:
        bits.state = first


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    item.config.stash[FLOOR].sweep()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    TABLE.note(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in TABLE.lines():
        terminalreporter.line(line)
    if config.stash[SELECTION].left_out:
        terminalreporter.line(f"{config.stash[SELECTION].left_out} slow tests are left out: `make test-all` runs them")
    seed = config.stash[SEED]
    terminalreporter.line(f"hypothesis profile {PROFILE}; seed {seed}: NNC_TEST_SEED={seed} repeats this run")


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[SELECTION].tell(session.config)


@pytest.hookimpl(optionalhook=True)  # of xdist, which may not be there
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[SELECTION].hear(node)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The run's seed: 0, or what the variable NNC_TEST_SEED says ("random" draws one)."""
    return pytestconfig.stash[SEED]


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A generator that starts afresh from the run's seed in each test."""
    return np.random.default_rng(seed)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Thousands of files are written of which none has to outlive a power cut: minutes of waiting on a slow disk.

    That content is synchronised before it takes a name is tested by the call; child processes do wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _plans_are_checked() -> Iterator[None]:
    """No test compiles a plan that would hand over a wrong value."""
    with every_plan_checked():
        yield
