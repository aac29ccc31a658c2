# SPDX-License-Identifier: Apache-2.0
"""The straight-line Python of a program's later calls."""

from __future__ import annotations

import math

import torch

from .. import _core
from .graph import Value
from .program import as_it_reads, fixed, is_marked, torch_function
from .rules import refusal
from .rules.views import TENSOR_METHODS


class _Writer:
    def __init__(self, program):
        self.p, self.lines, self.names = program, [], {}
        self.known = {}
        self.has = {}  # value id -> the forms that exist: "t", "w"
        self.wants = {}
        self.forms = {}  # id of a view step -> its form

    # ---- names

    def bind(self, prefix, thing):
        """A name of the function's globals."""
        key = (prefix, id(thing))
        if key not in self.known:
            name = f"{prefix}{len(self.known)}"
            self.known[key] = name
            self.names[name] = thing
        return self.known[key]

    def text(self, x, form):
        if isinstance(x, Value):
            return self.use(x, form)
        if (
            x is None
            or isinstance(x, (bool, int, str))
            or (isinstance(x, float) and math.isfinite(x))
        ):
            return repr(x)
        if isinstance(x, tuple):
            return "(" + "".join(f"{self.text(y, form)}, " for y in x) + ")"
        if isinstance(x, list):
            return "[" + ", ".join(self.text(y, form) for y in x) + "]"
        return self.bind("k", x)

    def use(self, v, form):
        """The name of a value in a form; writes the line that changes the form where needed."""
        if v.constant is not None:
            return self.bind("c", v.constant if form == "t" else self._array_of(v.constant))
        name = f"{form}{v.id}"
        forms = self.has.setdefault(v.id, set())
        if form not in forms:
            other = f"{'t' if form == 'w' else 'w'}{v.id}"
            self.lines.append(f"{name} = {self.change(form, v)[0]}{other}{self.change(form, v)[1]}")
            forms.add(form)
        return name

    def _array_of(self, constant):
        key = ("array", id(constant))
        if key not in self.known:
            self.known[key] = self.p.bridge.to_weft(constant)
        return self.known[key]

    def change(self, form, v):
        bridge = self.p.bridge
        if not bridge.same:
            return (self.bind("f", bridge.to_weft if form == "w" else bridge.to_torch) + "(", ")")
        # Some of torch's kernels give conjugates where its fake tensors do not.
        if form == "w" and (v.fake.dtype.is_complex or is_marked(v.fake)):
            return f"from_dlpack(to_dlpack({self.bind('f', as_it_reads)}(", ")), None, None)"
        if form == "w":
            return "from_dlpack(to_dlpack(", "), None, None)"
        export = ".__dlpack__(stream=-1)" if bridge.home.type == "cuda" else ".__dlpack__()"
        return "tensor_of(", f"{export})"

    # ---- which form a view takes

    def plan_views(self):
        wants = self.wants
        for v in self.p.graph.outputs:
            if isinstance(v, Value):
                wants.setdefault(v.id, set()).add("t")
        for step in reversed(self.p.steps):
            if step.where == "view":
                found = set()
                for v in step.unit.outputs:
                    found |= wants.get(v.id, set())
                form = "w" if found == {"w"} and self._weft_views(step) else "t"
                self.forms[id(step)] = form
            else:
                form = "w" if step.where == "weft" else "t"
            for v in step.unit.inputs:
                wants.setdefault(v.id, set()).add(form)

    def _weft_views(self, step):
        try:
            (op,) = step.unit.ops
            shape, dtype = tuple(op.inputs[0].fake.shape), op.inputs[0].fake.dtype
            example = (
                torch.empty(shape, dtype=dtype) if op.inputs[0].fake.numel() < 1 << 16 else None
            )
            if example is None:
                example = torch.empty((1,), dtype=dtype).expand(shape)
            step.by_rule(lambda _: _core._from_dlpack(torch._C._to_dlpack(example), None, None))
            return True
        except Exception as raised:  # a view of the tensor does as well
            step.reason = refusal(raised)
            return False

    # ---- steps

    def results(self, values, form):
        names = []
        for v in values:
            names.append("_" if v is None else f"{form}{v.id}")
            if v is not None:
                self.has[v.id] = {form}
        return names

    def fused(self, step):
        run = self.bind("p", step.recipe.plan.run)
        given = ", ".join(self.use(v, "w") for v in step.recipe.inputs)
        names = self.results(step.recipe.outputs, "w")
        left = ", ".join(names) + ("," if len(names) == 1 else "")
        self.lines.append(f"{left} = {run}([{given}])")

    def array(self, step):
        rule, context = step.array_rule()
        (op,) = step.unit.ops
        given = [self.bind("k", context), *(self.text(a, "w") for a in op.args)]
        given += [f"{k}={self.text(a, 'w')}" for k, a in op.kwargs.items()]
        names = self.results(op.outputs, "w")
        left = ", ".join(names) + ("," if op.several and len(names) == 1 else "")
        self.lines.append(f"{left} = {self.bind('r', rule)}({', '.join(given)})")

    def torch(self, step):
        for op in step.unit.ops:
            method = TENSOR_METHODS.get(op.name)
            args = [self.text(a, "t") for a in op.args]
            args += [f"{k}={self.text(a, 't')}" for k, a in op.kwargs.items()]
            names = self.results(op.outputs, "t")
            left = ", ".join(names) + ("," if op.several and len(names) == 1 else "")
            if method:
                call = f"{args[0]}.{method}({', '.join(args[1:])})"
            else:
                target = self.bind("f", torch_function(op))
                call = f"{target}({', '.join(args)})"
            self.lines.append(f"{left} = {call}")

    def step(self, step, where):
        if where == "torch" or (where == "view" and self.forms[id(step)] == "t"):
            self.torch(step)
        elif step.recipe is not None:
            self.fused(step)
        else:
            self.array(step)

    def release(self, step, number, last):
        names = []
        for v in [
            *step.unit.inputs,
            *(v for op in step.unit.ops for v in op.outputs if v is not None),
        ]:
            if v.constant is None and last.get(v.id, -1) <= number and v.id not in self.p.kept:
                names += [f"{form}{v.id}" for form in sorted(self.has.pop(v.id, ()))]
        if names:
            self.lines.append("del " + ", ".join(dict.fromkeys(names)))

    def write(self):
        graph = self.p.graph
        self.plan_views()
        names = []
        for i, v in enumerate(graph.inputs):
            names.append(f"t{v.id}" if isinstance(v, Value) else f"_{i}")
            if isinstance(v, Value):
                self.has[v.id] = {"t"}
        if names:
            self.lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = args")
        self.lines.append("args.clear()")
        last = {}
        for i, step in enumerate(self.p.steps):
            for v in step.unit.inputs:
                last[v.id] = i
        unused = [
            f"t{v.id}"
            for v in graph.inputs
            if isinstance(v, Value) and v.id not in last and v.id not in self.p.kept
        ]
        if unused:
            self.lines.append("del " + ", ".join(unused))
        for i, step in enumerate(self.p.steps):
            self.step(step, step.where)
            self.release(step, i, last)
        results = []
        for i, v in enumerate(graph.outputs):
            text = self.text(v, "t")
            if i in self.p.fixes:
                text = f"{self.bind('f', fixed)}({text}, {self.bind('k', v.fake)})"
            results.append(text)
        self.lines.append(f"return [{', '.join(results)}]")
        return "def run(args):\n" + "".join(f"    {line}\n" for line in self.lines)

    def alone(self, step, side):
        """One step as a function of tensors that gives tensors."""
        given = [v for v in step.unit.inputs if v.constant is None]
        for v in given:
            self.has[v.id] = {"t"}
        if given:
            self.lines.append(", ".join(f"t{v.id}" for v in given) + ", = args")
        self.step(step, side)
        results = [self.use(v, "t") for v in step.unit.outputs]
        self.lines.append(f"return [{', '.join(results)}]")
        return "def run(args):\n" + "".join(f"    {line}\n" for line in self.lines)


def write(program):
    """(text, function) of the program's later calls."""
    writer = _Writer(program)
    return _function(writer, writer.write())


def write_step(program, step, side):
    """A function of the list of a step's inputs, computed on "torch" or "weft"."""
    writer = _Writer(program)
    return _function(writer, writer.alone(step, side))[1]


def _function(writer, text):
    scope = dict(
        writer.names,
        from_dlpack=_core._from_dlpack,
        to_dlpack=torch._C._to_dlpack,
        tensor_of=torch._C._from_dlpack,
    )
    exec(compile(text, "<weft program>", "exec"), scope)
    return text, scope["run"]
