"""Every Python snippet of README.md and of the documents under docs/ runs, in order, in one namespace each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import nnc_core as nnc

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^(?P<indent>[ ]*)```python[^\n]*\n(?P<source>.*?)^(?P=indent)```[ ]*$", re.M | re.S)


ELSEWHERE = ("plugins.md", "devices.md")
"""They change what devices there are, or what these compute: tests/plugins runs them, each in a process of its own."""
FILES = [str(file.relative_to(ROOT)) for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
         if BLOCK.search(file.read_text(encoding="utf-8"))
         and file.name not in ELSEWHERE]


def test_documents_with_snippets_are_found() -> None:
    assert {"README.md", "docs/nn.md", "docs/training.md", "docs/zoo.md"} <= set(FILES)


def snippets(text: str) -> Iterator[str]:
    """Each ```python block, led by so many empty lines that a traceback names the line of the file."""
    for block in BLOCK.finditer(text):
        yield "\n" * text.count("\n", 0, block.start("source")) + dedent(block["source"])


def run_snippets(file: Path) -> int:
    """How many there were."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    blocks = list(snippets(file.read_text(encoding="utf-8")))
    for source in blocks:
        exec(compile(source, str(file), "exec"), namespace)
    return len(blocks)


@pytest.mark.parametrize("file", FILES)
def test_snippets_run(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nnc.manual_seed(0)
    assert run_snippets(ROOT / file) > 0


SAMPLE = """# A readme
```python
x = 1
```
```sh
exit 1
```
1. In a list:
   ```python title="more"
   x += 1
   ```
```python
assert x == 3, x
```
"""


def test_snippets_share_a_namespace_and_a_failure_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text(SAMPLE)
    with pytest.raises(AssertionError, match="2") as failure:
        run_snippets(file)
    assert (failure.traceback[-1].path, failure.traceback[-1].lineno + 1) == (file, 13)
