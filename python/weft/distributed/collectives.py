# SPDX-License-Identifier: Apache-2.0
"""Collectives on arrays and tensors. Every rank of the group calls the same one, with equal shapes and types.

They return new arrays and leave their argument alone. On cards they are ordered with weft's kernels and do not stop the host. With `async_op=True` they
return a Work; its wait() gives the result. On tensors that require gradients they are differentiable, except send and recv and the
combinations other than sum and mean. Alone in a group, each gives back its argument (all_gather a number as a row of one).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft

from .._core import shown
from .. import _core
from .._errors import error
from .._traced import Traced, refuse
from ..autograd import Function
from .group import Group, rank_of, resolve

_OPS = ("sum", "mean", "prod", "max", "min")
_ORDERED = frozenset(("max", "min", "prod"))


class Work:
    """A collective under way. wait() returns its result; the second time too."""

    def __init__(self, finish: Callable[[], Any]) -> None:
        self._finish, self._done, self._result = finish, False, None

    def wait(self) -> Any:
        if not self._done:
            self._result, self._done = self._finish(), True
        return self._result


def _compared(group, name, x, detail=""):
    """Notes the call. In the debug mode: the same call on every rank, or DeviceError `distributed.mismatch` on all of them."""
    group.job.check()
    if group.record is not None:
        group.record.note(name, detail, x.dtype, x.shape)
    if not group.job.debug or group.host is None:
        return
    mine = f"{name}({detail}) of {x.dtype}{list(x.shape)}"
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
    if isinstance(x, Traced):
        refuse(f"the compiled function calls {name} on a traced value", "call it outside the compiled function")  # fmt: skip
    raise error(
        weft.DTypeError,
        "distributed.argument",
        f"{name} takes an array or a tensor, got a {type(x).__name__}",
        help="weft.asarray(x) makes one of numbers and lists",
    )


def _split_extent(x, group, name):
    n = x.shape[0] if x.ndim else 0
    if x.ndim == 0 or n % group.size:
        raise error(
            weft.ShapeError,
            "distributed.extent",
            f"{name} among {group.size} ranks cuts axis 0 of shape {tuple(x.shape)}",
            [f"legal: an axis 0 with an extent that {group.size} divides"],
            help="pad the axis, or gather and slice",
        )
    return n // group.size


class _Moved:
    """An array as its group's transport takes it: compact, on a device that the transport reaches, in a type that it combines."""

    __slots__ = ("device", "dtype", "transport", "sent", "direct")

    def __init__(self, group, x, arithmetic):
        device = self.device = x.device
        dtype = self.dtype = x.dtype
        transport, direct = group.transport(device.name), True
        if transport is None:  # devices without a transport go through host memory
            transport, x, direct = group.host, x.to("cpu"), False
        if arithmetic:
            name = str(dtype)
            wide = transport.reduces(name)
            if wide != name:
                x, direct = x.astype(getattr(weft, wide)), False
        self.transport, self.direct = transport, direct
        self.sent = x if x.is_compact() and x.offset == 0 else x.copy()

    def empty(self, shape):
        sent = self.sent
        return weft.empty(shape, dtype=sent.dtype, device=sent.device)

    def back(self, result):
        if self.direct:
            return result
        if result.dtype != self.dtype:
            result = result.astype(self.dtype)
        return result if result.device.name == self.device.name else result.to(self.device)


def _combinable(x, op, name):
    """Refuses combinations that are unknown, or that the type of `x` lacks, before anything is sent."""
    if op == "sum":
        return
    if op not in _OPS:
        raise error(
            weft.ArgumentError,
            "distributed.op",
            f"the combination {shown(op)} is unknown",
            [f"legal: {', '.join(_OPS)}"],
        )
    if op in _ORDERED and weft.isdtype(x.dtype, "complex floating"):
        raise error(
            weft.DTypeError,
            "distributed.dtype",
            f"{name} of {x.dtype} with {op}",
            ["legal for complex numbers: sum, mean"],
        )
    if op == "mean" and weft.isdtype(x.dtype, ("integral", "bool")):
        raise error(
            weft.DTypeError,
            "distributed.dtype",
            f"the mean of {x.dtype} over ranks",
            ["legal: floating-point and complex types"],
            help='x.astype("float32") first',
        )


# Sums and products of truth values: any, and all. A sum of their bytes is 0 again on 256 ranks.
_OF_TRUTH = {"sum": "max", "prod": "min"}


def _reduced(moved, out, op, group, start, overlap):
    """Starts a reduction of `moved` into `out`."""
    if moved.dtype == weft.bool:
        op = _OF_TRUTH.get(op, op)
    return _moved_by(moved, out, start(moved.sent, out, op, overlap))


def _moved_by(moved, out, done):
    def finish():
        done()
        return moved.back(out)

    return Work(finish)


def _start_all_reduce(x, op, group, overlap=False):
    x = _array(x, "all_reduce")
    _combinable(x, op, "all_reduce")
    _compared(group, "all_reduce", x, op)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, True)
    out = moved.empty(x.shape)
    return _reduced(moved, out, op, group, moved.transport.all_reduce, overlap)


def reduce_together(arrays: Any, op: str, group: Group | None) -> Any:
    """A Work for the combinations of several arrays of one type and device, in their order: beside other work of the device.

    A transport that takes several at once reads them where they lie; for others they travel in one message.
    """
    first = arrays[0]
    name, transport = str(first.dtype), group.transport(first.device.name)
    together = sum(a.nbytes for a in arrays)
    if transport is None or not transport.several(together) or transport.reduces(name) != name:
        flat = [a.reshape((-1,)) for a in arrays]
        whole = flat[0] if len(flat) == 1 else weft.concat(flat, axis=0)
        return _Parts(_start_all_reduce(whole, op, group, overlap=True), arrays)
    moved = [_Moved(group, a, True) for a in arrays]
    for a in arrays:
        _combinable(a, op, "all_reduce")
        _compared(group, "all_reduce", a, op)
    out = [m.empty(a.shape) for m, a in zip(moved, arrays)]
    done = transport.all_reduce_several([m.sent for m in moved], out, op)

    def finish():
        done()
        return out

    return Work(finish)


class _Parts(Work):
    """Arrays that travel as one."""

    def __init__(self, whole, arrays):
        shapes = [(a.size, a.shape) for a in arrays]

        def finish():
            flat, at, out = whole.wait(), 0, []
            for size, shape in shapes:
                out.append(flat[at : at + size].reshape(shape))
                at += size
            return out

        super().__init__(finish)


def _start_all_gather(x, group, overlap=False):
    x = _array(x, "all_gather")
    _compared(group, "all_gather", x)
    rows = x.reshape((1,)) if x.ndim == 0 else x
    if group.size == 1:
        return Work(lambda: rows)
    moved = _Moved(group, rows, False)
    out = moved.empty((group.size * rows.shape[0], *rows.shape[1:]))
    return _moved_by(moved, out, moved.transport.all_gather(moved.sent, out, overlap))


def _start_reduce_scatter(x, op, group, overlap=False):
    x = _array(x, "reduce_scatter")
    _combinable(x, op, "reduce_scatter")
    n = _split_extent(x, group, "reduce_scatter")
    _compared(group, "reduce_scatter", x, op)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, True)
    out = moved.empty((n, *x.shape[1:]))
    return _reduced(moved, out, op, group, moved.transport.reduce_scatter, overlap)


def _start_all_to_all(x, group, overlap=False):
    x = _array(x, "all_to_all")
    _split_extent(x, group, "all_to_all")
    _compared(group, "all_to_all", x)
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, False)
    out = moved.empty(x.shape)
    return _moved_by(moved, out, moved.transport.all_to_all(moved.sent, out, overlap))


def _start_broadcast(x, root, group, overlap=False):
    x = _array(x, "broadcast")
    _peer(root, group, "broadcast", itself=True)
    _compared(group, "broadcast", x, f"root={root}")
    if group.size == 1:
        return Work(lambda: x)
    moved = _Moved(group, x, False)
    out = moved.empty(x.shape)
    return _moved_by(moved, out, moved.transport.broadcast(moved.sent, out, root, overlap))


def _peer(peer, group, name, itself=False):
    number = rank_of(peer)
    if not 0 <= number < group.size or (number == group.rank and not itself):
        others = "" if itself else f", not {group.rank} itself"
        raise error(
            weft.ArgumentError,
            "distributed.rank",
            f"{name} with rank {shown(peer)}",
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
        return all_reduce(g, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, ctx.shape = group, x.shape
        return _start_all_gather(x, group).wait()

    @staticmethod
    def backward(ctx, g):
        return reduce_scatter(g, "sum", ctx.group).reshape(ctx.shape), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, x, op, group):
        ctx.op, ctx.group = op, group
        return _start_reduce_scatter(x, op, group).wait()

    @staticmethod
    def backward(ctx, g):
        whole = all_gather(g, ctx.group)
        return whole / ctx.group.size if ctx.op == "mean" else whole, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return _start_all_to_all(x, group).wait()

    @staticmethod
    def backward(ctx, g):
        return all_to_all(g, ctx.group), None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, x, root, group):
        ctx.root, ctx.group = root, group
        return _start_broadcast(x, root, group).wait()

    @staticmethod
    def backward(ctx, g):
        total = all_reduce(g, "sum", ctx.group)
        if ctx.group.rank != ctx.root:
            total = weft.Tensor(weft.zeros_like(total.data), requires_grad=False)
        return total, None, None


def _no_gradient(name, op):
    if op not in ("sum", "mean"):
        raise error(
            weft.ArgumentError,
            "distributed.gradient",
            f"{name} with {op} of a tensor that requires gradients has no gradient",
            ["legal: sum, mean"],
            help="x.detach() where no gradient is wanted",
        )


def all_reduce(x: Any, op: str = "sum", group: Group | None = None, async_op: bool = False) -> Any:
    """The combination of all ranks' arrays, on every rank: op "sum", "mean", "prod", "max" or "min".

    Floats of 8 and 16 bits are combined in float32 on the host and rounded once. Raises ArgumentError `distributed.op`, DTypeError for the mean of integers and
    for the order of complex numbers, DeviceError `distributed.peer` when another rank has failed.
    """
    group = resolve(group)
    if _linked(x):
        _combinable(x, op, "all_reduce")
        _no_gradient("all_reduce", op)
        out = _AllReduce.apply(x, op, group)
        return Work(lambda: out) if async_op else out
    work = _start_all_reduce(x, op, group, async_op)
    return work if async_op else _plain(x, work.wait())


def all_gather(x: Any, group: Group | None = None, async_op: bool = False) -> Any:
    """All ranks' arrays, one behind the other along axis 0, on every rank; numbers become a row of them."""
    group = resolve(group)
    if _linked(x):
        out = _AllGather.apply(x, group)
        return Work(lambda: out) if async_op else out
    work = _start_all_gather(x, group, async_op)
    return work if async_op else _plain(x, work.wait())


def reduce_scatter(
    x: Any, op: str = "sum", group: Group | None = None, async_op: bool = False
) -> Any:
    """Of the combination of all ranks' arrays the part along axis 0 that has this rank's number.

    Raises ShapeError `distributed.extent` where the number of ranks does not divide the extent of axis 0.
    """
    group = resolve(group)
    if _linked(x):
        _combinable(x, op, "reduce_scatter")
        _no_gradient("reduce_scatter", op)
        out = _ReduceScatter.apply(x, op, group)
        return Work(lambda: out) if async_op else out
    work = _start_reduce_scatter(x, op, group, async_op)
    return work if async_op else _plain(x, work.wait())


def all_to_all(x: Any, group: Group | None = None, async_op: bool = False) -> Any:
    """Part i along axis 0 goes to rank i; the result has the parts of all ranks in their order.

    Raises ShapeError `distributed.extent` where the number of ranks does not divide the extent of axis 0.
    """
    group = resolve(group)
    if _linked(x):
        out = _AllToAll.apply(x, group)
        return Work(lambda: out) if async_op else out
    work = _start_all_to_all(x, group, async_op)
    return work if async_op else _plain(x, work.wait())


def broadcast(x: Any, root: int = 0, group: Group | None = None, async_op: bool = False) -> Any:
    """The array of rank `root`, on every rank. All ranks hand over arrays of one shape and type."""
    group = resolve(group)
    if _linked(x):
        out = _Broadcast.apply(x, root, group)
        return Work(lambda: out) if async_op else out
    work = _start_broadcast(x, root, group, async_op)
    return work if async_op else _plain(x, work.wait())


def _refuse_linked(x, name):
    if _linked(x):
        raise error(
            weft.ArgumentError,
            "distributed.gradient",
            f"{name} of a tensor that requires gradients: no gradient passes between two ranks this way",
            help="all_to_all and broadcast are differentiable; or x.detach()",
        )


def send(x: Any, to: int, group: Group | None = None, async_op: bool = False) -> Any:
    """Hands an array to rank `to`, which calls recv. Raises ArgumentError `distributed.rank` for ranks outside the group."""
    group = resolve(group)
    _refuse_linked(x, "send")
    _peer(to, group, "send")
    array = _array(x, "send")
    group.job.check()
    moved = _Moved(group, array, False)
    done = moved.transport.send(moved.sent, to, async_op)
    work = Work(lambda: done() and None)
    return work if async_op else work.wait()


def recv(like: Any, source: int, group: Group | None = None, async_op: bool = False) -> Any:
    """The array that rank `source` sends: of the shape, type and device of `like`, which is left alone."""
    group = resolve(group)
    _peer(source, group, "recv")
    array = _array(like, "recv")
    group.job.check()
    moved = _Moved(group, array, False)
    held = moved.empty(array.shape)
    done = moved.transport.recv(held, source, async_op)

    def finish():
        done()
        return _plain(like, moved.back(held))

    work = Work(finish)
    return work if async_op else work.wait()


def barrier(group: Group | None = None) -> None:
    """Returns when every rank of the group has come here. Work on cards that was issued before has ended too."""
    group = resolve(group)
    group.job.check()
    if group.size == 1:
        return
    if group._cards is not None:
        group._cards._anchor.device.synchronize()
    group.host.barrier()
