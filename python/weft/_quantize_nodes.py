# SPDX-License-Identifier: Apache-2.0
"""The layers of a model in the form that weft.vta.quantize reads, whatever described the model."""

from __future__ import annotations

import math

from ._core import shown as _shown
from ._core import ArgumentError
from ._errors import error as _error


LEGAL = (
    "legal: Conv2d, BatchNorm2d behind a convolution, Linear, ReLU, ReLU6, MaxPool2d, AvgPool2d, averages over whole images, "
    "sums of two activations, concatenated channels, Flatten, Dropout, Identity"
)


def refuse(what, repair="replace the layer, or run it before or behind the quantised part"):
    raise _error(ArgumentError, "vta.quantize.layer", what, [LEGAL], help=repair)


class Node:
    """A layer: what it reads, and who reads it."""

    def __init__(self, op, name, args):
        self.op, self.name, self.target, self.args, self.users = op, name, name, tuple(args), {}
        for a in args:
            a.users[self] = None


def checked(seen):
    """`seen`, {node: (largest magnitude, shape)}, whose magnitudes are numbers."""
    for node, (largest, _) in seen.items():
        if not math.isfinite(largest):
            raise _error(
                ArgumentError,
                "vta.quantize.samples",
                f"the largest magnitude of {_shown(node.name)} over the samples is {largest}",
                ["rule: images and activations are finite, since scales come from them"],
                help="leave out images with NaN or infinities; look for the layer that makes them",
            )
    return seen
