# SPDX-License-Identifier: Apache-2.0
"""The functions of a needle backend module (raw handles in, raw handles out), over weft arrays."""

import types

import numpy as np

import weft


class Handle:
    """A flat float32 buffer: what needle calls the backend's Array."""

    def __init__(self, a):
        self.storage = a.handle

    @property
    def size(self):
        return self.storage.nbytes // 4

    def ptr(self):
        return self.storage.ptr()

    def __eq__(self, other):
        return isinstance(other, Handle) and self.storage == other.storage

    __hash__ = None


def _view(handle, shape=None, strides=None, offset=0):
    shape = (handle.size,) if shape is None else tuple(shape)
    return weft.NDArray.make(shape, strides=strides, handle=handle.storage, offset=offset)


def backend_module(name, device):
    tile = 4 if name == "cuda" else 8
    m = types.SimpleNamespace(device=device, __device_name__=name, __tile_size__=tile)
    m.Array = lambda size: Handle(weft.empty((size,), device=device))
    m.to_numpy = lambda a, shape, strides, offset: _view(a, shape, strides, offset).numpy()

    def from_numpy(source, out):
        _view(out)[...] = np.ascontiguousarray(source, dtype="float32").ravel()

    def fill(out, value):
        _view(out).fill(value)

    def compact(a, out, shape, strides, offset):
        _view(out, shape)[...] = _view(a, shape, strides, offset)

    def ewise_setitem(a, out, shape, strides, offset):
        _view(out, shape, strides, offset)[...] = _view(a, shape)

    def scalar_setitem(size, value, out, shape, strides, offset):
        _view(out, shape, strides, offset)[...] = value

    def matmul(a, b, out, rows, inner, cols):
        _view(out, (rows, cols))[...] = _view(a, (rows, inner)) @ _view(b, (inner, cols))

    def matmul_tiled(a, b, out, rows, inner, cols):
        def tiles(h, r, c):
            return _view(h, (r // tile, c // tile, tile, tile)).permute((0, 2, 1, 3))

        product = tiles(a, rows, inner).reshape((rows, inner)) @ tiles(b, inner, cols).reshape(
            (inner, cols)
        )
        tiles(out, rows, cols)[...] = product.reshape((rows // tile, tile, cols // tile, tile))

    def reduce(function):
        def run(a, out, reduce_size):
            _view(out)[...] = function(_view(a, (a.size // reduce_size, reduce_size)), axis=1)

        return run

    for f in (from_numpy, fill, compact, ewise_setitem, scalar_setitem, matmul, matmul_tiled):
        setattr(m, f.__name__, f)
    m.reduce_sum, m.reduce_max = reduce(weft.sum), reduce(weft.max)

    def binary(op):
        def ewise(a, b, out):
            _view(out)[...] = op(_view(a), _view(b)).astype("float32")

        def scalar(a, value, out):
            _view(out)[...] = op(_view(a), float(np.float32(value))).astype("float32")

        return ewise, scalar

    for short, op in dict(
        add=weft.add,
        mul=weft.multiply,
        div=weft.divide,
        maximum=weft.maximum,
        eq=weft.equal,
        ge=weft.greater_equal,
        power=weft.pow,
    ).items():
        ewise, scalar = binary(op)
        setattr(m, f"ewise_{short}", ewise)
        setattr(m, f"scalar_{short}", scalar)
    for short in ("log", "exp", "tanh"):

        def unary(a, out, op=getattr(weft, short)):
            _view(out)[...] = op(_view(a))

        setattr(m, f"ewise_{short}", unary)
    return m
