"""The 199 constructors of Owl's computation graph, in the order of its type."""

from __future__ import annotations

_TEXT = """
Noop Var Const Empty Zeros Ones Create Sequential Uniform Gaussian Bernoulli Init Get Set GetSlice SetSlice
GetFancy SetFancy Copy Reset Reshape Reverse Tile Repeat Pad Concatenate Stack Split Draw Map Fold Scan
OneHot OfArray Delay DelayArray LazyPrint Abs Neg Floor Ceil Round Sqr Sqrt Log Log2 Log10 Exp Sin Cos Tan
Sinh Cosh Tanh Asin Acos Atan Asinh Acosh Atanh Min Max Sum SumReduce Signum Sigmoid Relu Dawsn Min' Max'
Sum' LogSumExp' LogSumExp L1norm' L2norm' L2NormSqr' ClipByValue ClipByL2norm Pow ScalarPow PowScalar Atan2
ScalarAtan2 Atan2Scalar Hypot Min2 Max2 Add Sub Mul Div AddScalar SubScalar MulScalar DivScalar ScalarAdd
ScalarSub ScalarMul ScalarDiv FMA EltEqual EltNotEqual EltLess EltGreater EltLessEqual EltGreaterEqual
EltEqualScalar EltNotEqualScalar EltLessScalar EltGreaterScalar EltLessEqualScalar EltGreaterEqualScalar
Conv1d Conv2d Conv3d TransposeConv1d TransposeConv2d TransposeConv3d DilatedConv1d DilatedConv2d
DilatedConv3d MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d UpSampling2d Conv1dBackwardInput
Conv1dBackwardKernel Conv2dBackwardInput Conv2dBackwardKernel Conv3dBackwardInput Conv3dBackwardKernel
TransposeConv1dBackwardInput TransposeConv1dBackwardKernel TransposeConv2dBackwardInput
TransposeConv2dBackwardKernel TransposeConv3dBackwardInput TransposeConv3dBackwardKernel
DilatedConv1dBackwardInput DilatedConv1dBackwardKernel DilatedConv2dBackwardInput DilatedConv2dBackwardKernel
DilatedConv3dBackwardInput DilatedConv3dBackwardKernel MaxPool1dBackward MaxPool2dBackward MaxPool3dBackward
AvgPool1dBackward AvgPool2dBackward AvgPool3dBackward UpSampling2dBackward RowNum ColNum Row Rows CopyRowTo
CopyColTo Dot Inv Trace Transpose ToRows OfRows Scalar_Add Scalar_Sub Scalar_Mul Scalar_Div Scalar_Pow
Scalar_Atan2 Scalar_Abs Scalar_Neg Scalar_Sqr Scalar_Sqrt Scalar_Exp Scalar_Log Scalar_Log2 Scalar_Log10
Scalar_Signum Scalar_Floor Scalar_Ceil Scalar_Round Scalar_Sin Scalar_Cos Scalar_Tan Scalar_Sinh Scalar_Cosh
Scalar_Tanh Scalar_Asin Scalar_Acos Scalar_Atan Scalar_Asinh Scalar_Acosh Scalar_Atanh Scalar_Relu
Scalar_Dawsn Scalar_Sigmoid Fused_Adagrad
"""
NAMES: tuple[str, ...] = tuple(_TEXT.split())
