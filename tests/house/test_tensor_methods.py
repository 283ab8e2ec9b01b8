"""The methods that are bound to Tensor are those that type checkers are told of."""

from __future__ import annotations

import ast
import inspect

from nnc_core.values.bound_methods import BoundMethods
from nnc_core.values.tensor import Tensor


def names(body: list[ast.stmt]) -> set[str]:
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    targets = [t for node in body if isinstance(node, ast.Assign) for t in node.targets]
    parts = [x for t in targets for x in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return defined | {x.id for x in parts if isinstance(x, ast.Name)}


def body_of(cls: type) -> list[ast.stmt]:
    module = ast.parse(inspect.getsource(cls))
    return next(node for node in module.body if isinstance(node, ast.ClassDef)).body


def test_stubs_and_bound_methods_agree() -> None:
    body = body_of(Tensor)
    told = next(names(node.body) for node in body_of(BoundMethods) if isinstance(node, ast.If))
    automatic = {"__module__", "__doc__", "__firstlineno__", "__static_attributes__",
                 "__slotnames__",  # kept there by copyreg once a tensor has been copied
                 "__getattr__"}  # unknown to type checkers, which would take any attribute for one that is there
    bound = set(vars(Tensor)) - names(body) - automatic
    assert told == bound
