"""Every file in examples/ runs as a reader would run it, and says something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_an_example_runs(file: Path, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_there_are_examples() -> None:
    assert len(FILES) >= 3
