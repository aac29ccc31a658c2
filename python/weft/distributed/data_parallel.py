# SPDX-License-Identifier: Apache-2.0
"""Data parallel training: every rank has the whole model and a part of the batch."""

from __future__ import annotations

import weakref
from typing import Any

import weft

from .. import _core
from .collectives import broadcast, reduce_together
from .group import resolve


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
    took no part on this rank count as zeros. Calls, parameters and state_dict are those of the model inside (`.module`).
    """

    _nameless = "module"

    def __init__(
        self, module: weft.nn.Module, group: Any = None, bucket_bytes: Any = 25 << 20
    ) -> None:
        super().__init__()
        self.module, self._group = module, resolve(group)
        if self._group.size == 1:
            return
        for p in module.parameters():
            p.data = broadcast(p.data, 0, self._group)
        for b in module.buffers():
            b[...] = broadcast(b, 0, self._group)
        trained = [p for p in module.parameters() if p.requires_grad]
        self._buckets = [_Bucket(params) for params in buckets_of(trained, bucket_bytes)]
        self._running = False
        self._enabled = True
        own = weakref.ref(self)
        for bucket in self._buckets:
            for p in bucket.params:
                p._on_accumulated(
                    lambda leaf, b=bucket, key=id(p): own() and own()._arrived(b, key)
                )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def no_sync(self) -> Any:
        """A context in which gradients are only added up on this rank: for batches in several parts."""
        return _Unsynchronised(self)

    def _arrived(self, bucket, key):
        if not self._enabled:
            return
        if not self._running:
            self._running = True
            _core._after_backward(self._finish)
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
        self._running = False
        for bucket in self._buckets:
            if bucket.work is None:
                self._send(bucket)
        for bucket in self._buckets:
            for p, mean in zip(bucket.params, bucket.work.wait()):
                p.grad = weft.Tensor(mean, requires_grad=False)
            bucket.reset()


class _Unsynchronised:
    def __init__(self, model):
        self.model, self.before = model, []

    def __enter__(self):
        self.before.append(getattr(self.model, "_enabled", True))
        self.model._enabled = False

    def __exit__(self, *_):
        self.model._enabled = self.before.pop()
