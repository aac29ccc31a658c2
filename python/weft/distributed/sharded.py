# SPDX-License-Identifier: Apache-2.0
"""Training with optimizer states, gradients and parameters shared out among the ranks (ZeRO's stages 1, 2 and 3).

A unit is the parameters that one module holds itself: they are one flat row, of which each rank keeps an equal piece; the optimizer works on the pieces.
With stage 3 a unit is gathered when its module runs and released after it, while the next one already travels. Small parameters are one unit of their own
that every rank keeps whole.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import types
import weakref
from typing import Any, NoReturn

import weft
from weft import nn

from .._core import shown
from .. import _traced
from .._errors import error
from ..autograd import Function
from ..nn.module import InOrder
from .checkpoint import Piece, load_index, load_sharded, other_shape, save_sharded
from .collectives import all_gather, all_reduce, broadcast, reduce_scatter
from .data_parallel import Unsynchronised, begin_pass, model_of, under_way
from .group import resolve


class _Regather(Function):
    """The identity; its gradient brings a unit's parameters back before the unit's own backward begins."""

    @staticmethod
    def forward(ctx, x, unit, order):
        ctx.unit, ctx.order = unit, order
        return x.data

    @staticmethod
    def backward(ctx, g):
        ctx.unit.gather()
        ctx.order.entered_backward(ctx.unit)
        return g, None, None


class _Unit:
    """Parameters of one type and device, all trained or none, as a flat row, of which this rank has a piece."""

    def __init__(self, name, params, group, stage):
        self.name, self.params, self.group, self.stage = name, params, group, stage
        self.size = sum(p.size for p in params)
        self.piece = -(-self.size // group.size)
        self.shard = nn.Parameter(self._own_piece())
        self.shard.requires_grad = params[0].requires_grad
        self.shard._parted = (*getattr(params[0], "_parted", ()), group)  # of layers.py, too
        self.waiting, self.present, self.work, self.coming = set(), True, None, None
        self.trained = params[0].requires_grad
        # What stands for a released parameter: a use outside its module's forward shows as NaN.
        self.absent = weft.full((), float("nan"), dtype=self.shard.dtype, device=self.shard.device)
        self.reset()

    def reset(self):
        self.work = None
        self.waiting, self.reduced = {id(p) for p in self.params}, False

    def _own_piece(self):
        at = self.group.rank * self.piece
        return self._flat([p.data for p in self.params])[at : at + self.piece].copy()

    def cut(self):
        """Takes this rank's piece of what the parameters are now."""
        self.shard.data = self._own_piece()

    def _flat(self, arrays):
        """One row, with zeros behind the end so that the pieces are equal."""
        rows = [a.reshape((-1,)) for a in arrays]
        rest = self.piece * self.group.size - self.size
        if rest:
            rows.append(weft.zeros((rest,), dtype=rows[0].dtype, device=rows[0].device))
        return rows[0] if len(rows) == 1 else weft.concat(rows, axis=0)

    def copy_absent(self, memo):
        """For copies of the whole model: parameters that are not there stay so."""
        for p in () if self.present else self.params:
            absent = nn.Parameter(p.data)
            absent.requires_grad = p.requires_grad
            absent.__dict__.update(p.__dict__)
            memo[id(p)] = absent

    def take(self, other):
        """The piece of the same unit of another model, and its gradient."""
        self.shard.data, self.shard.requires_grad = other.shard.data.copy(), other.shard.requires_grad  # fmt: skip
        if other.shard.grad is not None:
            self.shard.grad = weft.Tensor(other.shard.grad.data.copy(), requires_grad=False)

    def prefetch(self):
        """Starts the gathering that gather() finishes."""
        if not self.present and self.coming is None:
            self.coming = all_gather(self.shard.data, self.group, async_op=True)

    def gather(self):
        """Fills the parameters from all ranks' pieces."""
        if self.present and self.stage == 3:
            return
        work, self.coming = self.coming, None
        whole = all_gather(self.shard.data, self.group) if work is None else work.wait()
        at = 0
        for p in self.params:
            p.data = whole[at : at + p.size].reshape(p.shape)
            at += p.size
        self.present = True

    def forget_coming(self):
        """Ends a gathering that nobody came for: the pieces may change before somebody does."""
        work, self.coming = self.coming, None
        if work is not None:
            work.wait()

    def release(self):
        """Leaves of each parameter its shape and type; reading one then gives no number."""
        self.forget_coming()
        if self.stage < 3 or not self.present:
            return
        for p in self.params:
            p.data = self.absent.broadcast_to(p.shape)
        self.present = False

    def reduce(self):
        """Starts the mean of the gradients over the ranks; this rank's piece of it is kept."""
        grads = [
            weft.zeros(p.shape, dtype=p.dtype, device=p.device) if p.grad is None else p.grad.data
            for p in self.params
        ]
        for p in self.params:
            p.grad = None
        flat = self._flat(grads)
        del grads
        start = all_reduce if self.stage == 1 else reduce_scatter
        self.work = start(flat, "mean", self.group, async_op=True)

    def finish(self):
        """Adds the piece of the gradients' mean to the shard's gradient."""
        work, self.work = self.work, None
        out = work.wait()
        if self.stage == 1:
            start = self.group.rank * self.piece
            out = out[start : start + self.piece].copy()
        had = self.shard.grad
        out = out if had is None else had.data + out
        self.shard.grad = weft.Tensor(out, requires_grad=False)


def _numbers_of(optimizer):
    """The names of an optimizer's dicts of numbers by the parameter's index: counts of steps, products of rates."""
    kept = getattr(optimizer, "_kept", ())
    held = [name for name in kept if isinstance(getattr(optimizer, name), dict)]
    return ["_steps", *held] if optimizer is not None else []


def _refuse_compiled() -> NoReturn:
    _traced.refuse(
        "the compiled function calls a ShardedParallel, whose parameters come and go",
        "call it outside the compiled function",
    )


def _runs(module):
    """Whether the module is called itself; lists and dicts of parameters are read by the module that holds them."""
    return type(module).forward is not nn.Module.forward


def _owners(module, name=""):
    """(name, module, parameters that it holds itself, or reads from children that it does not call) of all modules that hold some."""
    held = {id(p) for child in module.named_children().values() for p in child.parameters()}
    own = [p for p in module.parameters() if id(p) not in held]
    for key, child in module.named_children().items():
        if _runs(child) and not module._reads_children:
            yield from _owners(child, f"{name}.{key}" if name else key)
        else:
            own += child.parameters()
    if own:
        yield name, module, own


class ShardedParallel(nn.Module):
    """A model over all ranks of a group, of which each keeps a part: stage 1 of the optimizer's states, 2 of the gradients too, 3 of the parameters too.

        model = dist.ShardedParallel(model, stage=3)
        opt = optim.Adam(model.parameters())     # this rank's pieces
        loss = loss_fn(model(x), y); loss.backward(); opt.step(); opt.zero_grad()

    Gradients are means over the ranks, as in DataParallel. parameters() are flat pieces; state_dict() is the whole model's, on every rank. With stage 3 the
    parameters of a module are on the device only while its forward or backward runs, and those of the next one travel meanwhile. Parameters of fewer than
    `resident_bytes`, and those that several modules share, stay. A parameter that is read outside its own module's forward reads as NaN. Gradients of
    several backward passes add up in the pieces until zero_grad(). Raises ArgumentError `distributed.stage`.
    """

    def __init__(
        self,
        module: weft.nn.Module,
        group: Any = None,
        stage: int = 3,
        resident_bytes: Any = 1 << 16,
    ) -> None:
        super().__init__()
        if stage not in (1, 2, 3):
            raise error(
                weft.ArgumentError,
                "distributed.stage",
                f"stage {shown(stage)}",
                ["legal: 1 (optimizer states), 2 (and gradients), 3 (and parameters)"],
            )
        self._group, self.stage = resolve(group), stage
        if model_of(module, "ShardedParallel", self._group) is not module:
            _refuse_compiled()
        for p in module.parameters():
            p.data = broadcast(p.data, 0, self._group)
        for b in module.buffers():
            b[...] = broadcast(b, 0, self._group)
        self._share(module, resident_bytes)

    def _share(self, module, resident_bytes):
        """Makes the units of a module whose parameters are there, or of one that another model's units are taken into."""
        self.__dict__["_whole"] = _Held(module)  # not found by parameters()
        self.__dict__["_units"] = _Held([])
        self.__dict__["_names"] = names = {}  # a parameter that several layers share has several
        for name, p in module.named_parameters().items():
            names.setdefault(id(p), []).append(name)
        self.pieces, self._resident_bytes = [], resident_bytes
        self._pass, self._enabled, self._synced, self._reducing = None, True, True, None
        # The unit that comes after another one in forward, and the one before, as the last pass had them.
        self.__dict__["_order"] = _Held(_Order())
        self.__dict__["_handles"] = _Held([])  # of hooks
        owners = list(_owners(module))
        uses = {}
        for _, _, own in owners:
            for p in own:
                uses[id(p)] = uses.get(id(p), 0) + 1
        resident = {
            id(p): p
            for _, _, own in owners
            for p in own
            if uses[id(p)] > 1 or p.data.nbytes < resident_bytes
        }
        for name, part, own in owners:
            for unit in self._made(name, [p for p in own if id(p) not in resident], self.stage):
                if self.stage == 3:
                    before = part.register_forward_pre_hook(lambda m, a, u=unit: self._enter(u))
                    after = part.register_forward_hook(lambda m, a, out, u=unit: self._leave(out, u))  # fmt: skip
                    self._handles.value += [before, after]
                    hooks = part.__dict__["_pre_hooks"]  # others read parameters: they come after
                    rest = [(key, hooks.pop(key)) for key in list(hooks) if key != id(before)]
                    hooks.update(rest)
        self._made("resident", list(resident.values()), min(self.stage, 2))
        if self.stage == 3:
            for unit in self._units.value:
                unit.release()

    def __deepcopy__(self, memo: Any) -> ShardedParallel:
        """A copy on the same group. No rank waits for another."""
        out = type(self).__new__(type(self))
        memo[id(self)] = out
        for unit in self._units.value:
            unit.copy_absent(memo)
        module = copy.deepcopy(self.module, memo)
        hooks = {id(handle) for handle in self._handles.value}
        for part in module.modules():  # those of the copied hooks bring this model's parameters
            for kind in ("_pre_hooks", "_hooks"):
                held = part.__dict__.get(kind, {})
                for key in hooks & held.keys():
                    del held[key]
        nn.Module.__init__(out)
        out.training, out._group, out.stage = self.training, self._group, self.stage
        out._share(module, self._resident_bytes)
        for new, unit in zip(out._units.value, self._units.value):
            new.take(unit)
        return out

    module = property(lambda self: self._whole.value)

    def _made(self, label, params, stage):
        """Units of these parameters, one for each type, device, whether they are trained, and the ranks among which they are parts already."""
        groups = {}
        for p in params:
            key = str(p.dtype), p.device.name, p.requires_grad, getattr(p, "_parted", ())
            groups.setdefault(key, []).append(p)
        out = []
        for i, held in enumerate(groups.values()):
            unit = _Unit(f"{label}#{i}" if i else label, held, self._group, stage)
            out.append(unit)
            self._units.value.append(unit)
            if not unit.trained:
                continue
            self.pieces.append(unit.shard)
            own = weakref.ref(self)
            for p in held:
                p._on_accumulated(lambda leaf, u=unit, key=id(p): own() and own()._arrived(u, key))
        return out

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if _traced.active:  # would take the pieces of now for constants
            _refuse_compiled()
        self._settle()
        self._order.value.begin()
        for unit in self._units.value:
            if unit.stage < 3:
                unit.gather()
        out = self.module(*args, **kwargs)
        for unit in self._units.value:
            unit.forget_coming()
        return out

    def no_sync(self) -> Any:
        """A context in which gradients are only added up on this rank, whole: for batches in several parts. The backward pass after it takes them in."""
        return Unsynchronised(self)

    def _settle(self):
        """Releases what a pass that an exception has ended left behind: the pieces may have changed since."""
        if not under_way(self._pass):
            for unit in self._units.value:
                unit.release()

    def _enter(self, unit):
        unit.gather()
        self._order.value.entered(unit)

    def _leave(self, out, unit):
        """After a module's forward: its parameters go, and come back when its gradient begins."""
        unit.release()
        return _wrapped(out, unit, self._order.value)

    def _arrived(self, unit, key):
        if not under_way(self._pass):
            self._pass, self._synced = begin_pass(self._finish), self._enabled
            self._reducing = None  # of a pass that an exception has ended
            for u in self._units.value:
                u.reset()
        unit.waiting.discard(key)
        if not unit.waiting:
            unit.release()
        if not self._synced:
            return
        # In one order on all ranks, of which each may have used other modules.
        for u in self._in_turn():
            if u.waiting:
                break
            if not u.reduced:
                self._reduce(u)

    def _in_turn(self):
        """Trained units about as backward finishes them; those with small parameters of all modules come last."""
        trained = [u for u in self._units.value if u.trained]
        return sorted(reversed(trained), key=lambda u: u.name.startswith("resident"))

    def _reduce(self, unit):
        """Sends a unit's gradients on their way. One unit is under way at a time, so that only its row takes room."""
        unit.release()
        if self._reducing is not None:
            self._reducing.finish()
        self._reducing, unit.reduced = unit, True
        unit.reduce()

    def _finish(self):
        for unit in self._in_turn() if self._synced else ():
            if not unit.reduced:
                self._reduce(unit)
        for unit in self._units.value:
            unit.release()
        if self._reducing is not None:
            self._reducing.finish()
            self._reducing = None
        for unit in self._units.value:
            unit.reset()

    def named_buffers(self) -> Any:
        """The arrays of the whole model that are no parameters, by name: every rank has all of them."""
        return self.module.named_buffers()

    def modules(self) -> Any:
        """This module and those of the model inside."""
        return InOrder([self, *self.module.modules()])

    def to(self, device: Any = None, dtype: Any = None) -> Any:
        """Refused with ArgumentError `distributed.moved`, except where all is there already: other ranks' pieces would stay."""
        kind = device if isinstance(device, weft.dtype) else dtype
        place = None if isinstance(device, weft.dtype) or device is None else weft.device(device)
        for p in (unit.shard for unit in self._units.value):
            if (kind is not None and p.dtype != kind) or place not in (None, p.device):
                raise error(
                    weft.ArgumentError,
                    "distributed.moved",
                    f"a ShardedParallel with parameters of {p.dtype} on {p.device.name} is moved or converted",
                    help="model.to(...) before ShardedParallel(model)",
                )
        return self

    def train(self, mode: bool = True) -> Any:
        self.module.train(mode)
        self.training = bool(mode)
        return self

    def eval(self) -> Any:
        return self.train(False)

    def zero_grad(self) -> None:
        for p in [*self.pieces, *self.module.parameters()]:
            p.grad = None

    def state_dict(self) -> Any:
        """Copies of the whole model's parameters and buffers by name, on every rank."""
        out = {}
        self._settle()
        for unit in self._units.value:
            was = unit.present
            unit.gather()
            out |= {name: p.data.copy() for p in unit.params for name in self._names[id(p)]}
            if not was:
                unit.release()
        return out | {name: b.copy() for name, b in self.module._saved_buffers().items()}

    def load_state_dict(self, state: Any, strict: bool = True) -> Any:
        """Takes the whole model's state, as state_dict gives it and equal on all ranks, of which each keeps its pieces. Every rank calls it.

        Raises as nn.Module's does. Returns (missing, unexpected).
        """
        for unit in self._units.value:
            unit.gather()
        try:
            names = self.module.load_state_dict(state, strict)
            for unit in self._units.value:
                unit.cut()
        finally:
            for unit in self._units.value:
                unit.release()
        return names

    def _parts(self, unit):
        """(name, number of elements, first of them here, where they are in this rank's piece) of each parameter of a unit."""
        at, begin = self._group.rank * unit.piece, 0
        for p in unit.params:
            low = min(max(at, begin), begin + p.size)
            high = max(low, min(at + unit.piece, begin + p.size))
            here = slice(low - at, high - at) if high > low else slice(0, 0)
            yield self._names[id(p)][0], p.size, low - begin, here
            begin += p.size

    def sharded_state(self, optimizer: Any = None) -> Any:
        """This rank's pieces by name, for save_sharded and load_sharded: of parameters, and of the rows of an optimizer over them."""
        out = {}
        for unit in self._units.value:
            i = self._index(unit, optimizer)
            rows = {"parameters": unit.shard.data}
            for row in getattr(optimizer, "_rows", ()):
                held = getattr(optimizer, row).get(i)
                if held is not None:
                    rows[f"optimizer{row}"] = held
            for name, size, start, here in self._parts(unit):
                for kind, held in rows.items():
                    out[f"{kind}.{name}"] = Piece(held[here], (size,), (start,))
        return out

    def save(
        self, path: str | os.PathLike[str], optimizer: Any = None, metadata: Any = None
    ) -> None:
        """Writes a checkpoint of the parameters, of rank 0's buffers and of an optimizer into a folder; every rank calls it.

        Raises IOError `distributed.checkpoint.save`, as save_sharded.
        """
        numbers = {name: {} for name in _numbers_of(optimizer)}
        for unit in (u for u in self._units.value if u.trained):
            for name, held in numbers.items():
                n = getattr(optimizer, name).get(self._index(unit, optimizer))
                if n is not None:
                    held |= {part: n for part, *_ in self._parts(unit)}
        kept = {"steps": numbers.pop("_steps", {}), "metadata": metadata, "shapes": self._shapes()}
        if numbers:
            kept["numbers"] = numbers
        state = self.sharded_state(optimizer)
        # Each rank may have counted its own batches: rank 0's are taken.
        for name, b in self.module._saved_buffers().items():
            state[f"buffers.{name}"] = broadcast(b, 0, self._group)
        save_sharded(path, state, kept, self._group)

    def load(self, path: str | os.PathLike[str], optimizer: Any = None) -> Any:
        """Takes what save() wrote, on any number of ranks and in any stage, and returns its metadata. The optimizer may be new.

        Raises IOError `distributed.checkpoint.load`, ShapeError `distributed.checkpoint.shape` for another model's.
        """
        arrays, kept = load_index(path)
        for name, shape in self._shapes().items():
            saved = kept.get("shapes", {}).get(name, shape)
            if saved != shape:
                raise other_shape(f"parameters.{name}", shape, saved)
        like = self.sharded_state()
        for name, piece in list(like.items()):
            for row in getattr(optimizer, "_rows", ()):
                of = f"optimizer{row}{name.removeprefix('parameters')}"
                if of in arrays:
                    like[of] = piece
        buffers = {f"buffers.{name}": b for name, b in self.module._saved_buffers().items()}
        for name, b in buffers.items():
            if name in arrays:  # earlier checkpoints have none
                like[name] = Piece(b, tuple(b.shape), (0,) * b.ndim)
        state, _ = load_sharded(path, like)
        self.load_sharded_state(state, optimizer)
        for name in buffers.keys() & state.keys():
            buffers[name][...] = state[name].to(buffers[name].device)
        if optimizer is not None:
            numbers = {"_steps": kept["steps"], **kept.get("numbers", {})}
            for name in _numbers_of(optimizer):
                held = getattr(optimizer, name)
                held.clear()
                for unit in (u for u in self._units.value if u.trained):
                    i, of = self._index(unit, optimizer), numbers.get(name, {})
                    counts = [of[part] for part, *_ in self._parts(unit) if part in of]
                    if i is not None and counts:
                        held[i] = counts[0]
        return kept["metadata"]

    def load_sharded_state(self, state: Any, optimizer: Any = None, steps: Any = None) -> Any:
        """Takes what load_sharded gave for sharded_state(): pieces cut for this number of ranks."""
        for unit in self._units.value:
            i = self._index(unit, optimizer)

            unit.release()
            unit.shard.data = self._whole_piece(unit, "parameters", state)
            if unit.stage < 3:
                unit.gather()
            for row in getattr(optimizer, "_rows", ()):
                held = self._whole_piece(unit, f"optimizer{row}", state)
                if i is not None:
                    getattr(optimizer, row).pop(i, None)
                    if held is not None:
                        getattr(optimizer, row)[i] = held
            if i is not None and steps is not None and unit.trained:
                optimizer._steps[i] = int(steps)

    def _whole_piece(self, unit, kind, state):
        """This rank's piece of a unit's row, None where the state has none: zeros stand for parameters that it lacks, and behind the end."""
        parts = [(state.get(f"{kind}.{name}"), here) for name, _, _, here in self._parts(unit)]
        found = [array for array, _ in parts if array is not None]
        if not found:
            return None
        row = weft.zeros((unit.piece,), dtype=found[0].dtype, device=unit.shard.device)
        for array, here in parts:
            if array is not None and array.size:
                row[here] = array.to(unit.shard.device)
        return row

    def _shapes(self):
        """The shape of each parameter of the whole model."""
        return {self._names[id(p)][0]: list(p.shape) for u in self._units.value for p in u.params}

    def _index(self, unit, optimizer):
        """The number of a unit's piece among the optimizer's parameters, whose groups may have another order than parameters(); None where it has it not."""
        held = getattr(optimizer, "params", ())
        return next((i for i, p in enumerate(held) if p is unit.shard), None)


class _Held:
    """Hides parameters from the walk over a module's attributes."""

    def __init__(self, value):
        self.value = value


class _Order:
    """In what order units are used, learnt in each forward pass: the next one travels while a module runs."""

    def __init__(self):
        self.after, self.before, self.last = {}, {}, None

    def begin(self):
        self.last = None

    def entered(self, unit):
        if self.last is not None and self.last is not unit:
            self.after[self.last], self.before[unit] = unit, self.last
        self.last = unit
        self._ahead(self.after.get(unit))

    def entered_backward(self, unit):
        self._ahead(self.before.get(unit))

    def _ahead(self, unit):
        if unit is not None:
            unit.prefetch()


def _wrapped(x, unit, order):
    """The same output; the unit is gathered again when its gradient comes."""
    if isinstance(x, weft.Tensor) and x.requires_grad:
        return _Regather.apply(x, unit, order)
    if isinstance(x, (tuple, list)):
        parts = [_wrapped(v, unit, order) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        out = copy.copy(x)
        out.update({k: _wrapped(v, unit, order) for k, v in x.items()})
        return out
    if isinstance(x, types.SimpleNamespace) or dataclasses.is_dataclass(x):
        out = copy.copy(x)
        for name, value in vars(x).items():
            object.__setattr__(out, name, _wrapped(value, unit, order))  # frozen ones, too
        return out
    return x
