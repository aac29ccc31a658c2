# SPDX-License-Identifier: Apache-2.0
"""Collectives on arrays and tensors. Every rank of the group calls the same one, with equal shapes and types.

They return new arrays and leave their argument alone. On cards they are ordered with weft's kernels and do not stop the host. With `async_op=True` they
return a Work; its wait() gives the result. On tensors that require gradients they are differentiable, except send and recv and the
combinations other than sum and mean. Alone in a group, each gives back its argument.
"""

from __future__ import annotations

import weft

from .. import _core
from .._errors import error
from ..autograd import Function
from .group import resolve

_OPS = ("sum", "mean", "prod", "max", "min")


class Work:
    """A collective under way. wait() returns its result; the second time too."""

    def __init__(self, finish):
        self._finish, self._done, self._result = finish, False, None

    def wait(self):
        if not self._done:
            self._result, self._done = self._finish(), True
        return self._result


def _given(work, async_op):
    return work if async_op else work.wait()


def _compared(group, name, x, detail=""):
    """In the debug mode: the same call on every rank, or DeviceError `distributed.mismatch` on all of them."""
    group.job.check()
    if not group.job.debug or group.host is None:
        return
    mine = f"{name}{detail} of {x.dtype}{list(x.shape)}"
    all_ranks = group.host.gather_values(mine)
    if len(set(all_ranks)) > 1:
        raise error(
            weft.DeviceError,
            "distributed.mismatch",
            f"ranks have fallen out of step at a collective: this one, rank {group.rank}, calls {mine}",
            [f"rank {r}: {text}" for r, text in enumerate(all_ranks)],
            help="every rank of a group must call the same collectives in the same order with equal shapes and types",
        )


def _array(x, name):
    if isinstance(x, (weft.NDArray, weft.Tensor)):
        return x.data if isinstance(x, weft.Tensor) else x
    raise error(
        weft.DTypeError,
        "distributed.argument",
        f"{name} takes an array or a tensor, got a {type(x).__name__}",
        help="weft.asarray(x) makes one of numbers and lists",
    )


def _known(op):
    if op not in _OPS:
        raise error(
            weft.ArgumentError,
            "distributed.op",
            f"the combination {op!r} is unknown",
            [f"legal: {', '.join(_OPS)}"],
        )


def _split_extent(x, group, name):
    n = x.shape[0] if x.ndim else 0
    if n % group.size:
        raise error(
            weft.ShapeError,
            "distributed.extent",
            f"{name} among {group.size} ranks cuts axis 0 of shape {tuple(x.shape)}",
            [f"legal: an extent that {group.size} divides"],
            help="pad the axis, or gather and slice",
        )
    return n // group.size


class _Moved:
    """An array as its group's transport takes it: compact, on a device that the transport reaches, in a type that it combines."""

    def __init__(self, group, x, arithmetic):
        name = x.device.name
        self.device, self.dtype = x.device, x.dtype
        self.transport = group.transport(name)
        if self.transport is None:  # devices without a transport go through host memory
            self.transport, x = group.host, x.to("cpu")
        wide = self.transport.reduces(str(x.dtype)) if arithmetic else str(x.dtype)
        self.parts = wide in ("complex64", "complex128") and self.transport.name != "mpi"
        if arithmetic and self.parts:
            x = weft.stack([weft.real(x), weft.imag(x)], axis=-1)
            wide = str(x.dtype)
        if wide != str(x.dtype):
            x = x.astype(getattr(weft, wide))
        self.sent = x if x.is_compact() and x.offset == 0 else x.copy()
        self.arithmetic = arithmetic

    def empty(self, shape):
        if self.arithmetic and self.parts:
            shape = (*shape, 2)
        return weft.empty(shape, dtype=self.sent.dtype, device=self.sent.device)

    def back(self, result):
        if self.arithmetic and self.parts:
            result = (result[..., 0] + 1j * result[..., 1]).astype(self.dtype)
        if result.dtype != self.dtype:
            result = result.astype(self.dtype)
        return result if result.device.name == self.device.name else result.to(self.device)


def _no_complex_order(x, op, name):
    if op in ("max", "min", "prod") and weft.isdtype(x.dtype, "complex floating"):
        raise error(
            weft.DTypeError,
            "distributed.dtype",
            f"{name} of {x.dtype} with {op}",
            ["legal for complex numbers: sum, mean"],
        )


def _divided(result, op, size):
    if op != "mean":
        return result
    if weft.isdtype(result.dtype, ("integral", "bool")):
        raise error(
            weft.DTypeError,
            "distributed.dtype",
            f"the mean of {result.dtype} over ranks",
            ["legal: floating-point and complex types"],
            help='x.astype("float32") first',
        )
    return result / size


def _start_all_reduce(x, op, group):
    x = _array(x, "all_reduce")
    _known(op)
    _no_complex_order(x, op, "all_reduce")
    _compared(group, f"all_reduce({op})", x)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, True)
    out = moved.empty(x.shape)
    done = moved.transport.all_reduce(moved.sent, out, "sum" if op == "mean" else op)

    def finish():
        done()
        return _divided(moved.back(out), op, group.size)

    return Work(finish)


def _start_all_gather(x, group):
    x = _array(x, "all_gather")
    _compared(group, "all_gather", x)
    if group.size == 1:
        return Work(lambda: x)
    rows = x.reshape((1, *x.shape)) if x.ndim == 0 else x
    moved = _Moved(group, rows, False)
    out = moved.empty((group.size * rows.shape[0], *rows.shape[1:]))
    done = moved.transport.all_gather(moved.sent, out)

    def finish():
        done()
        return moved.back(out)

    return Work(finish)


def _start_reduce_scatter(x, op, group):
    x = _array(x, "reduce_scatter")
    _known(op)
    _no_complex_order(x, op, "reduce_scatter")
    n = _split_extent(x, group, "reduce_scatter")
    _compared(group, f"reduce_scatter({op})", x)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, True)
    out = moved.empty((n, *x.shape[1:]))
    done = moved.transport.reduce_scatter(moved.sent, out, "sum" if op == "mean" else op)

    def finish():
        done()
        return _divided(moved.back(out), op, group.size)

    return Work(finish)


def _start_all_to_all(x, group):
    x = _array(x, "all_to_all")
    _split_extent(x, group, "all_to_all")
    _compared(group, "all_to_all", x)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, False)
    out = moved.empty(x.shape)
    done = moved.transport.all_to_all(moved.sent, out)

    def finish():
        done()
        return moved.back(out)

    return Work(finish)


def _start_broadcast(x, root, group):
    x = _array(x, "broadcast")
    _peer(root, group, "broadcast", itself=True)
    _compared(group, f"broadcast(root={root})", x)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, False)
    held = moved.sent if moved.sent is not x and group.rank != root else moved.sent.copy()
    done = moved.transport.broadcast(held, root)

    def finish():
        done()
        return moved.back(held)

    return Work(finish)


def _peer(peer, group, name, itself=False):
    if (
        not isinstance(peer, int)
        or not 0 <= peer < group.size
        or (peer == group.rank and not itself)
    ):
        others = "" if itself else f", not {group.rank} itself"
        raise error(
            weft.ArgumentError,
            "distributed.rank",
            f"{name} with rank {peer!r}",
            [f"legal: 0 to {group.size - 1}{others}"],
        )


def _linked(x):
    return isinstance(x, weft.Tensor) and x.requires_grad and _core.grad_enabled()


def _plain(x, result):
    return weft.Tensor(result, requires_grad=False) if isinstance(x, weft.Tensor) else result


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, x, op, group):
        ctx.op, ctx.group = op, group
        return _start_all_reduce(x, op, group).wait()

    @staticmethod
    def backward(ctx, g):
        return weft.Tensor(_start_all_reduce(g, ctx.op, ctx.group).wait()), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, ctx.shape = group, x.shape
        return _start_all_gather(x, group).wait()

    @staticmethod
    def backward(ctx, g):
        part = _start_reduce_scatter(g, "sum", ctx.group).wait()
        return weft.Tensor(part.reshape(ctx.shape)), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, x, op, group):
        ctx.op, ctx.group = op, group
        return _start_reduce_scatter(x, op, group).wait()

    @staticmethod
    def backward(ctx, g):
        whole = _start_all_gather(g, ctx.group).wait()
        return weft.Tensor(_divided(whole, ctx.op, ctx.group.size)), None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return _start_all_to_all(x, group).wait()

    @staticmethod
    def backward(ctx, g):
        return weft.Tensor(_start_all_to_all(g, ctx.group).wait()), None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, x, root, group):
        ctx.root, ctx.group = root, group
        return _start_broadcast(x, root, group).wait()

    @staticmethod
    def backward(ctx, g):
        total = _start_all_reduce(g, "sum", ctx.group).wait()
        return (
            weft.Tensor(total if ctx.group.rank == ctx.root else weft.zeros_like(total)),
            None,
            None,
        )


def _no_gradient(name, op):
    if op not in ("sum", "mean"):
        raise error(
            weft.ArgumentError,
            "distributed.gradient",
            f"{name} with {op} of a tensor that requires gradients has no gradient",
            ["legal: sum, mean"],
            help="x.detach() where no gradient is wanted",
        )


def all_reduce(x, op="sum", group=None, async_op=False):
    """The combination of all ranks' arrays, on every rank: op "sum", "mean", "prod", "max" or "min".

    Floats of 16 bits are combined in float32 on the host and rounded once. Raises ArgumentError `distributed.op`, DTypeError for the mean of integers and
    for the order of complex numbers, DeviceError `distributed.peer` when another rank has failed.
    """
    group = resolve(group)
    if _linked(x):
        _known(op)
        _no_gradient("all_reduce", op)
        out = _AllReduce.apply(x, op, group)
        return Work(lambda: out) if async_op else out
    work = _start_all_reduce(x, op, group)
    return work if async_op else _plain(x, work.wait())


def all_gather(x, group=None, async_op=False):
    """All ranks' arrays, one behind the other along axis 0, on every rank; numbers become a row of them."""
    group = resolve(group)
    if _linked(x):
        out = _AllGather.apply(x, group)
        return Work(lambda: out) if async_op else out
    work = _start_all_gather(x, group)
    return work if async_op else _plain(x, work.wait())


def reduce_scatter(x, op="sum", group=None, async_op=False):
    """Of the combination of all ranks' arrays the part along axis 0 that has this rank's number.

    Raises ShapeError `distributed.extent` where the number of ranks does not divide the extent of axis 0.
    """
    group = resolve(group)
    if _linked(x):
        _known(op)
        _no_gradient("reduce_scatter", op)
        out = _ReduceScatter.apply(x, op, group)
        return Work(lambda: out) if async_op else out
    work = _start_reduce_scatter(x, op, group)
    return work if async_op else _plain(x, work.wait())


def all_to_all(x, group=None, async_op=False):
    """Part i along axis 0 goes to rank i; the result has the parts of all ranks in their order.

    Raises ShapeError `distributed.extent` where the number of ranks does not divide the extent of axis 0.
    """
    group = resolve(group)
    if _linked(x):
        out = _AllToAll.apply(x, group)
        return Work(lambda: out) if async_op else out
    work = _start_all_to_all(x, group)
    return work if async_op else _plain(x, work.wait())


def broadcast(x, root=0, group=None, async_op=False):
    """The array of rank `root`, on every rank. All ranks hand over arrays of one shape and type."""
    group = resolve(group)
    if _linked(x):
        out = _Broadcast.apply(x, root, group)
        return Work(lambda: out) if async_op else out
    work = _start_broadcast(x, root, group)
    return work if async_op else _plain(x, work.wait())


def _refuse_linked(x, name):
    if _linked(x):
        raise error(
            weft.ArgumentError,
            "distributed.gradient",
            f"{name} of a tensor that requires gradients: no gradient passes between two ranks this way",
            help="all_to_all and broadcast are differentiable; or x.detach()",
        )


def send(x, to, group=None, async_op=False):
    """Hands an array to rank `to`, which calls recv. Raises ArgumentError `distributed.rank` for ranks outside the group."""
    group = resolve(group)
    _refuse_linked(x, "send")
    _peer(to, group, "send")
    array = _array(x, "send")
    group.job.check()
    moved = _Moved(group, array, False)
    done = moved.transport.send(moved.sent, to)
    return _given(Work(lambda: done() and None), async_op)


def recv(like, source, group=None, async_op=False):
    """The array that rank `source` sends: of the shape, type and device of `like`, which is left alone."""
    group = resolve(group)
    _peer(source, group, "recv")
    array = _array(like, "recv")
    group.job.check()
    moved = _Moved(group, array, False)
    held = moved.empty(array.shape)
    done = moved.transport.recv(held, source)

    def finish():
        done()
        return _plain(like, moved.back(held))

    return _given(Work(finish), async_op)


def barrier(group=None):
    """Returns when every rank of the group has come here. Work on cards that was issued before has ended too."""
    group = resolve(group)
    group.job.check()
    if group.size == 1:
        return
    if group._cards is not None:
        group._cards._anchor.device.synchronize()
    one = weft.zeros((1,), dtype=weft.float32)
    group.host.all_reduce(one, weft.empty((1,), dtype=weft.float32), "sum")()
