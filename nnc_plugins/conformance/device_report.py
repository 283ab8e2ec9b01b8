"""The report that --nnc-report writes: what of a device passes, what runs on the host, and how long some work takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nnc_core as nnc
from nnc_core.base.errors import Error
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack
from nnc_core.type import Op
from nnc_plugins.conformance.case import Array
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.conftest import opened

if TYPE_CHECKING:
    import warnings

    import pytest

OPERATOR = re.compile(r"test_operators\.py::\w+\[(\w+)-")
ON_THE_HOST = re.compile(r"(\w+) has no kernel on \S+")
ROUNDS = 5
X, SQUARE = np.linspace(-2, 2, 1 << 20).astype(np.float32), np.linspace(-1, 1, 512 * 512).astype(np.float32)
WORK: dict[str, tuple[Callable[..., Any], Callable[..., Any], Array]] = {
    "add of 1 Mi float32": (nnc.add, np.add, X),
    "tanh of 1 Mi float32": (lambda a, b: nnc.tanh(a), lambda a, b: np.tanh(a), X),
    "sum of 1 Mi float32": (lambda a, b: nnc.sum(a), lambda a, b: np.sum(a), X),
    "product of matrices, 512 x 512": (nnc.matmul, np.matmul, SQUARE.reshape(512, 512)),
}
"""By name: the work in nnc and in NumPy, and both of its operands."""


class DeviceReport:
    """A plugin of pytest's: it counts by operator, and writes when all tests have run.  It fails no test."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config, self.path = config, path
        self.outcomes: dict[str, int] = {}
        self.operators: dict[str, set[str]] = {}
        self.on_the_host: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        named = OPERATOR.search(report.nodeid)
        if named is not None:
            self.operators.setdefault(named[1], set()).add(outcome)

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        named = ON_THE_HOST.match(str(warning_message.message))
        if named is not None:
            self.on_the_host.add(named[1])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        try:
            facts = self.facts(opened(self.config))
            self.path.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
            terminalreporter.line(f"nnc conformance: report written to {self.path}")
        except Exception as error:  # the tests have said what there is to say; a report is beside that
            terminalreporter.line(f"nnc conformance: no report ({type(error).__name__}: {error})")

    def facts(self, stack: Stack) -> dict[str, Any]:
        """The report as JSON values."""
        spec = {key: sorted(value) if isinstance(value, frozenset) else value
                for key, value in asdict(stack.device.spec).items()}
        return {"device": spec, "tests": self.outcomes, "operators": self.by_outcome(), "speed": speed(stack)}

    def by_outcome(self) -> dict[str, Any]:
        """Names of operators by what has become of them; one that has failed once has failed."""
        ranked = {name: next(x for x in ("failed", "xfailed", "passed", "skipped") if x in outcomes)
                  for name, outcomes in self.operators.items()}
        named = {outcome: sorted(name for name, has in ranked.items() if has == outcome)
                 for outcome in ("passed", "failed", "xfailed", "skipped")}
        without_nest = sorted(name for name in CASES if _has_no_nest(OPERATORS[name]))
        return {"declared": len(CASES), **named, "not run": sorted(CASES.keys() - ranked.keys()),
                "on the host": sorted(self.on_the_host), "without a loop nest": without_nest}


def _has_no_nest(op: Op) -> bool:
    """Tell whether an operator runs on the host wherever there is no library code for it."""
    return op.host or (op.scalar is None and op.nest is None and op.decompose is None and op.view is None)


def speed(stack: Stack) -> dict[str, dict[str, float | None]]:
    """Seconds of compiled work on the device, and of NumPy, the least of a few rounds; None for what fails."""
    return {name: {"device": _on_device(stack, mine, operand), "numpy": _least(partial(theirs, operand, operand))}
            for name, (mine, theirs, operand) in WORK.items()}


def _on_device(stack: Stack, work: Callable[..., Any], operand: Array) -> float | None:
    try:
        x, compiled = nnc.asarray(operand, device=stack), nnc.jit(work)

        def run() -> None:
            compiled(x, x)
            stack.device.default_stream.synchronize()

        run()
        return _least(run)
    except Error:
        return None


def _least(run: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        run()
        seconds.append(perf_counter() - begin)
    return min(seconds)
