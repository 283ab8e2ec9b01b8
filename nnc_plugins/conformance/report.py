"""The report that --nnc-coverage prints at the end of a run, whether tests ran in this process or in others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_plugins.conformance import coverage

if TYPE_CHECKING:
    import pytest

ERROR = "nnc error"
"""The property of a test that says (operator, which part of its bound it has used)."""


class CoverageReport:
    """A plugin of pytest's: all reports arrive at the process that prints."""

    def __init__(self) -> None:
        self.measured: dict[str, float] = {}
        """The largest part by operator."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            found: list[Any] = [value for key, value in report.user_properties if key == ERROR]
            for name, part in found:
                self.measured[name] = max(self.measured.get(name, 0.0), part)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in coverage.lines(self.measured):
            terminalreporter.line(line)
