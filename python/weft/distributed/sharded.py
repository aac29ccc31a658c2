# SPDX-License-Identifier: Apache-2.0
"""Training with optimizer states, gradients and parameters shared out among the ranks (ZeRO's stages 1, 2 and 3).

A unit is a part of the model whose parameters travel together: each direct child, children of lists and Sequential one by one. A unit's parameters are one
flat row, of which each rank keeps an equal piece; the optimizer works on the pieces.
"""

from __future__ import annotations

import weakref

import weft
from weft import nn

from .. import _core
from .._errors import error
from ..autograd import Function
from .checkpoint import Piece
from .collectives import all_gather, all_reduce, broadcast, reduce_scatter
from .group import resolve


class _Regather(Function):
    """The identity; its gradient brings a unit's parameters back before the unit's own backward begins."""

    @staticmethod
    def forward(ctx, x, unit):
        ctx.unit = unit
        return x.data

    @staticmethod
    def backward(ctx, g):
        ctx.unit.gather()
        return g, None


class _Unit:
    """Parameters of one type and device as a flat row, of which this rank has a piece."""

    def __init__(self, name, params, group, stage):
        self.name, self.params, self.group, self.stage = name, params, group, stage
        self.size = sum(p.size for p in params)
        self.piece = -(-self.size // group.size)
        flat = self._flat([p.data for p in params])
        at = group.rank * self.piece
        self.shard = nn.Parameter(flat[at : at + self.piece].copy())
        self.waiting, self.present, self.work = set(), True, None
        self.reset()

    def reset(self):
        self.waiting = {id(p) for p in self.params if p.requires_grad}

    def _flat(self, arrays):
        """One row, with zeros behind the end so that the pieces are equal."""
        rows = [a.reshape((-1,)) for a in arrays]
        rest = self.piece * self.group.size - self.size
        if rest:
            rows.append(weft.zeros((rest,), dtype=rows[0].dtype, device=rows[0].device))
        return weft.concat(rows, axis=0)

    def gather(self):
        """Fills the parameters from all ranks' pieces."""
        if self.present and self.stage == 3:
            return
        whole, at = all_gather(self.shard.data, self.group), 0
        for p in self.params:
            p.data = whole[at : at + p.size].reshape(p.shape)
            at += p.size
        self.present = True

    def release(self):
        """Leaves of each parameter its shape and type."""
        if self.stage < 3 or not self.present:
            return
        for p in self.params:
            p.data = weft.zeros((1,), dtype=p.dtype, device=p.device).broadcast_to(p.shape)
        self.present = False

    def reduce(self):
        """Starts the mean of the gradients over the ranks; this rank's piece of it is kept."""
        grads = [
            weft.zeros(p.shape, dtype=p.dtype, device=p.device) if p.grad is None else p.grad.data
            for p in self.params
        ]
        flat = self._flat(grads)
        start = all_reduce if self.stage == 1 else reduce_scatter
        self.work = start(flat, "mean", self.group, async_op=True)
        for p in self.params:
            p.grad = None

    def finish(self):
        out = self.work.wait()
        self.work = None
        if self.stage == 1:
            start = self.group.rank * self.piece
            out = out[start : start + self.piece].copy()
        had = self.shard.grad
        out = out if had is None else had.data + out
        self.shard.grad = weft.Tensor(out, requires_grad=False)
        self.reset()


def _children(module, name=""):
    for key, child in module.named_children().items():
        label = f"{name}.{key}" if name else key
        if isinstance(child, nn.Sequential) or not child.named_parameters():
            yield from _children(child, label)
        else:
            yield label, child


class ShardedParallel(nn.Module):
    """A model over all ranks of a group, of which each keeps a part: stage 1 of the optimizer's states, 2 of the gradients too, 3 of the parameters too.

        model = dist.ShardedParallel(model, stage=3)
        opt = optim.Adam(model.parameters())     # this rank's pieces
        loss = loss_fn(model(x), y); loss.backward(); opt.step(); opt.zero_grad()

    Gradients are means over the ranks, as in DataParallel. parameters() are flat pieces; state_dict() is the whole model's, on every rank. With stage 3 the
    parameters of a unit are on the device only while its forward or backward runs; parameters that several units share stay. Gradients of several
    backward passes add up in the pieces until zero_grad(). Raises ArgumentError `distributed.stage`.
    """

    def __init__(self, module, group=None, stage=3):
        super().__init__()
        if stage not in (1, 2, 3):
            raise error(
                weft.ArgumentError,
                "distributed.stage",
                f"stage {stage!r}",
                ["legal: 1 (optimizer states), 2 (and gradients), 3 (and parameters)"],
            )
        self.__dict__["_whole"] = _Held(module)  # not found by parameters()
        self._group, self.stage = resolve(group), stage
        for p in module.parameters():
            p.data = broadcast(p.data, 0, self._group)
        for b in module.buffers():
            b[...] = broadcast(b, 0, self._group)
        self.__dict__["_units"] = _Held([])
        self.pieces = []
        self._running = False
        seen, shared = set(), set()
        modules = list(_children(module))
        for _, child in modules:
            own = {id(p) for p in child.parameters()}
            shared |= seen & own
            seen |= own
        names = {id(p): n for n, p in module.named_parameters().items()}
        self.__dict__["_names"] = names
        for label, child in modules:
            free = [p for p in child.parameters() if id(p) not in shared]
            for unit in self._made(label, free, stage):
                if stage == 3:
                    child.register_forward_pre_hook(lambda m, a, u=unit: u.gather())
                    child.register_forward_hook(lambda m, a, out, u=unit: _leave(out, u))
        rest = [p for p in module.parameters() if id(p) in shared or id(p) not in seen]
        self.__dict__["_root"] = _Held(self._made("", rest, min(stage, 2)))
        if stage == 3:
            for unit in self._units.value:
                unit.release()

    module = property(lambda self: self._whole.value)

    def _made(self, label, params, stage):
        groups = {}
        for p in params:
            groups.setdefault((str(p.dtype), p.device.name), []).append(p)
        out = []
        for i, held in enumerate(groups.values()):
            unit = _Unit(f"{label}#{i}" if i else label, held, self._group, stage)
            out.append(unit)
            self._units.value.append(unit)
            self.pieces.append(unit.shard)
            own = weakref.ref(self)
            for p in held:
                p._on_accumulated(lambda leaf, u=unit, key=id(p): own() and own()._arrived(u, key))
        return out

    def forward(self, *args, **kwargs):
        for unit in self._units.value:
            if unit.stage < 3:
                unit.gather()
        return self.module(*args, **kwargs)

    def _arrived(self, unit, key):
        if not self._running:
            self._running = True
            _core._after_backward(self._finish)
        unit.waiting.discard(key)
        if unit.waiting or unit.work is not None:
            return
        unit.reduce()
        unit.release()

    def _finish(self):
        self._running = False
        for unit in reversed(self._units.value):
            if unit.work is None and any(p.requires_grad for p in unit.params):
                unit.reduce()
            unit.release()
        for unit in self._units.value:
            if unit.work is not None:
                unit.finish()

    def train(self, mode=True):
        self.module.train(mode)
        self.training = bool(mode)
        return self

    def eval(self):
        return self.train(False)

    def zero_grad(self):
        for p in [*self.pieces, *self.module.parameters()]:
            p.grad = None

    def state_dict(self):
        """Copies of the whole model's parameters and buffers by name, on every rank."""
        out = {}
        for unit in self._units.value:
            was = unit.present
            unit.gather()
            out |= {self._names[id(p)]: p.data.copy() for p in unit.params}
            if not was:
                unit.release()
        return out | {name: b.copy() for name, b in self.module.named_buffers().items()}

    def sharded_state(self, optimizer=None):
        """This rank's pieces by name, for save_sharded and load_sharded: of parameters, and of the rows of an optimizer over them."""
        out = {}
        for i, unit in enumerate(self._units.value):
            at = self._group.rank * unit.piece
            length = max(0, min(unit.piece, unit.size - at))

            def piece(array, at=at, length=length, unit=unit):
                return Piece(array[:length], (unit.size,), (min(at, unit.size),))

            out[f"parameters.{unit.name}"] = piece(unit.shard.data)
            for row in getattr(optimizer, "_rows", ()):
                held = getattr(optimizer, row).get(i)
                if held is not None:
                    out[f"optimizer{row}.{unit.name}"] = piece(held)
        return out

    def load_sharded_state(self, state, optimizer=None, steps=None):
        """Takes what load_sharded gave for sharded_state(): pieces cut for this number of ranks."""
        for i, unit in enumerate(self._units.value):

            def whole_piece(array, unit=unit):
                rest = unit.piece - array.size
                row = array.to(unit.shard.device)
                return (
                    weft.concat([row, weft.zeros((rest,), dtype=row.dtype, device=row.device)])
                    if rest
                    else row
                )

            unit.shard.data = whole_piece(state[f"parameters.{unit.name}"])
            if unit.stage < 3:
                unit.gather()
            for row in getattr(optimizer, "_rows", ()):
                held = state.get(f"optimizer{row}.{unit.name}")
                if held is not None:
                    getattr(optimizer, row)[i] = whole_piece(held)
            if optimizer is not None and steps is not None:
                optimizer._steps[i] = int(steps)


class _Held:
    """Hides parameters from the walk over a module's attributes."""

    def __init__(self, value):
        self.value = value


def _leave(out, unit):
    """After a unit's forward: its parameters go, and come back when its gradient begins."""
    unit.release()

    def wrap(x):
        if isinstance(x, weft.Tensor) and x.requires_grad:
            return _Regather.apply(x, unit)
        if isinstance(x, (tuple, list)):
            return type(x)(wrap(v) for v in x)
        if isinstance(x, dict):
            return {k: wrap(v) for k, v in x.items()}
        return x

    return wrap(out)
