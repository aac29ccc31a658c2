# SPDX-License-Identifier: Apache-2.0
"""Data parallel training: every rank has the whole model and a part of the batch."""

from __future__ import annotations

import copy
import weakref
from typing import Any

import weft

from .. import _core
from .._errors import error
from ..nn.lazies import Lazy
from .collectives import broadcast, reduce_together
from .group import Group, resolve


class _Bucket:
    """Parameters whose gradients travel in one message, in the order in which backward finishes them."""

    def __init__(self, params):
        self.params = params
        self.waiting = set(map(id, params))
        self.work = None

    def reset(self):
        self.waiting, self.work = set(map(id, self.params)), None


def buckets_of(params: Any, limit: int) -> Any:
    """Lists of parameters of one type and device with at most `limit` bytes, the last ones first."""
    out, held, key = [], 0, None
    for p in reversed(params):
        own = (str(p.dtype), p.device.name)
        if key != own or held + p.data.nbytes > limit:
            out.append([])
            held, key = 0, own
        out[-1].append(p)
        held += p.data.nbytes
    return out


class DataParallel(weft.nn.Module):
    """A model whose gradients are the mean over all ranks.

    Parameters and buffers are rank 0's at the start. In backward, gradients are gathered in buckets of `bucket_bytes`; each bucket is reduced as soon as its
    last gradient is there, beside the rest of the pass. When `loss.backward()` returns, every .grad is the mean on this rank's device. Parameters that
    took no part on this rank count as zeros; those that are frozen keep what they have. Calls, parameters and state_dict are those of the model inside
    (`.module`), which weft.compile may have made.
    """

    _nameless = "module"

    def __init__(
        self, module: weft.nn.Module, group: Any = None, bucket_bytes: int = 25 << 20
    ) -> None:
        super().__init__()
        self._group = resolve(group)
        self.module = model_of(module, "DataParallel", self._group)
        self._compiled = None if self.module is module else module
        if self._group.size > 1:
            for p in self.module.parameters():
                p.data = broadcast(p.data, 0, self._group)
            for b in self.module.buffers():
                b[...] = broadcast(b, 0, self._group)
        self._enabled = True
        self._watch_gradients(bucket_bytes)

    def _watch_gradients(self, bucket_bytes):
        self._bucket_bytes, self._pass, self._buckets = bucket_bytes, None, []
        if self._group.size == 1:
            return
        trained = [p for p in self.module.parameters() if p.requires_grad]
        self._buckets = [_Bucket(params) for params in buckets_of(trained, bucket_bytes)]
        own = weakref.ref(self)
        for bucket in self._buckets:
            for p in bucket.params:
                p._on_accumulated(
                    lambda leaf, b=bucket, key=id(p): own() and own()._arrived(b, key)
                )

    def __deepcopy__(self, memo: Any) -> DataParallel:
        """A copy on the same group, whose gradients are means, too. No rank waits for another."""
        out = type(self).__new__(type(self))
        memo[id(self)] = out
        for name, value in self.__dict__.items():
            if name not in ("_pass", "_buckets", "_compiled"):
                out.__dict__[name] = copy.deepcopy(value, memo)
        made = self._compiled
        out._compiled = None if made is None else weft.compile(out.module, contract=made.contract)
        out._watch_gradients(self._bucket_bytes)
        return out

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return (self.module if self._compiled is None else self._compiled)(*args, **kwargs)

    def no_sync(self) -> Any:
        """A context in which gradients are only added up on this rank: for batches in several parts."""
        return Unsynchronised(self)

    def _arrived(self, bucket, key):
        if not self._enabled:
            return
        if not under_way(self._pass):
            self._pass = begin_pass(self._finish)
            for b in self._buckets:  # an exception may have ended the pass before
                b.reset()
        bucket.waiting.discard(key)
        # In order, so that all ranks reduce the same buckets at the same time.
        for b in self._buckets:
            if b.work is not None:
                continue
            if b.waiting:
                break
            self._send(b)

    def _send(self, bucket):
        gradients = [
            weft.zeros_like(p.data) if p.grad is None else p.grad.data for p in bucket.params
        ]
        bucket.work = reduce_together(gradients, "mean", self._group)

    def _finish(self):
        for bucket in self._buckets:
            if bucket.work is None:
                self._send(bucket)
        for bucket in self._buckets:
            for p, mean in zip(bucket.params, bucket.work.wait()):
                if p.requires_grad:
                    p.grad = weft.Tensor(mean, requires_grad=False)
            bucket.reset()


def model_of(module: Any, name: str, group: Group) -> Any:
    """The module, or the one that weft.compile has compiled. Raises DTypeError `distributed.model` for what has no parameters to look after, ArgumentError
    `distributed.parted` for parameters of which the group's ranks have different parts already.
    """
    model = module.function if isinstance(module, weft.Compiled) else module
    if not isinstance(model, weft.nn.Module):
        raise error(
            weft.DTypeError,
            "distributed.model",
            f"{name} takes a module, got a {type(model).__name__}",
            ["legal: a weft.nn.Module, or what weft.compile makes of one"],
        )
    lazy = [key for key, part in model.named_modules().items() if isinstance(part, Lazy)]
    if lazy:
        raise error(
            weft.ArgumentError,
            "distributed.lazy",
            f"{name} of a model whose layers {lazy[:5]} have no parameters yet",
            help="call the model once on an input before it is wrapped",
        )
    for key, p in model.named_parameters().items():
        for parted in getattr(p, "_parted", ()):
            if len(set(parted.ranks) & set(group.ranks)) > 1:
                raise error(
                    weft.ArgumentError,
                    "distributed.parted",
                    f"{name} over the ranks {group.ranks} of a model whose {key} lies in parts on the ranks {parted.ranks}",
                    ["legal: a group of ranks that have the same part of every parameter"],
                    help='a mesh: layers over mesh.group("model"), the model over mesh.group("data")',
                )
    return model


def begin_pass(finish: Any) -> Any:
    """Has finish() called at the end of the backward pass that runs now; returns what under_way() asks. The pass that an exception ends forgets it."""
    found = weakref.ref(finish)
    _core._after_backward(finish)
    return found


def under_way(found: Any) -> bool:
    """Whether that pass has neither ended nor been given up."""
    return found is not None and found() is not None


class Unsynchronised:
    """A context in which a model's backward passes stay on this rank."""

    def __init__(self, model):
        self.model, self.before = model, []

    def __enter__(self):
        self.before.append(self.model._enabled)
        self.model._enabled = False

    def __exit__(self, *_):
        self.model._enabled = self.before.pop()
