"""The example of docs/plugins.md runs, in a process of its own: it changes what the strict device computes."""

from __future__ import annotations

from nnc_core.base.config import Settings
from nnc_plugins import hookspecs
from tests.house.test_readme import ROOT
from tests.plugins.fixtures.distributions import run_with

PAGE = ROOT / "docs" / "plugins.md"


def test_the_example_runs() -> None:
    code = f"from pathlib import Path\nfrom tests.house.test_readme import run_snippets\n" \
           f"print(run_snippets(Path({str(PAGE)!r})))"
    assert run_with([ROOT], code) == "5\n"


def test_the_page_names_every_hook_and_every_setting() -> None:
    text = PAGE.read_text(encoding="utf-8")
    hooks = [name for name in vars(hookspecs) if name.startswith("nnc_")]
    assert all(f"| `{hook}(" in text for hook in hooks)
    devices = hookspecs.nnc_devices.__doc__ or ""
    assert all(f"`{name}`" in text and f"`{name}`" in devices for name in Settings.__slots__)
