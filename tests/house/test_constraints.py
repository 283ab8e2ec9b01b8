"""`constraints.txt` pins whatever the projects ask for, at a version that they admit, for every Python."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ("pyproject.toml", "plugins/cpu/pyproject.toml", "plugins/opencl/pyproject.toml",
            "plugins/cuda/pyproject.toml")
OURS = "nnc-"


def asked_for() -> Iterator[Requirement]:
    """By all projects and their extras."""
    for file in PROJECTS:
        project = tomllib.loads((ROOT / file).read_text("utf-8"))["project"]
        for part in (project["dependencies"], *project.get("optional-dependencies", {}).values()):
            yield from (asked for asked in map(Requirement, part) if not asked.name.startswith(OURS))


def pinned(python: str) -> dict[str, str]:
    """The version of each package that pip takes with this Python."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    chosen = [pin for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": python})]
    assert len({pin.name for pin in chosen}) == len(chosen), "a package has two versions"
    return {pin.name: str(pin.specifier).removeprefix("==") for pin in chosen}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_whatever_is_asked_for_is_pinned_and_admitted(python: str) -> None:
    pins = pinned(python)
    for asked in asked_for():
        name = asked.name.lower().replace("_", "-")
        assert name in pins, f"constraints.txt lacks {name}"
        assert pins[name] in asked.specifier, f"{name} {pins[name]} is not {asked.specifier}"
