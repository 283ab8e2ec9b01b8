"""What refuses misused loops and branches, in every mode."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import nnc_core as nnc
from nnc_core.base.errors import Error as NncError

Program = Callable[[], Any]


def eagerly(f: Program) -> Any:
    return f()


def lazily(f: Program) -> Any:
    with nnc.deferred():
        return f()


def compiled(f: Program) -> Any:
    return nnc.jit(f)()


LINE = re.compile(r"(test_control\w*|refusals)\.py:")
"""Of a program, or of the loop that `counted` calls for it."""
EVERYWHERE, RECORDED = (eagerly, lazily, compiled), (lazily, compiled)


def refused(kind: type[Exception], message: str, program: Program, modes: Any = EVERYWHERE, line: str = "") -> None:
    """The operator first, then what is wrong, then the line: of the program, or of a function (one of several)."""
    for mode in modes:
        with pytest.raises(kind, match=re.compile(message, re.DOTALL)) as caught:
            mode(program)
        assert isinstance(caught.value, NncError), mode
        text = str(caught.value)
        wanted = [f" in {name}" for name in (line or program.__name__).split(" or ")]
        assert LINE.search(text), f"{mode.__name__}: {text}"
        assert any(name in text for name in wanted), f"{mode.__name__}: {text}"


def x() -> nnc.Tensor:
    return nnc.asarray([0.0, 1.0, 2.0])


def zero() -> nnc.Tensor:
    return nnc.asarray(0)


def counted(body: Callable[..., Any], *carried: Any, times: int = 3) -> Any:
    """body(i, *carried) so many times."""
    return nnc.while_loop(lambda i, *_: i < times, body, (zero(), *(carried or (x(),))))
