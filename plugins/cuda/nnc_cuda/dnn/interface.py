"""The interface of a vendor's library of neural networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from nnc_core.base.dtype import DType

Way: TypeAlias = Literal["conv", "conv_input_gradient", "conv_kernel_gradient"]


class TensorPlace(NamedTuple):
    """The shape of an array, how far elements lie apart along each axis, in elements, and the alignment of its address
    in bytes."""

    dtype: DType
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    alignment: int


class Convolution(NamedTuple):
    """y = relu(scale (x * kernel) + added + bias), or scale times one of the gradients of x * kernel, a
    cross-correlation; sums of halves are float32.

    Images are (n, channels, ...), kernels (outputs, channels of a group, ...), with two or three spatial axes; of the
    three arrays the one that `way` is to compute is written.
    """

    way: Way
    x: TensorPlace
    kernel: TensorPlace
    y: TensorPlace
    strides: tuple[int, ...]
    before: tuple[int, ...]
    """Zeros around images: at the beginning of each axis, and at its end."""
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    scale: float = 1.0
    added: TensorPlace | None = None
    """An image like y."""
    bias: TensorPlace | None = None
    """(1, outputs, 1, ...)."""
    relu: bool = False
    tf32: bool = False
    """Factors of float32 may be rounded to ten bits behind the point."""

    @property
    def arrays(self) -> list[TensorPlace]:
        """Those whose addresses a plan is given, in order."""
        return [self.x, self.kernel, self.y, *[one for one in (self.added, self.bias) if one is not None]]

    @property
    def written(self) -> tuple[int, ...]:
        """The numbers of the results among them."""
        return ({"conv": 2, "conv_input_gradient": 0, "conv_kernel_gradient": 1}[self.way],)


class Attention(NamedTuple):
    """softmax(scale query @ key.T + bias) @ value in each of (n, heads), and the logarithms of the sums of
    exponentials.

    Arrays are (n, heads, rows, features), features side by side; keys and values may have fewer heads than queries,
    each for as many that follow one another.  Products are added in float32.
    """

    query: TensorPlace
    key: TensorPlace
    value: TensorPlace
    result: TensorPlace
    sums: TensorPlace
    """(n, heads, rows, 1), float32."""
    scale: float
    causal: bool = False
    """Query i sees keys up to i, in order."""
    bias: TensorPlace | None = None
    """(n or 1, heads or 1, rows, keys), float32."""

    @property
    def arrays(self) -> list[TensorPlace]:
        """Those whose addresses a plan is given, in order."""
        return [*self[:5], *([] if self.bias is None else [self.bias])]

    @property
    def written(self) -> tuple[int, ...]:
        """The numbers of the results among them."""
        return (3, 4)


class AttentionGradients(NamedTuple):
    """The cotangents of queries, keys and values, from that of the result of such an attention, the result, and the
    logarithms of its sums."""

    query: TensorPlace
    key: TensorPlace
    value: TensorPlace
    cotangent: TensorPlace
    sums: TensorPlace
    """(n, heads, rows, 1), float32."""
    result: TensorPlace
    of_query: TensorPlace
    of_key: TensorPlace
    of_value: TensorPlace
    scale: float
    causal: bool = False
    ordered: bool = True
    """Each sum is taken in one order, in a workspace of as many halves as there are scores."""
    bias: TensorPlace | None = None
    """(n or 1, heads or 1, rows, keys), float32."""

    @property
    def arrays(self) -> list[TensorPlace]:
        """Those whose addresses a plan is given, in order."""
        return [*self[:9], *([] if self.bias is None else [self.bias])]

    @property
    def written(self) -> tuple[int, ...]:
        """The numbers of the results among them."""
        return (6, 7, 8)


Problem: TypeAlias = Convolution | Attention | AttentionGradients


class BoundPlan(Protocol):
    """A plan with its arrays."""

    def enqueue(self, stream: int) -> None:
        """Enqueue it, whose workspace is its own until it is done: nothing is allocated, and the host waits for
        nothing.  CudaError if it is refused."""
        ...


class DnnPlan(Protocol):
    """An algorithm for problems of one kind."""

    workspace: int
    """Bytes that it wants."""

    def bind(self, addresses: Sequence[int], workspace: int) -> BoundPlan:
        """The plan for arrays at addresses, those of the problem's `arrays`."""
        ...


class Dnn(Protocol):
    """The library on one device.  Any thread may call it."""

    def plan(self, problem: Problem) -> DnnPlan | None:
        """The plan of a problem, made once and kept; None where the library has none."""
        ...
