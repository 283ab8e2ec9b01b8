"""How large the largest tests are: whole in `make test-all`, a quarter of it in `make test`."""

from __future__ import annotations

import os

WHOLE = os.environ.get("HYPOTHESIS_PROFILE") == "all"


def whole_or_quarter(size: int) -> int:
    """The size of something large, divisible by 4."""
    return size if WHOLE else size // 4


LONG = whole_or_quarter(200_000)
"""Operations in a chain.  What walks by recursion ends after a thousand in Python, after some ten thousands in C; Owl's
ends at 100,000, MXNet's at 20,000."""
