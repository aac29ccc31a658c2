# SPDX-License-Identifier: Apache-2.0
import weft

from ..autograd import TensorOp
from .ops_mathematic import exp, reshape, broadcast_to, summation, kept_shape

__all__ = ["LogSoftmax", "logsoftmax", "LogSumExp", "logsumexp"]


class LogSoftmax(TensorOp):
    """Over the last axis."""

    def compute(self, z):
        a = z._a
        shifted = a - weft.max(a, axis=-1, keepdims=True)
        return z._like(shifted - weft.log(weft.sum(weft.exp(shifted), axis=-1, keepdims=True)))

    def gradient(self, out_grad, node):
        last = len(node.shape) - 1
        total = summation(out_grad, axes=(last,))
        spread = broadcast_to(reshape(total, (*node.shape[:-1], 1)), node.shape)
        return out_grad - exp(node) * spread


def logsoftmax(a):
    return LogSoftmax()(a)


class LogSumExp(TensorOp):
    def __init__(self, axes=None):
        self.axes = (axes,) if isinstance(axes, int) else axes

    def compute(self, z):
        out = weft.logsumexp(z._a, axis=None if self.axes is None else tuple(self.axes))
        return z._like(out.reshape((1,)) if out.ndim == 0 and z.default_dtype == "float32" else out)

    def gradient(self, out_grad, node):
        z = node.inputs[0]
        shape = kept_shape(z.shape, self.axes)
        spread = broadcast_to(reshape(out_grad, shape), z.shape)
        return spread * exp(z - broadcast_to(reshape(node, shape), z.shape))


def logsumexp(a, axes=None):
    return LogSumExp(axes=axes)(a)
