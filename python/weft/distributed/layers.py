# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights are shared by the ranks of a group (tensor parallel)."""

from __future__ import annotations

import math
from typing import Any

import weft
from weft import nn

from .._errors import error
from ..autograd import Function
from .collectives import _start_all_gather, _start_all_reduce, all_reduce
from .group import resolve

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class _Copy(Function):
    """Into a parallel part: the same on all ranks; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.data

    @staticmethod
    def backward(ctx, g):
        return all_reduce(g, "sum", ctx.group), None


class _Join(Function):
    """Out of a parallel part: the sum over ranks; its gradient is the same on all of them."""

    @staticmethod
    def forward(ctx, x, group):
        return _start_all_reduce(x, "sum", group).wait()

    @staticmethod
    def backward(ctx, g):
        return g, None


class _GatherLast(Function):
    """All ranks' parts along the last axis; of the gradient each takes its own part."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group, ctx.n = group, x.shape[-1]
        whole = _start_all_gather(weft.moveaxis(x.data, -1, 0), group).wait()
        return weft.moveaxis(whole, 0, -1).copy()

    @staticmethod
    def backward(ctx, g):
        at = ctx.group.rank * ctx.n
        return g[..., at : at + ctx.n], None


def _share(n, group, what):
    if n % group.size:
        raise error(
            weft.ShapeError,
            "distributed.extent",
            f"{what} {n} among {group.size} ranks",
            [f"legal: a number that {group.size} divides"],
        )
    return n // group.size


def _checked(layer, kinds, name, legal):
    if not isinstance(layer, kinds):
        raise error(
            weft.DTypeError,
            "distributed.layer",
            f"{name} takes the parameters of a layer, got a {type(layer).__name__}",
            [f"legal: {legal}"],
        )
    return layer


def _part(whole, axis, group):
    """This rank's part of a parameter along one axis, as a parameter; `_parted` tells norms over all parameters who has the rest."""
    n = whole.shape[axis] // group.size
    at = group.rank * n
    part = _copied(whole, whole.data[(slice(None),) * axis + (slice(at, at + n),)])
    part._parted = (group,)
    return part


def _copied(whole, array):
    """A parameter of these numbers; frozen where `whole` is."""
    made = nn.Parameter(array.copy())
    made.requires_grad = whole.requires_grad
    return made


class ColumnParallelLinear(nn.Module):
    """y = x W + b, each rank with a part of the columns of W. The result has this rank's columns, or all with gather=True.

    `linear` is a whole nn.Linear, equal on all ranks, whose part is taken.
    """

    def __init__(self, linear: nn.Module, group: Any = None, gather: bool = False) -> None:
        super().__init__()
        self._group, self.gather = resolve(group), gather
        _checked(linear, nn.Linear, "ColumnParallelLinear", "nn.Linear")
        _share(linear.weight.shape[1], self._group, "the columns of a weight,")
        self.weight = _part(linear.weight, 1, self._group)
        bias = getattr(linear, "bias", None)
        self.bias = None if bias is None else _part(bias, bias.ndim - 1, self._group)

    def forward(self, x: Any) -> Any:
        y = _Copy.apply(x, self._group) @ self.weight
        y = y if self.bias is None else y + self.bias
        return _GatherLast.apply(y, self._group) if self.gather else y


class RowParallelLinear(nn.Module):
    """y = x W + b, each rank with a part of the rows of W and the same part of x's last axis; every rank gets the whole y."""

    def __init__(self, linear: nn.Module, group: Any = None) -> None:
        super().__init__()
        self._group = resolve(group)
        _checked(linear, nn.Linear, "RowParallelLinear", "nn.Linear")
        _share(linear.weight.shape[0], self._group, "the rows of a weight,")
        self.weight = _part(linear.weight, 0, self._group)
        bias = getattr(linear, "bias", None)
        self.bias = None if bias is None else _copied(bias, bias.data)

    def forward(self, x: Any) -> Any:
        y = _Join.apply(x @ self.weight, self._group)
        return y if self.bias is None else y + self.bias


class ParallelEmbedding(nn.Module):
    """An embedding, each rank with a part of the rows. Indices outside the whole table raise IndexError."""

    def __init__(self, embedding: nn.Module, group: Any = None) -> None:
        super().__init__()
        _checked(embedding, nn.Embedding, "ParallelEmbedding", "nn.Embedding")
        self._group, self._rows = resolve(group), embedding.weight.shape[0]
        _share(self._rows, self._group, "the rows of an embedding,")
        self.weight = _part(embedding.weight, 0, self._group)
        padding = getattr(embedding, "padding_idx", None)
        self.padding_idx = None if padding is None else padding % self._rows

    def forward(self, index: Any) -> Any:
        index = index.data if isinstance(index, weft.Tensor) else weft.asarray(index)
        low, high = (int(f(index).item()) if index.size else 0 for f in (weft.min, weft.max))
        if low < 0 or high >= self._rows:
            raise error(
                weft.IndexError,
                "distributed.embedding",
                f"index {low if low < 0 else high} into an embedding of {self._rows} rows",
                [f"legal: 0 to {self._rows - 1}"],
            )
        n = self.weight.shape[0]
        own = index - self._group.rank * n
        here = (own >= 0) & (own < n)
        rows = nn.functional.embedding(weft.where(here, own, weft.zeros_like(own)), self.weight)
        if self.padding_idx is not None:
            rows = weft.where((index == self.padding_idx)[..., None], rows.detach(), rows)
        mask = here.astype(self.weight.dtype).reshape((*index.shape, 1))
        return _Join.apply(rows * weft.Tensor(mask, requires_grad=False), self._group)


class ParallelAttention(nn.Module):
    """Self-attention, each rank with a part of the heads. The four whole nn.Linear layers are equal on all ranks.

    x (batch, length, channels) gives the same shape on every rank.
    """

    def __init__(
        self,
        query: nn.Module,
        key: nn.Module,
        value: nn.Module,
        out: nn.Module,
        heads: int,
        group: Any = None,
        causal: bool = True,
    ) -> None:
        super().__init__()
        group = resolve(group)
        for name, layer in (("query", query), ("key", key), ("value", value)):
            _checked(layer, nn.Linear, "ParallelAttention", "nn.Linear")
            columns = layer.weight.shape[1]
            if columns % heads or columns != query.weight.shape[1]:
                raise error(
                    weft.ShapeError,
                    "distributed.extent",
                    f"the {name} layer has {columns} columns for {heads} heads",
                    [f"legal: equal numbers in query, key and value, which {heads} divides"],
                )
        self.heads, self.causal = _share(heads, group, "the number of heads,"), causal
        self.query, self.key, self.value = (
            ColumnParallelLinear(x, group) for x in (query, key, value)
        )
        self.out = RowParallelLinear(out, group)
        self.width = query.weight.shape[1] // heads

    def forward(self, x: Any) -> Any:
        b, t = x.shape[0], x.shape[1]

        def heads(y):
            return y.reshape((b, t, self.heads, self.width)).permute((0, 2, 1, 3))

        q, k, v = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(self.width))
        if self.causal:
            mask = weft.triu(weft.full((t, t), float("-inf"), dtype=x.dtype, device=x.device), k=1)
            scores = scores + weft.Tensor(mask, requires_grad=False)
        y = scores.softmax(-1) @ v
        return self.out(y.permute((0, 2, 1, 3)).reshape((b, t, self.heads * self.width)))


class SyncBatchNorm(nn.Module):
    """A BatchNorm layer whose mean and variance are those of all ranks' batches together; evaluation is the layer's own.

    `norm` is an nn.BatchNorm1d, 2d or 3d, of which the parameters and running statistics are taken. Each rank brings equally many numbers.
    """

    _nameless = "norm"

    def __init__(self, norm: nn.Module, group: Any = None) -> None:
        super().__init__()
        _checked(norm, _NORMS, "SyncBatchNorm", "nn.BatchNorm1d, 2d, 3d")
        self.norm, self._group = norm, resolve(group)

    @classmethod
    def convert(cls, module: nn.Module, group: Any = None) -> Any:
        """Replaces every BatchNorm inside `module`; returns the module, or the layer that replaces it."""
        for part in module.modules():
            if not isinstance(part, cls):
                for key, value in list(part.__dict__.items()):
                    part.__dict__[key] = cls._replaced(value, group)
        return cls._replaced(module, group)

    @classmethod
    def _replaced(cls, value, group):
        """The value with layers of batch norm replaced, in lists, tuples and dicts too; the same object where there are none."""
        if isinstance(value, _NORMS):
            return cls(value, group)
        if isinstance(value, dict):
            new = {key: cls._replaced(v, group) for key, v in value.items()}
            return value if all(new[key] is v for key, v in value.items()) else new
        if isinstance(value, (list, tuple)):
            new = [cls._replaced(v, group) for v in value]
            return value if all(a is b for a, b in zip(new, value)) else type(value)(new)
        return value

    def forward(self, x: Any) -> Any:
        norm = self.norm
        whole_batch = self.training or norm.running_mean is None
        if not whole_batch or self._group.size == 1 or x.ndim not in norm.ranks:
            return norm(x)
        axes, shape = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
        mean = all_reduce(x.mean(axes, True), "mean", self._group)
        centred = x - mean
        var = all_reduce((centred * centred).mean(axes, True), "mean", self._group)
        if self.training and norm.running_mean is not None:
            count = x.size * self._group.size / norm.features
            norm._remember(mean.data.reshape(-1), var.data.reshape(-1), count)
        y = centred / (var + norm.eps).sqrt()
        if norm.weight is None:
            return y
        return y * norm.weight.reshape(shape) + norm.bias.reshape(shape)
