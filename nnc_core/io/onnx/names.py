"""Names that files hold."""

ONNX_MODULE = "nnc.io.OnnxModule"
"""The class of modules that ONNX models are, in files of modules."""

OWN_DOMAIN = "nnc"
"""The domain of functions that models bring along, for operators of nnc's that ONNX does not have."""

PARAMETERS, BUFFERS, TRANSPOSED, STATE = "nnc.parameters", "nnc.buffers", "nnc.transposed", "nnc.iopairs"
"""Metadata of models that nnc writes, as JSON: the initialisers that are state, by name (an empty list says that all of
them are constants), and those that are not trained; of those that are stored with their axes in another order, the
order that gives ours; the pairs (output, input) that calls carry on."""
