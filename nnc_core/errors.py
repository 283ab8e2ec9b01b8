"""All classes of errors and warnings: `except nnc.errors.ShapeError`.

Each error is an `Error` and also the builtin that one would expect: `ShapeError` is a ValueError, `OutOfRangeError` an
IndexError.
"""

from __future__ import annotations

from nnc_core.base.errors import (
    AttributeValueError,
    AxisError,
    ConcretizationError,
    DataError,
    DeferredInplaceError,
    DetachedWarning,
    DeviceError,
    DeviceFailureError,
    DeviceLostError,
    DeviceMemoryError,
    DonatedError,
    DroppedWriteWarning,
    DTypeError,
    Error,
    ExchangeError,
    ExecutionError,
    FallbackWarning,
    FileFormatError,
    GradientError,
    GraphError,
    ImplicitComputeError,
    ImplicitComputeWarning,
    JitWarning,
    LeakedTraceError,
    LinAlgError,
    LostCellError,
    NonfiniteError,
    NonfiniteWarning,
    NotSupportedError,
    OperandError,
    OutOfRangeError,
    PluginError,
    ProtocolError,
    ReplacementCycleError,
    ReplacementError,
    ResumeWarning,
    RetraceWarning,
    SampleWarning,
    ShapeError,
    StateError,
    SymbolicDimensionError,
    SymbolValueError,
    UnassignedError,
    UnconnectedError,
    UnknownAttributeError,
    UnknownShapeError,
    UnusedInputWarning,
    VariableRebindError,
)
from nnc_core.base.missing import MissingFileError, MissingPackageError, NotAFileError

__all__ = [
    "AttributeValueError", "AxisError", "ConcretizationError", "DTypeError", "DataError",
    "DeferredInplaceError", "DetachedWarning", "DeviceError", "DeviceFailureError", "DeviceLostError",
    "DeviceMemoryError", "DonatedError", "DroppedWriteWarning", "Error", "ExchangeError", "ExecutionError",
    "FallbackWarning", "FileFormatError",
    "GradientError", "GraphError", "ImplicitComputeError", "ImplicitComputeWarning", "JitWarning",
    "LeakedTraceError", "LinAlgError", "LostCellError", "MissingFileError", "MissingPackageError",
    "NonfiniteError", "NonfiniteWarning", "NotAFileError", "NotSupportedError", "OperandError",
    "OutOfRangeError", "PluginError", "ProtocolError", "ReplacementCycleError", "ReplacementError",
    "ResumeWarning", "RetraceWarning", "SampleWarning", "ShapeError", "StateError", "SymbolValueError",
    "SymbolicDimensionError", "UnassignedError", "UnconnectedError", "UnknownAttributeError", "UnknownShapeError",
    "UnusedInputWarning", "VariableRebindError",
]  # fmt: skip
