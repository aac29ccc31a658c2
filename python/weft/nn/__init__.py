# SPDX-License-Identifier: Apache-2.0
"""Layers of neural networks over weft.Tensor."""

from . import functional
from .attention import MultiHeadAttention, TransformerLayer
from .layers import (
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    GELU,
    Identity,
    LayerNorm,
    Linear,
    MSELoss,
    ReLU,
    Residual,
    Sequential,
    Sigmoid,
    Softmax,
    Tanh,
)
from .module import Module, Parameter
from .recurrent import LSTM, LSTMCell, RNN, RNNCell

__all__ = [
    "functional",
    "Module",
    "Parameter",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "Identity",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "ReLU",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "LSTM",
    "LSTMCell",
    "RNN",
    "RNNCell",
    "MultiHeadAttention",
    "TransformerLayer",
]
