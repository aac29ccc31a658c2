# SPDX-License-Identifier: Apache-2.0
"""A graph of ATen operators with all sizes known: what the partitioner and the code generator work on.

`lower` makes it from a graph of torch.fx. A graph with symbolic sizes is lowered once for each combination of sizes that
comes; operators that depend on constants alone are computed here, once.
"""

from __future__ import annotations

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes

_FOLDED_ELEMENTS = 1 << 20


class HandedBack(Exception):
    """torch runs the whole graph; the text is the reason."""


class Value:
    """One tensor: its type, shape and strides as torch computed them (`fake`), and who makes and reads it."""

    __slots__ = ("id", "fake", "op", "users", "constant")

    def __init__(self, id, fake, op=None, constant=None):
        self.id, self.fake, self.op, self.constant = id, fake, op, constant
        self.users = []


class Op:
    """One operator; args and kwargs hold Values in place of tensors, outputs are Values or None."""

    __slots__ = ("id", "target", "name", "args", "kwargs", "outputs", "several", "inputs", "reason", "pure")  # fmt: skip

    def __init__(self, id, target, args, kwargs, pure=True):
        self.id, self.target, self.args, self.kwargs = id, target, args, kwargs
        self.pure = pure  # where nothing reads its results it need not run
        self.name = str(target)
        self.outputs, self.several, self.inputs, self.reason = [], False, [], ""

    @property
    def complex(self):
        """Is some tensor of it complex?"""
        return any(v is not None and v.fake.dtype.is_complex for v in [*self.inputs, *self.outputs])

    def example(self):
        """The results as torch's fake tensors, in the operator's own structure."""
        fakes = [None if v is None else v.fake for v in self.outputs]
        return fakes if self.several else fakes[0]


class Graph:
    def __init__(self):
        self.inputs, self.ops, self.outputs = [], [], []
        self.folded = []  # operators computed once
        self.returned = (
            None  # so many outputs reach the user, the others the backward graph; None: all
        )
        self.layout = None  # the order of images (layouts.py), where there is a choice


def values_in(structure):
    """The Values of nested arguments, in order."""
    found = []
    map_values(structure, found.append)
    return found


def map_values(structure, function):
    """The structure with function(value) in place of each Value."""
    if isinstance(structure, Value):
        return function(structure)
    if isinstance(structure, tuple):  # torch's operators of functions tell tuples from lists
        return tuple(map_values(s, function) for s in structure)
    if isinstance(structure, list):
        return [map_values(s, function) for s in structure]
    if isinstance(structure, dict):
        return {k: map_values(s, function) for k, s in structure.items()}
    return structure


def _is_symbolic(value):
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def has_symbols(module):
    """Whether some size of the graph is not known yet."""
    for node in module.graph.nodes:
        found = node.meta.get("val")
        for v in found if isinstance(found, (tuple, list)) else [found]:
            if _is_symbolic(v):
                return True
            if isinstance(v, torch.Tensor) and any(_is_symbolic(n) for n in v.shape):
                return True
    return False


def _check_in_order(node):
    """The check of a matrix's factors that torch orders by a token, else None: it needs no order, only to be made."""
    ordered = getattr(torch.ops.higher_order, "with_effects", None)
    if node.target is not ordered or not str(node.args[1]).startswith("aten._linalg_check_errors"):
        return None
    return node.args[1]


def _empty(fake):
    """A tensor without elements: nothing has to compute it."""
    with _disable_current_modes():
        return torch.empty_strided(tuple(fake.shape), fake.stride(), dtype=fake.dtype, device=fake.device)  # fmt: skip


class _Lowering:
    def __init__(self, module, inputs):
        self.module, self.graph = module, Graph()
        self.env, self.count = {}, 0
        self.given = inputs  # real inputs where sizes are symbolic, else None
        self.mode = FakeTensorMode(allow_non_fake_inputs=True) if inputs is not None else None

    def value(self, fake, op=None, constant=None):
        if fake.layout is not torch.strided:
            raise HandedBack(f"a tensor of layout {str(fake.layout).removeprefix('torch.')}")
        self.count += 1
        return Value(self.count - 1, fake, op, constant)

    def placeholder(self, node):
        at = len(self.graph.inputs)
        fake = node.meta.get("val")
        if self.given is not None:
            given = self.given[at]
            fake = (
                # Its memory alone: the offsets of ragged tensors carry a symbol, which a mode of known sizes has no place for.
                self.mode.from_tensor(given.data, static_shapes=True)
                if isinstance(given, torch.Tensor)
                else given
            )
        if isinstance(fake, torch.Tensor):
            self.env[node] = self.value(fake)
        else:
            self.env[node] = fake
        self.graph.inputs.append(self.env[node])

    def attribute(self, node):
        found = self.module
        for part in node.target.split("."):
            found = getattr(found, part)
        self.env[node] = (
            self.value(found, constant=found) if isinstance(found, torch.Tensor) else found
        )

    def evaluate(self, op):
        """The results on tensors without data."""
        args, kwargs = (
            map_values(
                a, lambda v: v.fake if v.constant is None else self.mode.from_tensor(v.constant)
            )
            for a in (op.args, op.kwargs)
        )
        try:
            with self.mode:
                return op.target(*args, **kwargs)
        except (
            Exception
        ) as refusal:  # torch's: sizes that the data decides, operators without a fake kernel
            raise HandedBack(
                f"{op.name} has no result without data: {type(refusal).__name__}"
            ) from None

    def fold(self, op):
        """Computes an operator of constants; false where it must run in every call."""
        tags = getattr(op.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags or not isinstance(
            op.target, torch._ops.OpOverload
        ):
            return False
        if any(v.constant is None for v in op.inputs) or op.several:
            return False
        fake = op.outputs[0].fake
        if not isinstance(fake, torch.Tensor) or fake.numel() > _FOLDED_ELEMENTS:
            return False
        with _disable_current_modes(), torch.no_grad():
            args, kwargs = (map_values(a, lambda v: v.constant) for a in (op.args, op.kwargs))
            op.outputs[0].constant = op.target(*args, **kwargs)
        return True

    def call(self, node):
        if node.target is operator.getitem:
            source = self.env[node.args[0]]
            self.env[node] = source[node.args[1]]
            return
        args, kwargs = (
            map_arg(node.args, self.env.__getitem__),
            map_arg(node.kwargs, self.env.__getitem__),
        )
        number = len(self.graph.ops) + len(self.graph.folded)
        checked = _check_in_order(node)
        if checked is not None:
            self.env[node] = [args[0]]
            op = Op(number, checked, list(args[2:]), dict(kwargs), pure=False)
            op.inputs, op.outputs = values_in([op.args, op.kwargs]), [None]
            for v in op.inputs:
                v.users.append(op)
            self.graph.ops.append(op)
            return
        op = Op(number, node.target, list(args), dict(kwargs), not node.is_impure())
        op.inputs = values_in([op.args, op.kwargs])
        found = node.meta.get("val") if self.mode is None else self.evaluate(op)
        if (
            isinstance(found, (int, float, bool))
            and not op.inputs
            or self.mode is not None
            and isinstance(found, (int, float, bool))
        ):
            self.env[node] = found
            return
        if _is_symbolic(found):
            raise HandedBack(f"a size that only the data decides ({op.name})")
        op.several = isinstance(found, (tuple, list))
        results = list(found) if op.several else [found]
        for i, fake in enumerate(results):
            size = op.several and isinstance(fake, (int, float, bool))
            if fake is not None and not isinstance(fake, torch.Tensor) and not size:
                raise HandedBack(f"{op.name} gives a {type(fake).__name__}")
            # A number beside tensors (attention's sizes) follows from the sizes, which are known.
            made = self.value(fake, op) if isinstance(fake, torch.Tensor) else None
            if made is not None and not fake.numel():
                made.constant = _empty(fake)
            op.outputs.append(made)
            results[i] = fake if size else op.outputs[-1]
        self.env[node] = results if op.several else results[0]
        if self.fold(op):
            self.graph.folded.append(op)
            return
        for v in op.inputs:
            v.users.append(op)
        self.graph.ops.append(op)

    def run(self):
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.placeholder(node)
            elif node.op == "get_attr":
                self.attribute(node)
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                self.graph.outputs = list(map_arg(node.args[0], self.env.__getitem__))
            else:
                raise HandedBack(f"a node of kind {node.op}")
        self.drop_unused()
        return self.graph

    def drop_unused(self):
        kept, wanted = [], {v.id for v in self.graph.outputs if isinstance(v, Value)}
        for op in reversed(self.graph.ops):
            made = [v for v in op.outputs if v is not None and v.constant is None]
            if op.pure and not any(v.id in wanted for v in made):
                for v in op.inputs:
                    v.users.remove(op)
                continue
            wanted.update(v.id for v in op.inputs)
            kept.append(op)
        self.graph.ops = kept[::-1]


def lower(module, inputs=None):
    """The graph of a torch.fx module made by aot_autograd; `inputs`: real ones, where sizes are symbolic."""
    return _Lowering(module, inputs).run()
