"""Published networks as modules.  Weights are drawn when a network is built; on the device `null` none are, which makes
building even the largest a matter of milliseconds:

    with nnc.use_device("null"):
        network = zoo.vgg16()
"""

from __future__ import annotations

from nnc_core.nn.zoo.densenet import DenseNet, densenet121
from nnc_core.nn.zoo.detection import (
    Detections,
    DetectionSettings,
    Losses,
    MaskRCNN,
    ProposalSettings,
    Targets,
    mask_rcnn,
)
from nnc_core.nn.zoo.efficientnet import EfficientNet, efficientnet_b0
from nnc_core.nn.zoo.inception import InceptionV3, inception_v3
from nnc_core.nn.zoo.inception_v1 import GoogLeNet, googlenet
from nnc_core.nn.zoo.lenet import lenet5, owl_lenet
from nnc_core.nn.zoo.lstm import LSTMClassifier, LSTMLanguageModel, lstm_classifier, lstm_language_model
from nnc_core.nn.zoo.mobilenet import MobileNetV2, mobilenet_v2
from nnc_core.nn.zoo.resnet import ResNet, resnet18, resnet34, resnet50, resnet101, resnet152
from nnc_core.nn.zoo.transformers import (
    Transformer,
    TransformerClassifier,
    TransformerLanguageModel,
    transformer,
    transformer_classifier,
    transformer_language_model,
)
from nnc_core.nn.zoo.vgg import vgg16

__all__ = [
    "DenseNet",
    "DetectionSettings",
    "Detections",
    "EfficientNet",
    "GoogLeNet",
    "InceptionV3",
    "LSTMClassifier",
    "LSTMLanguageModel",
    "Losses",
    "MaskRCNN",
    "MobileNetV2",
    "ProposalSettings",
    "ResNet",
    "Targets",
    "Transformer",
    "TransformerClassifier",
    "TransformerLanguageModel",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "lenet5",
    "lstm_classifier",
    "lstm_language_model",
    "mask_rcnn",
    "mobilenet_v2",
    "owl_lenet",
    "resnet101",
    "resnet152",
    "resnet18",
    "resnet34",
    "resnet50",
    "transformer",
    "transformer_classifier",
    "transformer_language_model",
    "vgg16",
]
