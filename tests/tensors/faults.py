"""What every error of the house must be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import nnc_core as nnc


@contextmanager
def fails(kind: type[BaseException], *said: str, operator: str | None = None, line: bool = True) -> Iterator[None]:
    """The block raises one nnc.Error that is also `kind`; it names the operator, the line of the caller's file, and
    says all of `said`.  The next computation works."""
    code = sys._getframe(2).f_code
    with pytest.raises(nnc.Error) as caught:
        yield
    error, text = caught.value, str(caught.value)
    assert isinstance(error, kind), f"{type(error).__name__} is no {kind.__name__}: {text}"
    for part in (*said, *([operator] if operator else [])):
        assert part in text, f"{part!r} is not in: {text}"
    if line:
        file = Path(code.co_filename).name
        assert file in text, f"no line of {file} in: {text}"
    assert (nnc.asarray([1.0, 2.0]) + 1).tolist() == [2.0, 3.0], "the next call works"
