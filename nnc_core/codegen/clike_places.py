"""Places on several axes, from one number that counts through all of them, as statements."""

from __future__ import annotations

from collections.abc import Sequence


def split(names: Sequence[str], lengths: Sequence[str], number: str, type: str) -> list[str]:
    """Declarations of places on axes, the last of which is gone through first; the first name takes what is left."""
    lines = [f"{type} {names[0]} = {number};"]
    for name, length in reversed(list(zip(names[1:], lengths[1:], strict=True))):
        lines.append(f"const {type} {name} = {names[0]} % {length}; {names[0]} /= {length};")
    return lines
