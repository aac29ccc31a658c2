# SPDX-License-Identifier: Apache-2.0
from ..autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp


class MakeTensorTuple(TensorTupleOp):
    def compute(self, *args):
        return tuple(args)

    def gradient(self, out_grad, node):
        return tuple(out_grad[i] for i in range(len(out_grad)))


def make_tuple(*args):
    return MakeTensorTuple()(*args)


class TupleGetItem(TensorOp):
    def __init__(self, index):
        self.index = index

    def __call__(self, a, fold_const=True):
        if fold_const and isinstance(a.op, MakeTensorTuple):
            return a.inputs[self.index]
        return Tensor.make_from_op(self, [a])

    def compute(self, a):
        return a[self.index]

    def gradient(self, out_grad, node):
        parts = []
        for i, value in enumerate(node.inputs[0].realize_cached_data()):
            parts.append(out_grad if i == self.index else Tensor.make_const(value * 0.0))
        return make_tuple(*parts)


def tuple_get_item(value, index):
    return TupleGetItem(index)(value)


class FusedAddScalars(TensorTupleOp):
    def __init__(self, c0, c1):
        self.c0, self.c1 = c0, c1

    def compute(self, a):
        return a + self.c0, a + self.c1

    def gradient(self, out_grad, node):
        return out_grad[0] + out_grad[1]


def fused_add_scalars(x, c0, c1):
    return FusedAddScalars(c0, c1)(x)


__all__ = [
    "MakeTensorTuple",
    "make_tuple",
    "TupleGetItem",
    "tuple_get_item",
    "FusedAddScalars",
    "fused_add_scalars",
    "TensorTuple",
]
