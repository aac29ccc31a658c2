# SPDX-License-Identifier: Apache-2.0
"""weft.torch.explain: what weft takes of a model, why not the rest, and what each part costs."""

from __future__ import annotations

import collections
import dataclasses

import torch

from ._backend import HandedOver, backend, watch
from .layouts import LAY_OUT
from .mutation import COPY


class Row:
    """Operators that run together in one step.

    where: "weft", "torch", "view" (no work) or "once" (computed when the model was compiled). able: weft can compute them.
    seconds: {"weft": ..., "torch": ...} as far as they were measured.
    """

    def __init__(self, graph, ops, where, able, reason, seconds):
        self.graph, self.ops, self.where, self.able = graph, ops, where, able
        self.reason, self.seconds = reason, seconds

    def __repr__(self):
        return f"{self.where}: {', '.join(self.ops)}{f' ({self.reason})' if self.reason else ''}"


class Report:
    """What explain found. Print it, or read rows, nodes, able, taken, share, reasons(), breaks(), faults()."""

    def __init__(self, programs, breaks=None):
        self.rows, self._faults, self._breaks = [], [], breaks or {}
        self.graphs = len(programs)
        for i, program in enumerate(programs):
            self._add(i, program)
        count = lambda keep: sum(len(r.ops) for r in self.rows if keep(r))  # noqa: E731
        #: operators, those that weft can compute, and those that run on weft (views and constants included)
        self.nodes = count(lambda r: True)
        self.able = count(lambda r: r.able)
        self.taken = count(lambda r: r.where != "torch")

    def _add(self, number, program):
        if isinstance(program, HandedOver):
            names = [str(n.target) for n in program.module.graph.nodes if n.op == "call_function"]
            if names:
                self.rows.append(Row(number, names, "torch", False, program.reason, {}))
            return
        self._faults += [f"graph {number}: {text}" for text in program.faults]
        for op in program.graph.folded:
            self.rows.append(Row(number, [op.name], "once", True, "", {}))
        for step in program.steps:
            if all(op.name in (COPY, LAY_OUT) for op in step.unit.ops):
                continue  # arguments get their new values, images another order: no operators of the graph
            names = [op.name for op in step.unit.ops]
            self.rows.append(Row(number, names, step.where, step.able, step.reason, step.seconds))

    @property
    def share(self):
        """Which part of the operators weft can compute, from 0 to 1."""
        return self.able / self.nodes if self.nodes else 1.0

    def reasons(self):
        """{(operator, reason): count} of what runs on torch."""
        found = collections.Counter()
        for row in self.rows:
            if row.where == "torch":
                found.update((name, row.reason) for name in row.ops)
        return dict(found.most_common())

    def breaks(self):
        """{why: count} of the places where torch ended a graph: what it runs there, nobody traced or counted."""
        return dict(self._breaks)

    def faults(self):
        """{text: count} of what went wrong in weft itself, also where the results are right all the same."""
        found = collections.Counter(self._faults)
        for row in self.rows:
            if row.reason.startswith("fault"):
                found.update(f"{name}: {row.reason}" for name in row.ops)
        return dict(found.most_common())

    def seconds(self):
        """Measured seconds of all compared steps: on weft, on torch, and as chosen."""
        measured = [r.seconds for r in self.rows if len(r.seconds) == 2]
        return {
            "weft": sum(s["weft"] for s in measured),
            "torch": sum(s["torch"] for s in measured),
            "chosen": sum(min(s.values()) for s in measured),
        }

    def __str__(self):
        lines = [
            f"{self.nodes} operators in {self.graphs} graphs: weft can compute {self.able} ({100 * self.share:.1f} %), "
            f"{self.taken} run on weft or cost nothing"
        ]
        cost = self.seconds()
        if cost["torch"]:
            lines.append(
                f"compared steps: {1e3 * cost['weft']:.3f} ms on weft, {1e3 * cost['torch']:.3f} ms on torch, "
                f"{1e3 * cost['chosen']:.3f} ms as chosen"
            )
        for (name, reason), count in self.reasons().items():
            lines.append(f"{count:5d}  {name}: {reason}")
        lines += [f"torch ended a graph ({n}): {why}" for why, n in self._breaks.items()]
        lines += [f"fault ({count}): {text}" for text, count in self.faults().items()]
        return "\n".join(lines)


def _graph_breaks():
    """How often torch's tracer ended a graph so far, by its reason: without hints and the places in its source."""
    found = collections.Counter()
    for text, count in torch._dynamo.utils.counters["graph_break"].items():
        for rest in ("Hint:", "Developer debug context:", "For more details"):
            text = text.split(rest)[0]
        found[" ".join(text.split())] += count
    return found


def _tensors(result):
    """The tensors in a result: of nested tuples, lists, dicts and data classes."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif dataclasses.is_dataclass(result):
        result = vars(result).values()
    elif not isinstance(result, (list, tuple)):
        return []
    return [t for part in result for t in _tensors(part)]


def explain(model, *args, options=None, **kwargs):
    """A Report of the model, run on the arguments; backward too where its results carry gradients.

    The model's gradients are left as they were. Buffers change as in a call of the model.
    """
    programs = []
    before = watch(programs)
    try:
        torch._dynamo.reset()
        ended = _graph_breaks()
        compiled = torch.compile(model, backend=backend, options=options or {})
        out = compiled(*args, **kwargs)
        asked = [t for t in _tensors(out) if t.requires_grad and t.is_floating_point()]
        if asked:
            total = sum(t.float().sum() for t in asked)
            torch.autograd.grad(total, _leaves(total), allow_unused=True)
    finally:
        watch(before)
    return Report(programs, _graph_breaks() - ended)


def _leaves(result):
    """The tensors that backward from a result would give gradients to, parameters that a function closes over included."""
    seen, found, stack = set(), [], [result.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        stack += [before for before, _ in node.next_functions]
    return found
