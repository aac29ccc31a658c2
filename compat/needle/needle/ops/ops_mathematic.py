# SPDX-License-Identifier: Apache-2.0
"""Operations and their gradients. compute() works on arrays, gradient() on tensors."""

import weft

from ..autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp

__all__ = [
    "EWiseAdd",
    "add",
    "AddScalar",
    "add_scalar",
    "EWiseMul",
    "multiply",
    "MulScalar",
    "mul_scalar",
    "EWisePow",
    "power",
    "PowerScalar",
    "power_scalar",
    "EWiseDiv",
    "divide",
    "DivScalar",
    "divide_scalar",
    "Transpose",
    "transpose",
    "Reshape",
    "reshape",
    "BroadcastTo",
    "broadcast_to",
    "Summation",
    "summation",
    "MatMul",
    "matmul",
    "Negate",
    "negate",
    "Log",
    "log",
    "Exp",
    "exp",
    "ReLU",
    "relu",
    "Tanh",
    "tanh",
    "Stack",
    "stack",
    "Split",
    "split",
    "Flip",
    "flip",
    "Dilate",
    "dilate",
    "UnDilate",
    "undilate",
    "Conv",
    "conv",
]


def kept_shape(shape, axes):
    """The shape with reduced axes of extent 1."""
    ndim = len(shape)
    axes = (
        range(ndim)
        if axes is None
        else [a % ndim for a in ((axes,) if isinstance(axes, int) else axes)]
    )
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def sum_to(t, shape):
    """Sums over what broadcasting to t's shape repeated."""
    if t.shape == tuple(shape):
        return t
    extra = len(t.shape) - len(shape)
    axes = tuple(
        i for i in range(len(t.shape)) if i < extra or (shape[i - extra] == 1 and t.shape[i] != 1)
    )
    return reshape(summation(t, axes), shape) if axes else reshape(t, shape)


class EWiseAdd(TensorOp):
    def compute(self, a, b):
        return a + b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return sum_to(out_grad, a.shape), sum_to(out_grad, b.shape)


class AddScalar(TensorOp):
    def __init__(self, scalar):
        self.scalar = scalar

    def compute(self, a):
        return a + self.scalar

    def gradient(self, out_grad, node):
        return out_grad


class EWiseMul(TensorOp):
    def compute(self, a, b):
        return a * b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return sum_to(out_grad * b, a.shape), sum_to(out_grad * a, b.shape)


class MulScalar(TensorOp):
    def __init__(self, scalar):
        self.scalar = scalar

    def compute(self, a):
        return a * self.scalar

    def gradient(self, out_grad, node):
        return out_grad * self.scalar


class EWisePow(TensorOp):
    def compute(self, a, b):
        return a**b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return out_grad * b * power(a, add_scalar(b, -1)), out_grad * node * log(a)


class PowerScalar(TensorOp):
    def __init__(self, scalar):
        self.scalar = scalar

    def compute(self, a):
        return a**self.scalar

    def gradient(self, out_grad, node):
        return out_grad * mul_scalar(power_scalar(node.inputs[0], self.scalar - 1), self.scalar)


class EWiseDiv(TensorOp):
    def compute(self, a, b):
        return a / b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return sum_to(out_grad / b, a.shape), sum_to(negate(out_grad * a / (b * b)), b.shape)


class DivScalar(TensorOp):
    def __init__(self, scalar):
        self.scalar = scalar

    def compute(self, a):
        return a / self.scalar

    def gradient(self, out_grad, node):
        return out_grad / self.scalar


class Transpose(TensorOp):
    """Exchanges two axes, the last two by default."""

    def __init__(self, axes=None):
        self.axes = axes

    def compute(self, a):
        i, j = self.axes or (a.ndim - 2, a.ndim - 1)
        return a.swapaxes(i, j)

    def gradient(self, out_grad, node):
        return transpose(out_grad, self.axes)


class Reshape(TensorOp):
    def __init__(self, shape):
        self.shape = shape

    def compute(self, a):
        return a.reshape(self.shape)

    def gradient(self, out_grad, node):
        return reshape(out_grad, node.inputs[0].shape)


class BroadcastTo(TensorOp):
    def __init__(self, shape):
        self.shape = shape

    def compute(self, a):
        return a._like(a._a.broadcast_to(tuple(self.shape)).copy())

    def gradient(self, out_grad, node):
        return sum_to(out_grad, node.inputs[0].shape)


class Summation(TensorOp):
    def __init__(self, axes=None):
        self.axes = axes

    def compute(self, a):
        return a.sum(self.axes)

    def gradient(self, out_grad, node):
        shape = node.inputs[0].shape
        return broadcast_to(reshape(out_grad, kept_shape(shape, self.axes)), shape)


class MatMul(TensorOp):
    def compute(self, a, b):
        return a @ b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        return sum_to(matmul(out_grad, transpose(b)), a.shape), sum_to(
            matmul(transpose(a), out_grad), b.shape
        )


class Negate(TensorOp):
    def compute(self, a):
        return -a

    def gradient(self, out_grad, node):
        return negate(out_grad)


class Log(TensorOp):
    def compute(self, a):
        return a.log()

    def gradient(self, out_grad, node):
        return out_grad / node.inputs[0]


class Exp(TensorOp):
    def compute(self, a):
        return a.exp()

    def gradient(self, out_grad, node):
        return out_grad * node


class ReLU(TensorOp):
    def compute(self, a):
        return a._like(weft.relu(a._a))

    def gradient(self, out_grad, node):
        x = node.realize_cached_data()
        mask = x._like(weft.astype(weft.greater(x._a, 0), x._a.dtype))
        return out_grad * Tensor.make_const(mask)


class Tanh(TensorOp):
    def compute(self, a):
        return a.tanh()

    def gradient(self, out_grad, node):
        return out_grad * (-(node * node) + 1)


class Stack(TensorOp):
    """Of a tuple of tensors, along a new axis."""

    def __init__(self, axis):
        self.axis = axis

    def compute(self, args):
        return args[0]._like(weft.stack([a._a for a in args], axis=self.axis))

    def gradient(self, out_grad, node):
        return split(out_grad, self.axis)


class Split(TensorTupleOp):
    """Into the slices along an axis."""

    def __init__(self, axis):
        self.axis = axis

    def compute(self, a):
        return tuple(a._like(x.copy()) for x in weft.unstack(a._a, axis=self.axis))

    def gradient(self, out_grad, node):
        return stack(out_grad, self.axis)


class Flip(TensorOp):
    def __init__(self, axes=None):
        self.axes = axes

    def compute(self, a):
        return a.flip(self.axes)

    def gradient(self, out_grad, node):
        return flip(out_grad, self.axes)


def _spread(ndim, axes, dilation):
    return tuple(slice(None, None, dilation + 1) if i in axes else slice(None) for i in range(ndim))


class Dilate(TensorOp):
    """Zeros after every entry along axes; axes that do not exist are ignored."""

    def __init__(self, axes, dilation):
        self.axes, self.dilation = axes, dilation

    def compute(self, a):
        shape = tuple(
            n * (self.dilation + 1) if i in self.axes else n for i, n in enumerate(a.shape)
        )
        out = weft.zeros(shape, dtype=a._a.dtype, device=a._a.device)
        out[_spread(a.ndim, self.axes, self.dilation)] = a._a
        return a._like(out)

    def gradient(self, out_grad, node):
        return undilate(out_grad, self.axes, self.dilation)


class UnDilate(TensorOp):
    def __init__(self, axes, dilation):
        self.axes, self.dilation = axes, dilation

    def compute(self, a):
        return a._like(a._a[_spread(a.ndim, self.axes, self.dilation)].copy())

    def gradient(self, out_grad, node):
        return dilate(out_grad, self.axes, self.dilation)


class Conv(TensorOp):
    """Images (n, h, w, c) with weights (k, k, c, o)."""

    def __init__(self, stride=1, padding=0):
        self.stride, self.padding = stride, padding

    def compute(self, a, b):
        p, s = self.padding, self.stride
        x = weft.pad(a._a, ((0, 0), (p, p), (p, p), (0, 0))) if p else a._a
        n, h, w, c = x.shape
        kh, kw, _, o = b.shape
        oh, ow = (h - kh) // s + 1, (w - kw) // s + 1
        sn, sh, sw, sc = x.strides
        windows = x.as_strided((n, oh, ow, kh, kw, c), (sn, sh * s, sw * s, sh, sw, sc))
        rows = windows.reshape((n * oh * ow, kh * kw * c))
        return a._like((rows @ b._a.reshape((kh * kw * c, o))).reshape((n, oh, ow, o)))

    def gradient(self, out_grad, node):
        x, w = node.inputs
        k = w.shape[0]
        if self.stride > 1:
            out_grad = dilate(out_grad, (1, 2), self.stride - 1)
        dx = conv(out_grad, transpose(flip(w, (0, 1)), (2, 3)), padding=k - 1 - self.padding)
        g = transpose(transpose(out_grad, (0, 1)), (1, 2))
        dw = conv(transpose(x, (0, 3)), g, padding=self.padding)
        return dx, transpose(transpose(dw, (0, 1)), (1, 2))


def add(a, b):
    return EWiseAdd()(a, b)


def add_scalar(a, scalar):
    return AddScalar(scalar)(a)


def multiply(a, b):
    return EWiseMul()(a, b)


def mul_scalar(a, scalar):
    return MulScalar(scalar)(a)


def power(a, b):
    return EWisePow()(a, b)


def power_scalar(a, scalar):
    return PowerScalar(scalar)(a)


def divide(a, b):
    return EWiseDiv()(a, b)


def divide_scalar(a, scalar):
    return DivScalar(scalar)(a)


def transpose(a, axes=None):
    return Transpose(axes)(a)


def reshape(a, shape):
    return Reshape(shape)(a)


def broadcast_to(a, shape):
    return BroadcastTo(shape)(a)


def summation(a, axes=None):
    return Summation(axes)(a)


def matmul(a, b):
    return MatMul()(a, b)


def negate(a):
    return Negate()(a)


def log(a):
    return Log()(a)


def exp(a):
    return Exp()(a)


def relu(a):
    return ReLU()(a)


def tanh(a):
    return Tanh()(a)


def stack(args, axis):
    from .ops_tuple import make_tuple

    return Stack(axis)(args if isinstance(args, TensorTuple) else make_tuple(*args))


def split(a, axis):
    return Split(axis)(a)


def flip(a, axes=None):
    return Flip(axes)(a)


def dilate(a, axes, dilation):
    return Dilate(axes, dilation)(a)


def undilate(a, axes, dilation):
    return UnDilate(axes, dilation)(a)


def conv(a, b, stride=1, padding=1):
    return Conv(stride, padding)(a, b)
