"""`docs/settings.md` has each setting, with its default, and no other."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from nnc_core.base.config import Settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_the_page_has_each_setting_and_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == {field.name: repr(field.default) for field in dataclasses.fields(Settings)}
