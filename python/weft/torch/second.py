# SPDX-License-Identifier: Apache-2.0
"""Gradients of gradients: a compiled backward graph has none, so torch runs the traced function once more, operator by operator.

torch refuses a second gradient through a compiled function, as what the forward graph saved has no history. Each call leaves its arguments
with the node that torch's engine calls for its gradient. Where that gradient is to have a gradient itself (`create_graph=True`), a hook
computes it by torch from the arguments and puts it in the place of the compiled one. torch's refusal stays where the function reads what
it changes, draws on a card, or a result is a view of a value inside.
"""

from __future__ import annotations

import contextlib
import functools

import torch
from torch.autograd.graph import get_gradient_edge

_NODE = "CompiledFunctionBackward"
_NORMS = (torch.nn.functional.batch_norm, torch.batch_norm)
_HISTORIES = ("running_mean", "running_var")


class Facts:
    """What the compilation of a forward graph tells: whether its results are drawn, and which arguments it changes."""

    def __init__(self):
        self.trained, self.random, self.metadata = False, False, None

    def take(self, module):
        """Reads the forward graph that torch compiles now."""
        context = torch._guards.TracingContext.try_get()
        self.trained, self.metadata = True, getattr(context, "fw_metadata", None)
        self.random = any(
            torch.Tag.nondeterministic_seeded in getattr(n.target, "tags", ()) or "rng_state" in n.name
            for n in module.graph.nodes
            if n.op == "call_function"
        )  # fmt: skip


def _is_history(node, placeholder):
    """Whether an operator reads nothing of a changed argument into its results: statistics of a norm that trains, and counters."""
    if node.target in _NORMS:
        names = ("input", "running_mean", "running_var", "weight", "bias", "training")
        given = {**dict(zip(names, node.args)), **node.kwargs}
        if node.target is torch.batch_norm:
            given = dict(zip(("input", "weight", "bias", *_HISTORIES, "training"), node.args))
        places = [name for name, value in given.items() if value is placeholder]
        return given.get("training") is True and all(name in _HISTORIES for name in places)
    return node.target == "add_" and node.args[0] is placeholder and not node.users


def _copied(module, metadata):
    """The places of arguments that the function changes and does not read; None where it reads some of them."""
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    infos = getattr(metadata, "input_info", None)
    if infos is None or len(infos) != len(placeholders):
        return None
    changed = [i for i, info in enumerate(infos) if info.mutates_data or info.mutates_metadata]
    for i in changed:
        if infos[i].requires_grad:
            return None
        if not all(_is_history(user, placeholders[i]) for user in placeholders[i].users):
            return None
    return frozenset(changed)


def _differentiable(t):
    return isinstance(t, torch.Tensor) and t.requires_grad


class _Call:
    """The arguments of one call, until its gradient was taken for the last time."""

    def __init__(self, again, args, generator):
        self.again, self.args, self.generator = again, args, generator
        self.versions, self.results = self._versions(), None

    def _versions(self):
        tensors = (a for i, a in enumerate(self.args) if isinstance(a, torch.Tensor) and i not in self.again.copied)  # fmt: skip
        return [a._version for a in tensors if not a.is_inference()]

    @torch._dynamo.disable  # the engine may be called from a function that torch compiles
    def before(self, results):
        """The hook before the compiled gradient, which gets gradients of the results without a history."""
        if torch.is_grad_enabled() and self.args and self.versions == self._versions():
            known = {at for _, at in self.again.results}
            if all(r is None or at in known for at, r in enumerate(results)):
                self.results = results
                return tuple(r if r is None else r.detach() for r in results)
        return None  # where a result is a view of a value inside, torch refuses its second gradient

    @torch._dynamo.disable
    def after(self, gradients, results):
        """The hook after it: gives other gradients in their place, None to leave them."""
        found, self.results = self.results, None
        if found is not None:
            return self.again.gradients(self, gradients, found)
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            self.args = ()  # the engine frees what it saved, too
        return None


class Again:
    """A compiled function of which each call can be run once more by torch."""

    def __init__(self, run, module, facts, copied):
        self.run, self.module, self.facts, self.copied = run, module, facts, copied
        self.results = self.slots = None  # where results and arguments are among those of the node
        self.autocast = [
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")
        ]  # fmt: skip

    def __call__(self, *args):
        generator = torch.get_rng_state() if self.facts.random else None
        before = args and self.slots is None and tuple(map(self._edge, args))
        out = self.run(*args)
        if torch.is_grad_enabled():
            if self.slots is None:
                self._learn(before, out)
            if self.results:
                node = out[self.results[0][0]].grad_fn
                call = _Call(self, args, generator)
                node.register_prehook(call.before)
                node.register_hook(call.after)
        return out

    @staticmethod
    def _edge(t):
        return tuple(get_gradient_edge(t)[:2]) if _differentiable(t) else None

    def _learn(self, edges, out):
        """Reads from the first call which results and arguments belong to the node; nothing where there are several."""
        made = [(i, t) for i, t in enumerate(out) if type(getattr(t, "grad_fn", None)).__name__ == _NODE]  # fmt: skip
        node = made[0][1].grad_fn if made else None
        self.results = [(i, t.output_nr) for i, t in made if t.grad_fn is node]
        self.slots = [
            edges.index(edge) if edge[0] is not None and edge in edges else None
            for edge in (node.next_functions if node else ())
        ]

    def gradients(self, call, found, results):
        """The gradients of the arguments with a history. found: the compiled ones; results: those of the node's results."""
        given, wanted = list(call.args), [i for i, a in enumerate(call.args) if _differentiable(a)]
        for i in wanted:
            given[i] = given[i].view_as(given[i])  # one argument may be made of another one
        for i in self.copied:
            given[i] = given[i].clone()
        with contextlib.ExitStack() as state:
            for kind, enabled, dtype in self.autocast:
                state.enter_context(torch.autocast(kind, dtype, enabled))
            if call.generator is not None:
                state.enter_context(torch.random.fork_rng(devices=()))
                torch.set_rng_state(call.generator)
            outputs = self.module(*given)
        pairs = [(outputs[i], results[at]) for i, at in self.results if results[at] is not None]
        mine = torch.autograd.grad(
            [o for o, _ in pairs], [given[i] for i in wanted], [r for _, r in pairs], create_graph=True, allow_unused=True
        )  # fmt: skip
        by_argument = dict(zip(wanted, mine))
        return tuple(
            g if g is None or slot is None else by_argument.get(slot) for g, slot in zip(found, self.slots, strict=True)
        )  # fmt: skip


def with_second_gradients(run, module, facts, inputs):
    """The compiled function `run` of the traced function `module`, such that its gradients have gradients where torch can compute them."""
    on_card = any(isinstance(t, torch.Tensor) and t.is_cuda for t in inputs)
    if not facts.trained or (facts.random and on_card) or any(True for _ in module.parameters()):
        return run
    copied = _copied(module, facts.metadata)
    return (
        run if copied is None else functools.update_wrapper(Again(run, module, facts, copied), run)
    )
