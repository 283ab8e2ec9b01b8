"""Files that the documents name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "plugins").glob("*/*.md"),
                    *(ROOT / "benchmarks").glob("*.md"), *(ROOT / "examples").glob("*.md")])
HOMES = (ROOT, ROOT / "nnc_core", ROOT / "docs", ROOT / "tests", ROOT / "plugins" / "cpu" / "nnc_cpu")
"""Folders from which documents name files, besides the one that they are in."""
NAMED = re.compile(r"`([\w./*-]+\.(?:py|md|toml|npz|yml|sh))(?:::\w+)?`"
                   r"|\]\(([^)#:\s]+)(?:#[^)]*)?\)|`([\w.-]+(?:/[\w.*-]+)*/)`")


def named(text: str) -> Iterator[str]:
    """Files in backquotes, folders in backquotes with a slash at the end, and targets of links."""
    for file, link, folder in NAMED.findall(text):
        yield file or link or folder


def is_there(name: str, document: Path) -> bool:
    """Whether a file of that name, a pattern or a path's end, is in the project."""
    return any(any(home.glob(name.rstrip("/"))) for home in (document.parent, *HOMES)) or (
        "/" not in name and any(ROOT.glob(f"*/**/{name}")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_documents_name_exist(document: Path) -> None:
    missing = [name for name in named(document.read_text(encoding="utf-8")) if not is_there(name, document)]
    assert missing == []


def test_a_file_that_is_gone_is_found() -> None:
    text = "See `nnc_core/attic/a.py`, [here](docs/attic.md#part), `attic/`, `x.grad`, `a/b`, [web](https://a.b/c.md)."
    found = list(named(text))
    assert found == ["nnc_core/attic/a.py", "docs/attic.md", "attic/"]
    assert not any(is_there(name, ROOT / "README.md") for name in found)
    assert is_there("nnc_core/base/errors.py", ROOT / "README.md") and is_there("stacks.py", ROOT / "docs" / "x.md")
