"""Steps of operators written down as one Python function of arrays, which calls the device's eager kernels alone.

What no operand has a part in is computed once and kept, if it is small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from nnc_core.base.errors import NotSupportedError
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import CONTROL, PICK, TOGETHER
from nnc_core.stacks import Stack
from nnc_core.symbol import postorder
from nnc_core.type import Attributes, Op, TensorSpec
from nnc_core.values.namespace import F
from nnc_core.values.running import takes_whole
from nnc_core.values.value import Value

ArrayProgram: TypeAlias = Callable[..., Any]
"""Takes the arrays of the operands and gives the result of a function; NotImplemented where a kernel does."""


class Given(NamedTuple):
    """The result of a function as an expression of expressions of values, and what names in it stand for."""

    written: Callable[[Sequence[str]], str]
    names: Mapping[str, Any]


KEPT_BYTES = 1 << 14
"""Bytes of an array up to which it is computed once."""
_RESHAPE, _TRANSFER = OPERATORS["reshape"], OPERATORS["transfer"]


class _KernelCall(NamedTuple):
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    attributes: Attributes
    result: int


class _Arrays:
    """Arrays by number while steps run for the first time: operands first, then constants and results."""

    def __init__(self, operands: Sequence[Any]) -> None:
        self.arrays = list(operands)
        self.constant = [False] * len(operands)

    def add(self, array: Any, constant: bool) -> int:
        self.arrays.append(array)
        self.constant.append(constant)
        return len(self.arrays) - 1


class Lowering:
    """Finds the kernel of each step that was recorded from symbols, which stand for arrays that lie in the same way,
    and runs it once; operators that the device does not take whole are made up of others, as eager code does."""

    def __init__(self, symbols: Sequence[Value], arrays: Sequence[Any], stack: Stack) -> None:
        self.stack, self.operands = stack, len(symbols)
        self.known = _Arrays(arrays)
        self.calls: list[_KernelCall] = []
        self._numbers: dict[Value, int] = {v: i for i, v in enumerate(symbols)}

    def program(self, results: Sequence[Value], given: Given) -> ArrayProgram:
        """The program that gives these values.  NotSupportedError where there is none."""
        return _written(self, [self.number(v, is_result=True) for v in results], given)

    def whole(self, kernel: Callable[..., Any], operands: tuple[Value, ...], attributes: Attributes) -> Any:
        """Symbols for what a kernel gives that stands for several operators."""
        inputs = tuple([self.number(v) for v in operands])
        result = kernel(*[self.known.arrays[i] for i in inputs], *attributes)
        if result is NotImplemented:
            return None
        number = self._called(kernel, inputs, attributes, result)
        if result.__class__ is not tuple:
            return self._symbol(result, number)
        pick = _PARTS[PICK]
        return tuple([self._symbol(x, self._called(pick, (number,), (i,), x))
                      for i, x in enumerate(result)])

    def _symbol(self, array: Any, number: int) -> Value:
        symbol = Value(None, self.stack, TensorSpec(tuple(array.shape), array.dtype))
        self._numbers[symbol] = number
        return symbol

    def number(self, value: Value, is_result: bool = False) -> int:
        """The number of the array of a value; all steps that lead to it are done."""
        for v in postorder([value], leaf=self._numbers.__contains__):
            if v not in self._numbers:
                self._numbers[v] = self._number(v, is_result and v is value)
        return self._numbers[value]

    def _number(self, v: Value, is_result: bool) -> int:
        if v.stack is not self.stack:
            raise NotSupportedError("several devices")
        if v.array is not None:
            if not _is_small(v.spec):
                raise NotSupportedError("a large constant, which would be held for a long time")
            return self.known.add(v.array, True)
        if v.step is None:
            raise NotSupportedError("a symbol of somebody else")
        op, inputs = v.op, tuple([self._numbers[x] for x in v.inputs])
        if op is _RESHAPE and not is_result and v.shape == v.inputs[0].shape:
            return inputs[0]
        self._check(v)
        arrays = [self.known.arrays[i] for i in inputs]
        if op.decompose is not None and not takes_whole(op, arrays, v.attributes, v.spec, self.stack):
            return self.number(op.decompose(F, *v.inputs, *v.attributes), is_result)
        constant = all([self.known.constant[i] for i in inputs]) and _is_small(v.spec)
        if constant and op not in _PARTS:
            return self.known.add(self.stack.engine.executor.run(op, arrays, v.attributes, v.spec), True)
        kernel = _PARTS.get(op) or self._kernel(op, arrays, v.attributes)
        result = kernel(*arrays, *v.attributes)
        if result is NotImplemented:
            raise NotSupportedError(f"no eager kernel of {op.name} for these operands")
        return self._called(kernel, inputs, v.attributes, result)

    def _called(self, kernel: Callable[..., Any], inputs: tuple[int, ...], attributes: Attributes,
                result: Any) -> int:
        number = self.known.add(result, False)
        self.calls.append(_KernelCall(kernel, inputs, attributes, number))
        return number

    def _check(self, v: Value) -> None:
        op = v.op
        is_drawn = op.random and self.known.constant[self._numbers[v.inputs[0]]]
        if (is_drawn or op.host or op.virtual or op.data_dependent or op is _TRANSFER
                or (op.name in CONTROL and op not in _PARTS)):
            raise NotSupportedError(f"{op.name} is not the same again")

    def _kernel(self, op: Op, arrays: Sequence[Any], attributes: Attributes) -> Callable[..., Any]:
        """The device's eager kernel, that for arrays that lie as these do where it knows one."""
        kernel = self.stack.device.eager.get(op.name)
        if kernel is None:
            raise NotSupportedError(f"no eager kernel of {op.name}")
        for_layouts: Any = getattr(kernel, "for_layouts", None)
        return kernel if for_layouts is None else for_layouts(arrays, attributes)


_PARTS: dict[Op, Callable[..., Any]] = {PICK: lambda parts, index: parts[index], TOGETHER: lambda *parts: parts}


def _is_small(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.nbytes <= KEPT_BYTES


# ---- writing
def _written(found: Lowering, results: Sequence[int], given: Given) -> ArrayProgram:
    """Variables of arrays that nobody reads any more are emptied, so that their memory is free for what comes."""
    used, copy = found.known.constant, found.stack.device.eager.get("copy")
    names = {**given.names, **{f"c{i}": x for i, x in enumerate(found.known.arrays) if used[i]}}
    for i in results:
        if used[i] and copy is None:
            raise NotSupportedError("no eager kernel of copy")
    names.update(copy=copy, Value=Value, stack=found.stack)
    last = {i: k for k, call in enumerate(found.calls) for i in call.inputs}
    parameters = ", ".join([f"a{i}" for i in range(found.operands)])
    lines = [f"def program({parameters}):"]

    def name(i: int) -> str:
        return f"c{i}" if used[i] else f"a{i}"

    for k, call in enumerate(found.calls):
        attributes = [f"k{k}_{j}" for j in range(len(call.attributes))]
        names.update(zip(attributes, call.attributes, strict=True))
        names[f"k{k}"] = call.kernel
        lines += [f" a{call.result} = k{k}({', '.join([*map(name, call.inputs), *attributes])})",
                  f" if a{call.result} is NotImplemented: return NotImplemented"]
        done = {i for i in call.inputs if last[i] == k and i not in results and not used[i]}
        if done:
            lines.append(f" {' = '.join([f'a{i}' for i in sorted(done)])} = None")
    values = [f"Value({f'copy(c{i})' if used[i] else f'a{i}'}, stack)" for i in results]
    lines.append(f" return {given.written(values)}")
    exec(compile("\n".join(lines), __file__, "exec"), names)  # this file's name, so that it is no line of the user's
    return names["program"]  # type: ignore[no-any-return]
