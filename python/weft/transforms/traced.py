# SPDX-License-Identifier: Apache-2.0
"""Derivatives inside weft.compile: the backward pass is written down beside the forward pass and fused with it."""

from __future__ import annotations

from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import Recorder, leaves_of, mapped
from . import trees
from .batched import Batched, wrapped
from .reverse import Linked, _levels, _whole, refuse, vjp

_ARRAYS = (NDArray, Tensor)


def _alias(x):
    """A node of its own with the same values, so that gradients of an argument stop at it."""
    return x.permute(tuple(range(x.ndim))) if x.ndim else x.reshape((1,)).reshape(())


class _Pass:
    """A backward pass over a trace: symbolic through kernels, an eager step for each island."""

    def __init__(self, trace, wanted, islands):
        self.trace, self.wanted, self.islands = trace, wanted, islands
        self.sources = [*wanted, *(o for s in islands for o in s.outputs)]
        self.total = [None] * len(self.sources)

    def through_kernels(self, outputs, seeds):
        from .._traced import Traced

        found = _core._lazy_gradients(
            [o._lazy for o in outputs],
            [s._lazy for s in seeds],
            [w._lazy for w in self.sources],
        )
        for k, (g, w) in enumerate(zip(found, self.sources)):
            if g is not None:
                g = Traced(g).broadcast_to(w.shape)
                self.total[k] = g if self.total[k] is None else self.total[k] + g

    def through_island(self, island, at):
        from .._traced import Traced

        given = self.total[at : at + len(island.outputs)]
        if island.name == "detach" or all(g is None for g in given):
            return
        operands = list(leaves_of((island.args, island.kwargs), (Traced, *_ARRAYS)))
        mask = [isinstance(x, Traced) and x.dtype.kind == "f" for x in operands]
        floats = [k for k, o in enumerate(island.outputs) if o.dtype.kind == "f"]
        if not any(mask) or not floats:
            return
        seeds = [
            o * 0.0 if given[k] is None else given[k]
            for k, o in enumerate(island.outputs)
            if k in floats
        ]
        function = island.function

        def back(args, kwargs, cotangents):
            every = list(leaves_of((args, kwargs), _ARRAYS))

            def forward(*chosen):
                rest, values = iter(chosen), iter(mask)
                own, named = mapped(
                    (args, kwargs), _ARRAYS, lambda a: next(rest) if next(values) else a
                )
                out = list(leaves_of(function(*own, **named), _ARRAYS))
                return [out[k] for k in floats]

            return list(vjp(forward, *(x for x, m in zip(every, mask) if m))[1](cotangents))

        name = f"the gradient of {island.name}"
        found = self.trace.island(name, back, (island.args, island.kwargs, seeds), {})
        self.through_kernels([x for x, m in zip(operands, mask) if m], found)


def _node(x, inside, like):
    """A value of the vmaps `inside` as a node of the trace that `like` belongs to."""
    from .._traced import Traced, lazy_of

    x = _whole(x, inside) if isinstance(x, trees.ARRAYS) else x
    return x if isinstance(x, Traced) else Traced(lazy_of(x, like))


def run_as_step(f, args):
    """f, which has a rule of its own, as a step of the trace that runs f itself on arrays.

    The step's gradient is that of f on arrays, and so f's rule, as for any step that kernels cannot hold. The vmaps
    around the call map f inside the step.
    """
    from .._traced import active
    from .vectorize import vmap

    leaves, structure = trees.flatten(list(args))
    if not active or any(child.module is not None for child in structure.children):
        raise refuse("a function with a rule of its own")
    inside = _levels()
    places = [k for k, x in enumerate(leaves) if isinstance(x, trees.ARRAYS)]
    bases = (leaves[k].base() if isinstance(leaves[k], Batched) else leaves[k] for k in places)
    like = next(x for x in bases if isinstance(x, Recorder))

    def run(*values):
        every = list(leaves)
        for k, x in zip(places, values):
            every[k] = x
        out, shape = trees.flatten(f(*trees.unflatten(structure, every)))
        return trees.unflatten(shape, trees.as_arrays(out))

    for _ in inside:
        run = vmap(run)
    operands = tuple(_node(leaves[k], inside, like) for k in places)
    found, shape = trees.flatten(active[-1].island(f.__name__, run, operands, {}))
    return trees.unflatten(shape, [wrapped(x, inside) for x in found])


class TracedLinked:
    """Leaves of arguments as nodes of the trace in progress, with the interface of reverse.Linked."""

    always = True

    def __init__(self, leaves, name):
        from .._traced import active

        if not active:
            raise refuse(name)
        self.trace, self.inside = active[-1], _levels()
        self.start = self.trace.mark()[1]
        bases = (x.base() if isinstance(x, Batched) else x for x in leaves)
        self.like = next(x for x in bases if isinstance(x, Recorder))
        self.wanted = [_alias(self.whole(x)) for x in trees.as_arrays(leaves)]
        self.values = self.wrapped(self.wanted)

    def whole(self, x):
        """A value as a node of all examples."""
        return _node(x, self.inside, self.like)

    def zeros(self, outputs):
        """Zeros like outputs, each a node of its own."""
        from .._traced import Traced

        zero = [Traced(_core._lazy_constant(0, o._lazy)) for o in outputs]
        return [_alias(z.broadcast_to(o.shape)) for z, o in zip(zero, outputs)]

    def foreign(self, nodes):
        """Whatever follows in the trace may be differentiated."""
        return True

    def asked(self, nodes):
        return True

    def derive(self, outputs, seeds, wanted, create):
        """Gradients of the sum of outputs times seeds, written down in the trace; a seed of None is one."""
        from .._traced import Traced
        from .._islands import Island

        one = lambda o: Traced(_core._lazy_constant(1, o._lazy)).broadcast_to(o.shape)  # noqa: E731
        pairs = [(o, one(o) if s is None else s) for o, s in zip(outputs, seeds) if o.dtype.kind == "f"]  # fmt: skip
        pairs = [(o, s if s.dtype == o.dtype else s.astype(o.dtype)) for o, s in pairs]
        islands = [s for s in self.trace._steps[self.start :] if isinstance(s, Island)]
        walk = _Pass(self.trace, wanted, islands)
        if pairs:
            walk.through_kernels(*map(list, zip(*pairs)))
        at = len(walk.sources)
        for island in reversed(islands):
            at -= len(island.outputs)
            walk.through_island(island, at)
        return [z if g is None else g for g, z in zip(walk.total, self.zeros(wanted))]

    def mapped_further(self, name):
        return Linked.mapped_further(self, name)

    def leave(self, outputs, linked):
        return self.wrapped(outputs)

    def wrapped(self, found):
        return [wrapped(g, self.inside) for g in found]
