"""What is installed without a checkout is whole: wheels hold every file of their packages, and compute."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow  # building needs setuptools from the index

ROOT = Path(__file__).parents[2]
PACKAGES = {".": ("nnc_core", "nnc_plugins"), "plugins/cpu": ("nnc_cpu",), "plugins/opencl": ("nnc_opencl",),
            "plugins/cuda": ("nnc_cuda",)}
"""Projects, and the packages of each."""
COMPUTING = """
import nnc_core as nnc, nnc_cpu
step = nnc.jit(nnc.grad(lambda w, x: nnc.sum(nnc.tanh(x @ w))))
print(step(nnc.ones((3, 4)), nnc.ones((2, 3))).device.id, nnc.__file__, nnc_cpu.__file__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each project, built of a copy, since building leaves files beside its sources."""
    found = {}
    for project, packages in PACKAGES.items():
        source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            if (ROOT / project / name).exists():
                shutil.copy(ROOT / project / name, source)
        for package in packages:
            shutil.copytree(ROOT / project / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)]
        subprocess.run(build, check=True, cwd=target)
        (found[project],) = target.glob("*.whl")
    return found


@pytest.mark.parametrize("project", PACKAGES)
def test_wheels_hold_every_file(wheels: dict[str, Path], project: str) -> None:
    held = set(ZipFile(wheels[project]).namelist())
    there = {str(path.relative_to(ROOT / project)) for package in PACKAGES[project]
             for path in (ROOT / project / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert not there - held


def test_wheels_compute(wheels: dict[str, Path], tmp_path: Path) -> None:
    for wheel in wheels.values():
        ZipFile(wheel).extractall(tmp_path)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-c", COMPUTING], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cpu:0") and done.stdout.count(str(tmp_path)) == 2, done.stdout
