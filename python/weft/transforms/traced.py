# SPDX-License-Identifier: Apache-2.0
"""Derivatives inside weft.compile: the backward pass is written down beside the forward pass and fused with it."""

from __future__ import annotations

from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import Recorder, leaves_of, mapped
from .._errors import error as _error
from . import trees
from .reverse import _differentiable, _put, _run, _split_aux, refuse, vjp

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
        from .._compile import Traced

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
        from .._compile import Traced

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


def traced_value_and_grad(f, args, kwargs, several, places, has_aux):
    """value_and_grad on traced values. What kernels cannot hold inside f is differentiated eagerly, between them."""
    from .._compile import Traced, _active, _lazy
    from .._islands import Island

    leaves, structure = trees.flatten([args[p] for p in places])
    for k, leaf in enumerate(leaves):
        _differentiable(leaf, "grad", k)
    if not _active or any(isinstance(x, Recorder) and not isinstance(x, Traced) for x in leaves):
        raise refuse("grad")
    trace = _active[-1]
    like = next(x for x in trees.flatten(list(args))[0] if isinstance(x, Traced))
    start = trace.mark()[1]
    wanted = [
        _alias(x if isinstance(x, Traced) else Traced(_lazy(x, like)))
        for x in trees.as_arrays(leaves)
    ]
    own, lent = _put(args, places, trees.unflatten(structure, wanted))
    out, aux = _split_aux(_run(f, own, lent, kwargs), has_aux, "grad")
    if not isinstance(out, Traced) or out.size != 1:
        shape = getattr(out, "shape", None)
        raise _error(
            _core.ArgumentError,
            "array.grad.scalar",
            f"grad needs a function with one number as result, got shape {shape}",
        )
    islands = [s for s in trace._steps[start:] if isinstance(s, Island)]
    walk = _Pass(trace, wanted, islands)
    ones = Traced(_core._lazy_constant(1, out._lazy)).broadcast_to(out.shape)
    walk.through_kernels([out], [ones])
    at = len(walk.sources)
    for island in reversed(islands):
        at -= len(island.outputs)
        walk.through_island(island, at)
    result = [w * 0.0 if g is None else g for g, w in zip(walk.total, wanted)]
    tree = trees.unflatten(structure, result)
    return ((out, aux) if has_aux else out), (tuple(tree) if several else tree[0])
