"""A hybridized module in each way of running it, against the same module eager: values, all gradients, and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.dtype import is_float
from nnc_core.values.tree import flatten
from tests.semantics.modes import Host, tensors
from tests.support import same

HYBRID_MODES = ("hybridize", "jit", "deferred", "symbolic")
FLAGS: tuple[dict[str, bool], ...] = (
    {}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True},
)  # fmt: skip
"""The parent's three combinations of flags."""


class Call(NamedTuple):
    """One call of a module: host arrays become tensors, everything else stays what it is."""

    args: tuple[Any, ...]
    training: bool = True


def cotangent(y: nnc.Tensor) -> nnc.Tensor:
    """Numbers that differ from element to element, to multiply a result by."""
    size = 1
    for d in y.shape:
        size *= int(d)
    return nnc.reshape(nnc.cos(nnc.arange(size, dtype=y.dtype)), y.shape)


def everything(net: nn.Module, *args: Any) -> dict[str, nnc.Tensor]:
    """By name: results of a call, gradients by every parameter and floating-point argument, the state afterwards."""

    def loss(*given: Any) -> nnc.Tensor:
        parts = [nnc.sum(y * cotangent(y)) for y in tensors(net(*given)) if is_float(y.dtype)]
        total, *rest = parts
        for part in rest:
            total = total + part
        return total

    found = {f"result {i}": y for i, y in enumerate(tensors(net(*args)))}
    if net.named_parameters():
        value, gradients = nn.value_and_grad(net, loss)(*args)
        found |= {"loss": value} | {f"by {name}": g for name, g in gradients.items()}
    for i in (i for i, arg in enumerate(args) if _is_differentiable(arg)):
        found |= {f"by argument {i}.{k}": g for k, g in enumerate(tensors(nnc.grad(loss, i)(*args)))}
    return found | {f"state {name}": cell.read() for name, cell in net.cells().items()}


def _is_differentiable(arg: Any) -> bool:
    leaves = flatten(arg)[0]
    return bool(leaves) and all(isinstance(x, nnc.Tensor) and is_float(x.dtype) for x in leaves)


Named = dict[str, Host]


def on_host(found: Mapping[str, nnc.Tensor]) -> Named:
    return {name: y.numpy() for name, y in found.items()}


def same_names(found: Named, wanted: Named) -> None:
    """Equal to the bit, name by name."""
    assert found.keys() == wanted.keys()
    for name in wanted:
        same([found[name]], [wanted[name]], name)


def runner(mode: str, net: nn.Module) -> Callable[..., Named]:
    """`everything` of a module in one of the modes, on the host."""
    if mode == "jit":
        compiled = nnc.jit(lambda *args: everything(net, *args))
        return lambda *args: on_host(compiled(*args))
    if mode == "deferred":
        return lambda *args: on_host(_recorded(net, args))
    if mode == "symbolic":
        return lambda *args: on_host(_exported(net, args))
    return lambda *args: on_host(everything(net, *args))


def eagerly(net: nn.Module, *args: Any) -> Named:
    """What a module that is not hybridized gives: what all modes are compared with."""
    return on_host(everything(net, *args))


def _recorded(net: nn.Module, args: Sequence[Any]) -> dict[str, nnc.Tensor]:
    with nnc.deferred():
        return everything(net, *args)


def _exported(net: nn.Module, args: Sequence[Any]) -> dict[str, nnc.Tensor]:
    """State and arguments are inputs of the graph, results and the state afterwards outputs."""
    inputs = {name: cell.read() for name, cell in net.cells().items()}
    inputs |= {f"x{k}": x for k, x in enumerate(tensors(args))}
    found = _recorded(net, args)
    graph = nnc.export(inputs, found, on_unused="ignore")
    run = graph.compile(next(iter(found.values())).device.id)
    results: dict[str, nnc.Tensor] = run(**{name: inputs[name] for name in graph.list_inputs()})
    return results


def arguments(call: Call) -> tuple[Any, ...]:
    return tuple(nnc.asarray(x) if hasattr(x, "__array__") else x for x in call.args)


def agree(mode: str, make: Callable[[], nn.Module], *calls: Call, **flags: Any) -> None:
    """Calls, one after another, of a module that is hybridized with these flags, and of its twin that is not."""
    plain, net = make(), make()
    net.hybridize(**flags)
    run = runner(mode, net)
    for call in calls:
        args = arguments(call)
        plain.train(call.training)
        net.train(call.training)
        same_names(run(*args), eagerly(plain, *args))


RUNS = ("eager", "deferred", "hybridize", "jit")


def run_as(how: str, net: nn.Module) -> Callable[..., Any]:
    """A call of a module in one of RUNS; what was deferred is computed."""
    if how == "jit":
        return nnc.jit(net)
    if how == "hybridize":
        return net.hybridize()
    if how == "eager":
        return net

    def deferred(*args: Any) -> Any:
        with nnc.deferred():
            y = net(*args)
        nnc.realize(y)
        return y

    return deferred
