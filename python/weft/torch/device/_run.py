# SPDX-License-Identifier: Apache-2.0
"""One ATen operator on tensors of the device: by the rules of torch.compile's back end, compiled once for each kind of call.

What has no rule is tried through its functional variant (in-place and out= operators), then through torch's decomposition,
and last, where it was asked for, by torch on the host, which is counted.
"""

from __future__ import annotations

import collections
import threading

import torch

import weft

from ... import _devices
from ..._errors import error as _error
from .. import margins, rules
from ..graph import Op, Value, map_values
from ..partition import Unit
from ..plans import Recipe, array_function, check, context
from ..rules import Unsupported
from ..rules.common import DTYPES
from . import _memory, _names

_MOST_CALLS = 4096

_calls = collections.OrderedDict()  # kind of call -> Call
_fallback = False
_counted = collections.Counter()


def set_fallback(on):
    """Whether operators without a rule run on the host, by torch. Off at the beginning. Gives what it was."""
    global _fallback
    before, _fallback = _fallback, bool(on)
    return before


def fallbacks():
    """{operator: times} that torch ran on the host for a weft device."""
    return dict(_counted)


def _key(x):
    if isinstance(x, torch.Tensor):
        if x.device.type == "cpu" and not x.dim():
            return ("number", x.dtype, repr(x.item()))
        return (x.device, x.dtype, tuple(x.shape), x.stride())
    if isinstance(x, (list, tuple)):
        return tuple(map(_key, x))
    if isinstance(x, dict):
        return tuple((k, _key(v)) for k, v in x.items())
    return (type(x), repr(x))


def tensors_in(structure):
    if isinstance(structure, torch.Tensor):
        return [structure]
    if isinstance(structure, dict):
        structure = structure.values()
    if (
        isinstance(structure, (list, tuple))
        or not isinstance(structure, (str, torch.Size))
        and hasattr(structure, "__iter__")
    ):
        return [t for s in structure for t in tensors_in(s)]
    return []


def map_tensors(structure, function):
    if isinstance(structure, torch.Tensor):
        return function(structure)
    if isinstance(structure, (list, tuple)):
        return [map_tensors(s, function) for s in structure]
    if isinstance(structure, dict):
        return {k: map_tensors(v, function) for k, v in structure.items()}
    return structure


class Call:
    """An operator for tensors of given types, shapes and strides: made once, run on arrays."""

    def __init__(self, target, args, kwargs):
        self.index = _one_device(target, tensors_in([args, kwargs]))
        number = iter(range(1 << 20))

        def value(t):
            if t.device.type == "cpu":
                return Value(next(number), t, constant=t)
            return Value(next(number), _meta(t))

        self.op = op = Op(0, target, *(map_tensors(a, value) for a in (list(args), dict(kwargs))))
        found_inputs = []
        map_values([op.args, op.kwargs], found_inputs.append)
        op.inputs = found_inputs
        fakes = _shapes(op)
        op.several = isinstance(fakes, (tuple, list))
        wanted = _output_mask(target, args, kwargs)
        op.outputs = [
            None if f is None or not (wanted is None or wanted[i]) else Value(next(number), f, op)
            for i, f in enumerate(fakes if op.several else [fakes])
        ]
        self.read = [i for i, v in enumerate(op.inputs) if v.constant is None]
        # Results without elements need no rule.
        self.outputs = [v for v in op.outputs if v is not None and v.fake.numel()]
        self._need_rule(op)
        make = self._fused_or_alone if op.name in rules.FUSED and not op.complex else self._array
        try:
            if self.outputs or op.outputs == [None]:
                make(op)
            else:
                self.compute = lambda arrays: []
        except (Unsupported, weft.Error):
            raise
        except Exception as fault:  # a fault of ours is a reason, as in torch.compile's back end
            raise Unsupported(f"fault in a rule: {type(fault).__name__}: {fault}") from fault

    @staticmethod
    def _need_rule(op):
        if op.complex and op.name not in rules.COMPLEX:
            raise Unsupported("weft has no rule of it for complex numbers")

    def _fused(self, op):
        unit = Unit("fused", [op])
        unit.connect({v.id for v in self.outputs})
        recipe = Recipe(unit, weft.empty((1,), device=_names.device_at(self.index)))
        at = {v.id: i for i, v in enumerate(op.inputs)}
        order = [self.read.index(at[v.id]) for v in recipe.inputs]
        self.recipe = recipe
        self.compute = lambda arrays: recipe.plan.run([arrays[i] for i in order])

    def _fused_or_alone(self, op):
        try:
            self._fused(op)
        except Unsupported:
            if op.name not in rules.ALONE:
                raise
            self._array(op, rules.ALONE[op.name])

    def _array(self, op, rule=None):
        rule = rule or (None if op.complex or op.name in rules.ARRAYS else rules.ALONE.get(op.name))
        rule, c = array_function(op) if rule is None else (rule, context(op))
        c.any_choice = True
        device = _names.device_at(self.index)
        constants = {
            v.id: _memory.from_host(v.constant, self.index)
            for v in op.inputs
            if v.constant is not None
        }
        made = {v.id for v in self.outputs}

        def compute(arrays):
            of = dict(constants)
            of.update((op.inputs[i].id, x) for i, x in zip(self.read, arrays))
            args, kwargs = (map_values(a, lambda v: of[v.id]) for a in (op.args, op.kwargs))
            with _devices.use(device):  # arrays that a rule makes of nothing
                found = rule(c, *args, **kwargs)
            results = []
            for v, x in zip(op.outputs, found if op.several else [found]):
                if v is None or v.id not in made:
                    continue
                if x is None:
                    raise Unsupported("weft does not compute one of its results")
                check(op, v, x.shape, x.dtype)
                results.append(x.copy() if any(x.handle == a.handle for a in arrays) else x)
            return results

        self.compute = compute

    def __call__(self, tensors):
        arrays = [_memory.array_of(tensors[i]) for i in self.read]
        results = iter(
            [
                _memory.tensor_of(x, v.fake, self.index)
                for v, x in zip(self.outputs, self.compute(arrays))
            ]
        )
        found = [
            None if v is None else next(results) if v.fake.numel() else self._nothing(v)
            for v in self.op.outputs
        ]
        return tuple(found) if self.op.several else found[0]

    def _nothing(self, v):
        """A tensor without elements."""
        device = _names.device_at(self.index)
        x = weft.empty(tuple(v.fake.shape), dtype=DTYPES[v.fake.dtype], device=device)
        return _memory.tensor_of(x, v.fake, self.index)


def _output_mask(target, args, kwargs):
    """Which results of a gradient's operator are asked for, where it is told; torch's shapes do not always say."""
    for i, argument in enumerate(target._schema.arguments):
        if argument.name == "output_mask":
            return args[i] if i < len(args) else kwargs.get("output_mask")
    return None


def _shapes(op):
    """The results on tensors without data; torch's own refusals of the arguments leave as they are."""
    try:
        with torch.no_grad():
            try:
                return op.target(*map_values(op.args, _fake), **map_values(op.kwargs, _fake))
            except RuntimeError:  # some of torch's functions want numbers on the same device
                alike = [map_values(a, lambda v: v.fake.to("meta")) for a in (op.args, op.kwargs)]
                if not any(v.constant is not None for v in op.inputs):
                    raise
                return op.target(*alike[0], **alike[1])
    except NotImplementedError as refusal:
        raise Unsupported(f"no shape without data: {str(refusal).splitlines()[0]}") from None


def _meta(t):
    return torch.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")


def _fake(v):
    return v.fake if v.constant is None else v.constant


def _one_device(target, tensors):
    found = {t.device for t in tensors if t.device.type != "cpu" or t.dim()}
    if len(found) != 1 or next(iter(found)).type != "weft":
        raise _error(
            "device",
            "torch.device.mixed",
            f"{target} of tensors on {' and '.join(sorted(map(str, found)))}",
            ["rule: the tensors of one operator are on one device, numbers apart"],
            help="move the others: x.to('weft:0')",
        )
    return next(iter(found)).index


def functional(target, args, kwargs):
    """Runs an operator that writes to none of its arguments; raises Unsupported with the reason."""
    rules.load()
    name = str(target)
    if any(t.is_conj() or t.is_neg() for t in tensors_in([args, kwargs])):
        args, kwargs = (map_tensors(a, lambda t: t.resolve_conj().resolve_neg()) for a in (list(args), dict(kwargs)))  # fmt: skip
    if not any(name in t for t in (rules.FUSED, rules.ARRAYS, rules.ALONE)) and not rules.COMPLEX.get(name):  # fmt: skip
        raise Unsupported("weft has no rule for this operator")
    odd = next((t.dtype for t in tensors_in([args, kwargs]) if t.dtype not in DTYPES), None)
    if odd is not None:
        raise Unsupported(f"elements of type {str(odd).removeprefix('torch.')}")
    key = (target, _key(args), _key(kwargs))
    call = _calls.get(key)
    if call is None:
        try:
            call = Call(target, args, kwargs)
        except Unsupported as refusal:
            call = str(refusal)
        _calls[key] = call
        if len(_calls) > _MOST_CALLS:
            _calls.popitem(last=False)
    if isinstance(call, str):
        raise Unsupported(call)
    return call(tensors_in([args, kwargs]))


# ---- variants that write


_variants = {}


def functional_variant(target):
    """(the overload that returns what `target` writes, positions and names of what is written); None without one."""
    if target not in _variants:
        _variants[target] = _find_variant(target)
    return _variants[target]


def _find_variant(target):
    schema = target._schema
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if not written:
        return None
    outs = [a for a in written if a.is_out]
    name = target._schema.name.split("::")[1]
    if outs:
        keep, packet = [a for a in schema.arguments if not a.is_out], name
    else:
        keep, packet = list(schema.arguments), name.removesuffix("_")
    wanted = [(a.name, str(a.type)) for a in keep]
    found = getattr(torch.ops.aten, packet, None)
    if found is None or packet == name and not outs:
        return None
    for overload in found.overloads():
        op = getattr(found, overload)
        mine = op._schema
        if any(a.alias_info is not None for a in mine.arguments):
            continue
        if [(a.name, str(a.type)) for a in mine.arguments] == wanted:
            return op, [a.name for a in written], bool(outs)
    return None


def _bind(schema, args, kwargs):
    """{name: value} of the arguments that were given."""
    named = {a.name: v for a, v in zip(schema.arguments, args)}
    named.update(kwargs)
    return named


def writing(target, args, kwargs):
    """An in-place or out= operator through its functional variant; raises Unsupported where there is none."""
    found = functional_variant(target)
    if found is None:
        raise Unsupported("weft has no rule for this operator, which writes to its arguments")
    op, names, outs = found
    given = _bind(target._schema, args, kwargs)
    targets = [given[n] for n in names]
    if outs:
        rest = {a.name: given[a.name] for a in op._schema.arguments if a.name in given}
        arguments = [
            rest.pop(a.name) for a in op._schema.arguments if not a.kwarg_only and a.name in rest
        ]
        results = compute(op, arguments, rest)
    else:
        results = compute(op, args, kwargs)
    results = results if isinstance(results, (tuple, list)) else [results]
    for t, r in zip(targets, results):
        if outs and t.shape != r.shape:
            t.resize_(r.shape)
        t.copy_(r)
    return targets[0] if len(targets) == 1 else tuple(targets)


def on_host(target, args, kwargs):
    """The operator by torch on copies in the host's memory; what it wrote is copied back."""
    device = torch.device(
        "weft",
        _one_device(target, [t for t in tensors_in([args, kwargs]) if t.device.type == "weft"][:1]),
    )
    copies = {}

    def host(t):
        if t.device.type != "weft":
            return t
        copies[id(t)] = copies.get(id(t), (t, _memory.to_host(t)))
        return copies[id(t)][1]

    move = lambda x: torch.device("cpu") if isinstance(x, torch.device) else x  # noqa: E731
    found = target(
        *map_tensors(list(args), host), **{k: move(v) for k, v in map_tensors(kwargs, host).items()}
    )
    schema = target._schema
    if schema.is_mutable:
        given = _bind(schema, args, kwargs)
        for a in schema.arguments:
            if a.alias_info is not None and a.alias_info.is_write:
                for t in tensors_in(given.get(a.name)):
                    t.resize_(copies[id(t)][1].shape).copy_(copies[id(t)][1])
    back = {id(h): t for t, h in copies.values()}
    out = map_tensors(found, lambda t: back[id(t)] if id(t) in back else t.to(device))
    return tuple(out) if isinstance(found, tuple) else out


_decompositions = {}
_here = threading.local()


def _decomposition(target):
    if not _decompositions:
        from torch._decomp import core_aten_decompositions, decomposition_table

        from ..decompositions import _dropout

        # Torch's whole table comes second: it has forms of composite operators for machines that take few.
        _decompositions.update(decomposition_table)
        _decompositions.update(core_aten_decompositions())
        _decompositions[torch.ops.aten.native_dropout.default] = _dropout
        _decompositions.update(margins.table())
    return _decompositions.get(target)


def compute(target, args, kwargs):
    """Runs an operator by its rule, else by torch's decomposition; raises Unsupported with the reason."""
    try:
        return functional(target, args, kwargs)
    except Unsupported:
        decomposition = _decomposition(target)
        call = target, str(map_tensors([args, kwargs], lambda t: (t.dtype, tuple(t.shape))))
        if decomposition is None or call in _decomposing():
            raise
    _decomposing().append(call)  # some of torch's forms come back to the operator
    try:
        found = decomposition(*args, **kwargs)
    finally:
        _decomposing().pop()
    if found is NotImplemented:
        raise Unsupported("torch's decomposition does not take these arguments")
    return found


def _decomposing():
    """Operators, with their arguments, whose decomposition is running in this thread."""
    if not hasattr(_here, "stack"):
        _here.stack = []
    return _here.stack


def run(target, *args, **kwargs):
    """What torch's dispatcher calls for every operator of the device that C++ does not have."""
    try:
        if target._schema.is_mutable:
            return writing(target, args, kwargs)
        return compute(target, args, kwargs)
    except Unsupported as refusal:
        reason = str(refusal)
    except weft.Error:  # the machine has no such type or program
        if not _fallback:
            raise
    if _fallback:
        _counted[str(target)] += 1
        return on_host(target, args, kwargs)
    device = next((t.device for t in tensors_in([args, kwargs]) if t.device.type == "weft"), "weft")
    raise _error(
        weft.Error,
        "torch.device.operator",
        f"{target} on {device}: {reason}",
        ["rule: operators that weft has no rule for do not run on the host unless asked"],
        help="weft.torch.device.set_fallback(True) lets torch compute them on the host, counted by fallbacks()",
    )
