"""Stacks of small matrices, for which one call takes all of them."""

from __future__ import annotations

from math import prod

from nnc_core.base.command import Command

SMALL = 32
"""Rows and columns up to which a routine that turns pairs of columns until they are orthogonal (of Jacobi's) pays, and
those of cuSOLVER for singular values work."""
MEDIUM = 128
"""The same of routines that eliminate or reflect, as far as anybody knows without a GPU."""
BY_TURNS = frozenset(("eigh", "eigvalsh", "svd", "svdvals"))
"""Operators of the former."""
GENERAL = frozenset(("eig", "eigvals"))
"""Operators whose matrices each take a call."""
POINTED = {"potrf": (0,), "getrf": (0,), "getrs": (0, 2), "geqrf": (0, 1), "trsm": (0, 1)}
"""The arrays of a routine's that lie anywhere, of which it reads the addresses."""
WITHOUT_STATUS = (frozenset(("trsm",)), frozenset(("geqrf", "getrs", "trsm")))
"""Routines that say nothing of a matrix; of those for many."""


def count_of(command: Command) -> int:
    """The matrices of a stack, of right-hand sides where these are more."""
    solved = command.name in ("solve", "solve_triangular")
    return max(prod(command.inputs[0].shape[:-2]), prod(command.outputs[0].shape[:-2]) if solved else 0)


def in_one_call(command: Command) -> bool:
    """Tell whether one call takes all matrices of a command, in place of one for each."""
    *_, m, n = command.inputs[0].shape
    if count_of(command) < 2 or command.name in GENERAL or (command.name == "lu" and m != n):
        return False
    return max(m, n) <= (SMALL if command.name in BY_TURNS else MEDIUM)
