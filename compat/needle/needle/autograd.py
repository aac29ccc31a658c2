# SPDX-License-Identifier: Apache-2.0
"""needle's graph of Values, kept in Python so that programs can look at every node."""

import numpy as np

import needle

from .backend_selection import BACKEND, NDArray, all_devices, array_api, cpu, default_device

LAZY_MODE = False
TENSOR_COUNTER = 0


class Op:
    """Something that computes arrays from arrays and knows its gradient."""

    def __call__(self, *args):
        raise NotImplementedError

    def compute(self, *args):
        raise NotImplementedError

    def gradient(self, out_grad, node):
        raise NotImplementedError(f"{type(self).__name__} has no gradient")

    def gradient_as_tuple(self, out_grad, node):
        out = self.gradient(out_grad, node)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)


class TensorOp(Op):
    def __call__(self, *args):
        return Tensor.make_from_op(self, args)


class TensorTupleOp(Op):
    def __call__(self, *args):
        return TensorTuple.make_from_op(self, args)


class Value:
    """A node: the operation, its inputs and the computed data."""

    op = None
    inputs = ()
    cached_data = None
    requires_grad = False

    def realize_cached_data(self):
        if self.cached_data is None:
            self.cached_data = self.op.compute(*[x.realize_cached_data() for x in self.inputs])
        return self.cached_data

    def is_leaf(self):
        return self.op is None

    def __del__(self):
        global TENSOR_COUNTER
        TENSOR_COUNTER -= 1

    def _init(self, op, inputs, *, num_outputs=1, cached_data=None, requires_grad=None):
        global TENSOR_COUNTER
        TENSOR_COUNTER += 1
        self.op, self.inputs, self.num_outputs, self.cached_data = (
            op,
            list(inputs),
            num_outputs,
            cached_data,
        )
        self.requires_grad = (
            any(x.requires_grad for x in inputs) if requires_grad is None else requires_grad
        )

    @classmethod
    def make_const(cls, data, *, requires_grad=False):
        value = cls.__new__(cls)
        if isinstance(data, Value):
            data = data.realize_cached_data()
        value._init(None, [], cached_data=data, requires_grad=requires_grad)
        return value

    @classmethod
    def make_from_op(cls, op, inputs):
        value = cls.__new__(cls)
        value._init(op, inputs)
        if not LAZY_MODE:
            if not value.requires_grad:
                return value.detach()
            value.realize_cached_data()
        return value


class TensorTuple(Value):
    """Several tensors as one node."""

    def __len__(self):
        return len(self.realize_cached_data())

    def __getitem__(self, index):
        return needle.ops.tuple_get_item(self, index)

    def tuple(self):
        return tuple(self[i] for i in range(len(self)))

    def __iter__(self):
        return iter(self.tuple())

    def __repr__(self):
        return f"needle.TensorTuple{self.tuple()}"

    def __add__(self, other):
        return needle.ops.make_tuple(*[a + b for a, b in zip(self.tuple(), other.tuple())])

    def detach(self):
        return TensorTuple.make_const(self.realize_cached_data())


class Tensor(Value):
    grad = None

    def __init__(self, array, *, device=None, dtype=None, requires_grad=True, **kwargs):
        if isinstance(array, Tensor):
            device = array.device if device is None else device
            dtype = array.dtype if dtype is None else dtype
            data = array.realize_cached_data()
            if device != array.device or dtype != array.dtype:
                data = array_api.array(array.numpy(), device=device, dtype=dtype)
        else:
            device = device or default_device()
            if (
                BACKEND == "np"
                or dtype is None
                or str(dtype) in ("float32", "bool")
                or not hasattr(array, "dtype")
            ):
                data = array_api.array(
                    array, device=device, dtype=dtype if BACKEND == "np" else "float32"
                )
            else:
                data = array_api.array(
                    np.asarray(array, dtype=dtype), device=device, dtype="float32"
                )
        self._init(None, [], cached_data=data, requires_grad=requires_grad)

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        assert isinstance(value, Tensor)
        assert value.dtype == self.dtype, f"{value.dtype} {self.dtype}"
        self.cached_data = value.realize_cached_data()

    def detach(self):
        return Tensor.make_const(self.realize_cached_data())

    shape = property(lambda self: self.realize_cached_data().shape)
    dtype = property(lambda self: self.realize_cached_data().dtype)
    device = property(lambda self: self.realize_cached_data().device)

    def backward(self, out_grad=None):
        if out_grad is None:
            out_grad = needle.init.ones(*self.shape, dtype=self.dtype, device=self.device)
        compute_gradient_of_variables(self, out_grad)

    def __repr__(self):
        return f"needle.Tensor({self.realize_cached_data()})"

    def __str__(self):
        return str(self.realize_cached_data())

    def numpy(self):
        return self.realize_cached_data().numpy()

    def __add__(self, other):
        return (
            needle.ops.EWiseAdd()(self, other)
            if isinstance(other, Tensor)
            else needle.ops.AddScalar(other)(self)
        )

    def __mul__(self, other):
        return (
            needle.ops.EWiseMul()(self, other)
            if isinstance(other, Tensor)
            else needle.ops.MulScalar(other)(self)
        )

    def __pow__(self, other):
        return (
            needle.ops.EWisePow()(self, other)
            if isinstance(other, Tensor)
            else needle.ops.PowerScalar(other)(self)
        )

    def __sub__(self, other):
        if isinstance(other, Tensor):
            return needle.ops.EWiseAdd()(self, needle.ops.Negate()(other))
        return needle.ops.AddScalar(-other)(self)

    def __rsub__(self, other):
        return needle.ops.AddScalar(other)(needle.ops.Negate()(self))

    def __truediv__(self, other):
        return (
            needle.ops.EWiseDiv()(self, other)
            if isinstance(other, Tensor)
            else needle.ops.DivScalar(other)(self)
        )

    def __matmul__(self, other):
        return needle.ops.MatMul()(self, other)

    matmul = __matmul__
    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return needle.ops.Negate()(self)

    def sum(self, axes=None):
        return needle.ops.Summation(axes)(self)

    def broadcast_to(self, shape):
        return needle.ops.BroadcastTo(shape)(self)

    def reshape(self, shape):
        return needle.ops.Reshape(shape)(self)

    def transpose(self, axes=None):
        return needle.ops.Transpose(axes)(self)


def sum_node_list(nodes):
    """Sum of gradients without a needless zero."""
    total = nodes[0]
    for node in nodes[1:]:
        total = total + node
    return total


def compute_gradient_of_variables(output_tensor, out_grad):
    """Sets .grad of every node that leads to the output."""
    incoming = {output_tensor: [out_grad]}
    for node in reversed(find_topo_sort([output_tensor])):
        if node not in incoming:
            continue
        node.grad = sum_node_list(incoming.pop(node))
        if node.op is None:
            continue
        for source, g in zip(node.inputs, node.op.gradient_as_tuple(node.grad, node)):
            incoming.setdefault(source, []).append(g)


def find_topo_sort(node_list):
    """Post-order, inputs in order; no recursion."""
    order, seen = [], set()
    for root in node_list:
        stack = [(root, iter(root.inputs))]
        if root in seen:
            continue
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            for source in rest:
                if source not in seen:
                    seen.add(source)
                    stack.append((source, iter(source.inputs)))
                    break
            else:
                stack.pop()
                order.append(node)
    return order
