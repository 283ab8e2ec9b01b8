"""Options of the conformance kit, known to every pytest run: pytest reads its command line before it imports
the kit.

Nothing else happens here, unless it is asked for, because the pytest of every project in the environment loads this
module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nnc", "nnc: conformance of device plugins")
    group.addoption("--nnc-device", default="cpu:0", metavar="ID",
                    help="device to test, such as opencl:0 (default: cpu:0)")
    group.addoption("--nnc-xfails", default=None, metavar="FILE",
                    help="file of tests expected to fail: (part of) a name on each line, # for comments")
    group.addoption("--nnc-coverage", action="store_true",
                    help="print what the cases of each operator cover, and how much of its bound each has used")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--nnc-coverage"):
        from nnc_plugins.conformance.report import CoverageReport

        config.pluginmanager.register(CoverageReport(), "nnc-coverage")
