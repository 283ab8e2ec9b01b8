"""The operators of ONNX that are known, each a Python function on public functions of nnc.

`@operator("Gemm", since=7)` registers a function: its positional parameters are the inputs, its keyword parameters the
attributes under ONNX' names with ONNX' defaults.  The annotation of an input says in which lane it is wanted:

    Tensor      on the device          Statistic   too, and an initialiser given for it is no parameter
    Host        known to Python, so that everything it depends on must be         Any     as it comes
    Sizes       known to Python, dimensions where only a call knows the numbers
    Numbers     known to Python one by one, scalar tensors where only a call knows them
    Known       known to Python where inputs of the model can be told apart by it, else as it comes

A parameter named `call` is given the `NodeCall`: how many outputs are wanted, and how to run sub-graphs.
`@on_host("Add")` registers what stands for the operator where all inputs are host values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
ML = "ai.onnx.ml"


@dataclass(frozen=True)
class OnnxOperator:
    """One version of an operator."""

    name: str
    since: int
    function: Function
    lanes: tuple[str, ...]  # of its inputs, as above
    variadic: str | None  # the lane of all further inputs
    needed: int  # inputs that must be there
    attributes: Mapping[str, Any]  # with their defaults; inspect.Parameter.empty for those that must be given
    takes_call: bool
    on_host: Function | None

    def lane(self, position: int) -> str:
        """The lane in which an input is wanted."""
        return self.lanes[position] if position < len(self.lanes) else self.variadic or "Any"

    @property
    def keeps_host(self) -> bool:
        """True if host values in give host values out."""
        polymorphic = self.variadic is None and all(lane in ("Any", "Known", "Host", "Sizes") for lane in self.lanes)
        return self.on_host is not None or polymorphic


_functions: dict[tuple[str, str], list[tuple[int, Function]]] = {}
_on_host: dict[tuple[str, str], Function] = {}
_parsed: dict[tuple[str, str, int], OnnxOperator] = {}


def operator(*names: str, since: int = 1, domain: str = "") -> Callable[[F], F]:
    """Register a function for operators, from a version of their domain on."""

    def register(function: F) -> F:
        for name in names:
            _functions.setdefault((domain, name), []).append((since, function))
        return function

    return register


def on_host(*names: str, domain: str = "") -> Callable[[F], F]:
    """Register what computes operators whose inputs are all known to Python, with NumPy."""

    def register(function: F) -> F:
        for name in names:
            _on_host[domain, name] = function
        return function

    return register


def find(domain: str, name: str, version: int) -> OnnxOperator | None:
    """The operator as it is in a version of its domain; None if there is none."""
    versions = [(since, f) for since, f in _functions.get((domain, name), ()) if since <= version]
    if not versions:
        return None
    since, function = max(versions, key=lambda entry: entry[0])
    if (domain, name, since) not in _parsed:
        _parsed[domain, name, since] = _parse(name, since, function, _on_host.get((domain, name)))
    return _parsed[domain, name, since]


def _parse(name: str, since: int, function: Function, on_host: Function | None) -> OnnxOperator:
    parameters = inspect.signature(function).parameters.values()
    inputs = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    further = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    named = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return OnnxOperator(
        name, since, function, tuple(_lane(p) for p in inputs), _lane(further[0]) if further else None,
        sum(p.default is p.empty for p in inputs), {k: v for k, v in named.items() if k != "call"},
        "call" in named, on_host)


def _lane(parameter: inspect.Parameter) -> str:
    wanted = str(parameter.annotation).partition(" |")[0]
    return wanted if wanted in ("Tensor", "Host", "Sizes", "Numbers", "Statistic", "Known") else "Any"
