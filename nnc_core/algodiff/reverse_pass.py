"""One pass back over a tape: by a compiled program where tapes of its structure keep coming, else step by step."""

from __future__ import annotations

from typing import Any

from nnc_core.algodiff.compiled_backward import PROGRAMS, run_program
from nnc_core.algodiff.tape import Tape, every_step
from nnc_core.values.dispatch import F
from nnc_core.values.hooks import call_hooks, hooks_of
from nnc_core.values.modes import current_trace, lazy, no_grad, use_device
from nnc_core.values.value import Value


def swept(tape: Tape, create_graph: bool = False, may_compile: bool = True) -> list[Value | None]:
    """The cotangents of `tape.wrt`, by a compiled program where there is one."""
    hooks = hooks_of(tape.order)
    if may_compile and not create_graph and not _is_recording(tape) and not _inside(tape, hooks):
        program = PROGRAMS.find(tape)
        if program is not None:
            found = run_program(program, tape)
            if not hooks:
                return found
            with no_grad(), use_device(tape.stack):
                return [g if g is None else call_hooks(x, g) for x, g in zip(tape.wrt, found, strict=True)]
    with use_device(tape.stack):
        if create_graph:
            return _interpreted(tape, hooks)
        with no_grad():
            return _interpreted(tape, hooks)


def _is_recording(tape: Tape) -> bool:
    """True if the pass is itself recorded, to be computed later."""
    return bool(lazy.get()) or current_trace.get() is not None or any(y.trace is not None for y in tape.roots)


def _inside(tape: Tape, hooks: Any) -> bool:
    """True if hooks change gradients that other gradients are computed from, or belong to values not asked for."""
    return bool(hooks) and not hooks.keys() <= {id(x) for x in tape.wrt if x.step is None}


def _interpreted(tape: Tape, hooks: Any) -> list[Value | None]:
    seeds: dict[int, Value] = {}
    for y, given in zip(tape.roots, tape.seeds, strict=True):
        g = F.full_like(y, 1) if given is None else given
        seeds[id(y)] = F.add(seeds[id(y)], g) if id(y) in seeds else g
    return tape.stack.graph.reverse(F, every_step(tape.roots, tape.given), seeds, tape.wrt, hooks)
