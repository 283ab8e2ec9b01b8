"""Names of NumPy, PyTorch and JAX: those that mean the same are taken, others are answered with ours.

`dir(nnc)` and the documents have one name for each thing; a name from elsewhere is looked up when it is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from nnc_core import fft, linalg
from nnc_core.advice import ELSEWHERE, OF_GENERATORS
from nnc_core.base import dtype as dt
from nnc_core.base.errors import UnknownNameError
from nnc_core.functions import movement, public
from nnc_core.random.generator import Generator
from nnc_core.values.arguments import ArrayLike, located
from nnc_core.values.tensor import Tensor

ALIASES = {
    # NumPy's
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "around": "round", "rint": "round",
    "concatenate": "concat", "conjugate": "conj", "degrees": "rad2deg", "fabs": "abs", "fix": "trunc",
    "mod": "remainder", "power": "pow", "radians": "deg2rad", "row_stack": "vstack", "trapz": "trapezoid",
    "true_divide": "divide", "alltrue": "all", "cumproduct": "cumprod", "in1d": "isin", "product": "prod",
    "sometrue": "any",
    # PyTorch's
    "bmm": "matmul", "cat": "concat", "clamp": "clip", "div": "divide", "eq": "equal", "ge": "greater_equal",
    "gt": "greater", "le": "less_equal", "lt": "less", "mm": "matmul", "movedim": "moveaxis", "mul": "multiply",
    "ne": "not_equal", "neg": "negative", "permute": "permute_dims", "sub": "subtract", "topk": "top_k",
    "unbind": "unstack", "unsqueeze": "expand_dims",
    # JAX's
    "batch_matmul": "matmul", "bessel_i0e": "i0e", "bessel_i1e": "i1e", "erf_inv": "erfinv", "is_finite": "isfinite",
    "logistic": "sigmoid", "rem": "fmod",
}  # fmt: skip
"""Functions under other names, which take what ours take."""

MAKERS = frozenset({"array", "as_tensor", "asanyarray", "ascontiguousarray", "from_numpy", "tensor"})
"""Names under which arrays are made of what is given."""

DTYPES = {
    "bool_": dt.boolean, "byte": dt.int8, "cdouble": dt.complex128, "csingle": dt.complex64, "double": dt.float64,
    "half": dt.float16, "int_": dt.int64, "intc": dt.int32, "intp": dt.int64, "long": dt.int64, "longlong": dt.int64,
    "short": dt.int16, "single": dt.float32, "ubyte": dt.uint8, "uint": dt.uint64, "uintc": dt.uint32,
    "uintp": dt.uint64, "ulong": dt.uint64, "ulonglong": dt.uint64, "ushort": dt.uint16, "cfloat": dt.complex64,
}  # fmt: skip

ADVICE = {
    "False_": "False", "True_": "True", "asarray_chkfinite": "nnc.config.check_nan = 'nonfinite'",
    "autograd": "nnc.grad, nnc.vjp, or x.backward() of variables",
    "bernoulli": "nnc.Generator().bernoulli(probability, shape)", "block_until_ready": "nnc.synchronize() or x.wait()",
    "bmat": "nnc.block", "broadcast": "nnc.broadcast_arrays or nnc.broadcast_shapes", "c_": "nnc.column_stack",
    "chunk": "nnc.array_split(x, n)", "common_type": "nnc.result_type", "compile": "nnc.jit(f)", "copy": "x.copy()",
    "copyto": "x[...] = v", "cuda": "nnc.devices(), x.to(device), nnc.use_device(device)",
    "device": "a device's name: 'cpu:0'", "device_put": "x.to(device)", "dtype": "a dtype, nnc.float32, or its name",
    "empty_strided": "nnc.empty", "enable_grad": "nothing: it is on", "errstate": "nnc.config.check_nan",
    "flatiter": "nnc.map, nnc.scan, or x.numpy()", "flatten": "x.flatten(), or nnc.ravel(x)",
    "fori_loop": "nnc.foreach or nnc.while_loop", "frombuffer": "nnc.asarray(numpy.frombuffer(...))",
    "fromiter": "nnc.asarray(list(...))", "frompyfunc": "nnc.host_map or nnc.callback",
    "geterr": "nnc.config.check_nan", "geterrcall": "nnc.config.check_nan", "inference_mode": "nnc.no_grad()",
    "is_tensor": "isinstance(x, nnc.Tensor)", "issubdtype": "nnc.isdtype", "jacfwd": "nnc.jacobian(f)",
    "jacrev": "nnc.jacobian(f)", "lax": "nnc.cond, nnc.scan, nnc.while_loop", "load": "nnc.io or nnc.load_graph",
    "masked_select": "x[mask]", "memmap": "nnc.io.map_arrays", "mgrid": "nnc.meshgrid or nnc.indices",
    "min_scalar_type": "nnc.result_type", "mintypecode": "nnc.result_type", "ndarray": "nnc.Tensor",
    "ndenumerate": "nnc.map, nnc.scan, or x.numpy()", "ndim": "x.ndim", "nditer": "nnc.map, nnc.scan, or x.numpy()",
    "nested_iters": "nnc.map, nnc.scan, or x.numpy()", "numel": "x.size", "numpy": "nnc's own functions",
    "ogrid": "nnc.meshgrid(..., sparse=True)", "pmap": "nnc.vmap(f)", "poly1d": "nnc.polyval",
    "promote_types": "nnc.result_type", "put": "x[index] = v, or x.at[index].set(v)", "putmask": "x[mask] = v",
    "r_": "nnc.concat", "rand": "nnc.Generator().uniform(shape)",
    "randint": "nnc.Generator().integers(low, high, shape)", "randn": "nnc.Generator().normal(shape)",
    "randperm": "nnc.Generator().permutation(n)", "rollaxis": "nnc.moveaxis", "s_": "slice(...)",
    "save": "nnc.io, nnc.save_graph, or numpy.save(file, x)", "savez": "numpy.savez(file, x=x), or nnc.io",
    "savez_compressed": "numpy.savez_compressed(file, x=x)", "seed": "nnc.manual_seed(seed)",
    "set_default_device": "nnc.use_device(device)", "set_default_dtype": "nnc.config.default_float = 'float64'",
    "seterr": "nnc.config.check_nan", "seterrcall": "nnc.config.check_nan", "size": "x.size",
    "special": "nnc's own functions: nnc.erf", "t": "x.T", "vectorize": "nnc.vmap(f)",
}  # fmt: skip
"""What to write instead of a name that is not taken."""

OF_TENSORS = {
    "add_": "x += y", "block_until_ready": "x.wait()", "bool": "x.astype(bool)", "byte": 'x.astype("uint8")',
    "chunk": "nnc.array_split(x, n)", "clone": "x.copy()", "contiguous": "x: tensors have no strides",
    "cpu": 'x.to("cpu:0"), or x.numpy()', "cuda": 'x.to("cuda:0")', "data": "x.detach()", "dim": "x.ndim",
    "div_": "x /= y", "double": 'x.astype("float64")', "expand": "nnc.broadcast_to(x, shape)", "fill": "x[...] = v",
    "fill_": "x[...] = v", "flags": "nothing: tensors have no strides", "flat": "x.ravel()",
    "float": 'x.astype("float32")', "half": 'x.astype("float16")', "int": 'x.astype("int32")', "is_cuda": "x.device",
    "itemset": "x[i] = v", "itemsize": "x.dtype.itemsize", "long": 'x.astype("int64")', "mul_": "x *= y",
    "new_ones": "nnc.ones(shape, dtype=x.dtype)", "new_zeros": "nnc.zeros(shape, dtype=x.dtype)",
    "nonzero": "nnc.nonzero(x)", "numel": "x.size", "permute": "x.transpose(...)", "put": "x[i] = v",
    "requires_grad_": "nnc.variable(x)", "sort": "nnc.sort(x)",
    "strides": "x.numpy().strides: tensors have no strides", "sub_": "x -= y", "t": "x.T", "to_numpy": "x.numpy()",
    "tobytes": "x.numpy().tobytes()", "type": "x.astype(dtype)", "unsqueeze": "nnc.expand_dims(x, axis)",
    "values": "x.numpy()", "view": "x.reshape(shape); x.numpy().view(dtype) for other bits", "zero_": "x[...] = 0",
}  # fmt: skip
"""What to write instead of an attribute of NumPy's or PyTorch's arrays."""


def taken(name: str) -> Any:
    """The function or dtype of ours that a name from elsewhere means; None if there is none."""
    if name in ALIASES:
        return getattr(public, ALIASES[name])
    if name in MAKERS:
        return array
    return transpose if name == "transpose" else DTYPES.get(name)


def function_called(name: str, space: str = "") -> Callable[..., Any] | None:
    """The public function of a name, here or elsewhere, in a name space: "", "linalg" or "fft"."""
    module = {"linalg": linalg, "fft": fft}.get(space, public)
    found = vars(module).get(name) if space == "" or name in module.__all__ else None
    return found if found is not None else taken(name) if space == "" else None


@located
def array(x: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of what is given, as `asarray` makes it."""
    return public.asarray(x, dtype, device=device, copy=copy)


@located
def transpose(x: ArrayLike, /, axes: Any = None) -> Tensor:
    """All axes reversed, or permuted as given, as NumPy has it."""
    v = public.asarray(x)
    return movement.permute_dims(v, tuple(reversed(range(v.ndim))) if axes is None else axes)


def unknown_name(name: str, package: ModuleType) -> UnknownNameError:
    """The error for a name that the package has not, with what to write instead."""
    return _missing(name, package, ADVICE.get(name) or ELSEWHERE.get(name))


def advise(module: ModuleType, advice: Mapping[str, str]) -> None:
    """Answer names that a module has not with ours."""
    def unknown(name: str) -> Any:
        hint = advice.get(name)
        if hint is None and name[:1] != "_" and callable(function_called(name)):
            hint = f"nnc.{ALIASES.get(name, name)}"
        raise _missing(name, module, hint)

    setattr(module, "__getattr__", unknown)  # noqa: B010


def _missing(name: str, module: ModuleType, hint: str | None) -> UnknownNameError:
    return _unknown(f"module {module.__name__!r} has no attribute {name!r}", name, module, hint)


def unknown_distribution(generator: Generator, name: str) -> Any:
    """Raise the error for an attribute that generators have not; `Generator.__getattr__`."""
    raise _unknown(f"'Generator' object has no attribute {name!r}", name, generator, OF_GENERATORS.get(name))


def unknown_attribute(tensor: Tensor, name: str) -> Any:
    """Raise the error for an attribute that tensors have not; `Tensor.__getattr__`."""
    hint = None
    if name[:1] != "_":
        hint = OF_TENSORS.get(name)
        if hint is None and callable(function_called(name)):
            hint = f"nnc.{ALIASES.get(name, name)}(x, ...)"
    raise _unknown(f"'Tensor' object has no attribute {name!r}", name, tensor, hint)


def _unknown(message: str, name: str, of: object, hint: str | None) -> UnknownNameError:
    """With what Python needs to suggest a name that is nearly the same."""
    error = UnknownNameError(message, hint=hint)
    error.name, error.obj = name, of
    return error
