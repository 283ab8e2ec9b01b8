"""All errors of nnc: one root, each also the builtin that a user would expect to catch."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as NumPyLinAlgError


class Error(Exception):
    """Root of all errors raised by nnc.

    The floor that raises says what went wrong; the floors above it complete the picture with `locate` (operator,
    operands, device, the user's line), so that a message is whole without any floor knowing more than it should.
    """

    lost: frozenset[str] = frozenset()
    """Names of the inputs whose memory a call of a compiled graph had begun to overwrite when it failed."""
    symbols: str | None = None
    """Names and specs of the symbols that were assigned, where a call that had waited for their shapes failed."""
    inner: str | None = None
    """The operator that failed, where the error names the function that users called instead."""

    def __init__(self, message: str, *, operator: str | None = None, operands: str | None = None,
                 device: str | None = None, line: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.operator, self.operands, self.device, self.line, self.hint = operator, operands, device, line, hint

    def locate(self, *, operator: str | None = None, operands: str | None = None, device: str | None = None,
               line: str | None = None, hint: str | None = None) -> Error:
        """Fill in what is not known yet; the innermost knowledge wins.  Returns self."""
        self.operator = self.operator or operator
        self.operands = self.operands or operands
        self.device = self.device or device
        self.line = self.line or line
        self.hint = self.hint or hint
        return self

    def called_as(self, function: str) -> None:
        """Name the function that users called, which the operator that failed is a part of."""
        if self.operator not in (None, function):
            self.inner = self.inner or self.operator
        self.operator = function

    def __str__(self) -> str:
        text = f"{self.operator}: {self.message}" if self.operator else self.message
        operands = f"{self.operands} of {self.inner}" if self.operands and self.inner else self.operands
        for label, part in (("inputs", operands), ("symbols", self.symbols), ("device", self.device),
                            ("at", self.line), ("try", self.hint)):
            if part:
                text += f"\n  {label}: {part}"
        return text


class ShapeError(Error, ValueError):
    """Shapes that do not fit each other or an attribute."""


class AxisError(Error, ValueError, IndexError):
    """An axis outside the dimensions of its array."""


class DTypeError(Error, TypeError):
    """A dtype that an operator or a device does not take."""


class AttributeValueError(Error, ValueError):
    """An attribute of an operator with a value outside its domain."""


class UnknownAttributeError(Error, TypeError):
    """An attribute that the operator does not have."""


class OperandError(Error, TypeError):
    """Something of a kind that is not taken there: no array or number for an operand, no function for a function."""


class ProtocolError(OperandError, AttributeError):
    """Something that does not have the methods by which arrays are exchanged."""


class UnknownNameError(Error, AttributeError):
    """A name that the package, or a tensor, does not have."""


class OutOfRangeError(Error, IndexError):
    """An index outside its axis."""

    noted: tuple[int, int] | None = None
    """The number of the check that failed in a kernel, and the value on which: who knows the command says the rest."""


class DeviceError(Error, ValueError):
    """An unknown device, or operands on different devices."""


class DeviceFailureError(Error, RuntimeError):
    """A driver or device that failed while it was used."""


class DeviceLostError(DeviceFailureError):
    """A device that does nothing any more, and has lost what was in its memory: `nnc.reopen` opens it anew, if its
    driver lets a process do so."""


class DeviceMemoryError(Error, MemoryError):
    """An allocation that the device cannot serve."""


class NotSupportedError(Error, NotImplementedError):
    """Something that this device, mode or version cannot do."""


class ReplacementError(Error, TypeError):
    """An operator layer whose replacement of an operator does not fit that operator."""


class ReplacementCycleError(ReplacementError):
    """A replacement that is made, in the end, of the operator that it replaces."""


class PluginError(Error, RuntimeError):
    """A plugin that is missing or broken."""


class SymbolicDimensionError(Error, TypeError):
    """A named dimension used where a number is needed."""


class SymbolValueError(Error, TypeError):
    """The value of a symbol was asked for; it has one only when its graph is called."""


class UnknownShapeError(SymbolValueError):
    """The shape of a symbol was asked for that has none until it is assigned."""

    behind: tuple[Any, ...] = ()
    """The placeholders of unknown shape that it depends on."""


class UnassignedError(Error, ValueError):
    """A placeholder was evaluated before it was assigned."""


class UnconnectedError(Error, ValueError):
    """An export whose inputs and outputs do not hang together."""


class VariableRebindError(Error, ValueError):
    """One tensor under two names, or one name for two tensors, where a graph needs one for the other."""


class DeferredInplaceError(Error, NotImplementedError):
    """An in-place write to an array that is not computed yet."""


class ImplicitComputeError(Error, RuntimeError):
    """A deferred value computed on the side, where `config.implicit_compute` forbids it."""


class ConcretizationError(SymbolValueError):
    """Python asked for the value of a tensor that is being traced."""


class LeakedTraceError(Error, RuntimeError):
    """A symbolic tensor used after the trace that made it has ended."""


class DonatedError(Error, RuntimeError):
    """A tensor used after it was donated to a compiled function."""


class GradientError(Error, ValueError):
    """A gradient that is not defined: of a non-scalar, of an integer, of an operator without a rule."""


class ExecutionError(Error, RuntimeError):
    """A command that failed for a reason that is none of nnc's: a host function, or a device's kernel, has raised."""


class NonfiniteError(Error, FloatingPointError):
    """A NaN or an infinity made of operands without one, where `config.check_nan` asks for it, or given to what needs
    finite numbers."""


class ExchangeError(Error, BufferError):
    """Memory that cannot be shared with another library, or not in the way it asks for."""


class LinAlgError(Error, NumPyLinAlgError):
    """A matrix without what was asked of it: singular, not positive definite, an iteration that does not converge."""


class LostCellError(Error, RuntimeError):
    """State that a failed call had begun to overwrite."""


class StateError(Error, ValueError):
    """Named state whose names are not those that a module or a minimiser has."""


class FileFormatError(Error, ValueError):
    """A file that is damaged or not what it should be."""


class DataError(Error, ValueError):
    """A data set that cannot be had or used."""


class GraphError(Error, ValueError):
    """A graph that is not well formed."""


class UnusedInputWarning(UserWarning):
    """An input that no output of an exported graph depends on."""


class ResumeWarning(UserWarning):
    """A saved run that goes on, though not bit for bit."""


class ImplicitComputeWarning(RuntimeWarning):
    """A deferred value computed on the side, where `config.implicit_compute` asks for a warning."""


class DetachedWarning(RuntimeWarning):
    """A value whose gradient is followed, handed to NumPy, where nothing follows it."""


class DroppedWriteWarning(UserWarning):
    """An item assignment to a tensor that nobody else holds, such as `x[0][1] = v`."""


class RetraceWarning(RuntimeWarning):
    """A function that is traced again and again."""


class JitWarning(RuntimeWarning):
    """Python that compiled code does once, while it is traced, although its results depend on it."""


class FallbackWarning(RuntimeWarning):
    """Work that is done somewhere slower than asked for."""


class NonfiniteWarning(RuntimeWarning):
    """Gradients that were not finite, so that an update was skipped, or a mean loss of an epoch that was not."""


class ModelWarning(UserWarning):
    """A model from elsewhere that is not what it declares, and runs nevertheless."""


class SampleWarning(UserWarning):
    """A sample of a data set that stands in for the whole."""


def as_error(error: Exception) -> Error:
    """The error itself if it is one of nnc's, else the one that stands for it where operators run."""
    if isinstance(error, Error):
        return error
    if isinstance(error, MemoryError):
        return DeviceMemoryError(str(error))
    return ExecutionError(f"{type(error).__name__}: {error}")
