# SPDX-License-Identifier: Apache-2.0
"""A partitioned graph that runs: tried step by step on the first call, straight-line Python from then on.

The first call runs every unit on weft and, where the two are to be compared, on torch too, and keeps the faster. What weft
refuses runs on torch; `explain` shows the reason. The code of later calls has one line for each step and for each change
between a torch tensor (t3) and a weft array (w3) of the same memory.
"""

from __future__ import annotations

import threading

import torch

import weft

from .. import _core
from . import remembered
from .choices import KeptNumbers, measure
from .graph import Value, map_values
from .partition import Unit, kept_ids, order
from .plans import Recipe, array_function, check, halves
from .rules import Unsupported, refusal
from .rules.views import TENSOR_METHODS
from .side_by_side import build_kernels, note_faults
from .whole import settle

_costs = {}  # (what a unit computes, strides of its inputs, device) -> {side: Cost}
_MOST_COSTS = 10000
# First calls: programs share plans, which build their kernels then. An operator of the user's may call another program.
_building = threading.RLock()


class Step:
    """A unit with what was found out about it. where: "weft", "torch" or "view"."""

    def __init__(self, unit):
        self.unit, self.kind = unit, unit.kind
        self.where = "torch" if unit.kind == "torch" else "view" if unit.kind == "view" else "weft"
        self.reason, self.able = unit.reason, unit.kind != "torch"
        self.recipe = self.rule = None
        self.costs = {}  # side -> Cost, where measured

    @property
    def seconds(self):
        """Measured seconds on both sides, for `explain`."""
        return {side: c.seconds for side, c in self.costs.items()} if "weft" in self.costs else {}

    def array_rule(self):
        """(rule, its context) of a single operator."""
        if self.rule is None:
            self.rule = array_function(self.unit.ops[0], self.unit.outputs)
        return self.rule

    def by_rule(self, array):
        """The results of the single operator by its rule; `array` gives the array of a value."""
        (op,) = self.unit.ops
        rule, c = self.array_rule()
        args, kwargs = (map_values(a, array) for a in (op.args, op.kwargs))
        found = rule(c, *args, **kwargs)
        return list(found) if op.several else [found]

    def on_weft(self, array):
        """The unit's results by weft; `array` gives the array of a value."""
        if self.recipe is not None:
            return self.recipe.plan.run([array(v) for v in self.recipe.inputs])
        (op,) = self.unit.ops
        found = self.by_rule(array)
        wanted = {v.id for v in self.unit.outputs}
        for v, x in zip(op.outputs, found):
            if v is not None and v.id in wanted:
                if x is None:
                    raise Unsupported("a result of the operator that weft does not compute is used")
                check(op, v, x.shape, x.dtype)
        return [x for v, x in zip(op.outputs, found) if v is not None and v.id in wanted]


# torch's own functions of the same arguments as the operator: half the work of a call through the dispatcher's tables.
_DIRECT = {"aten.linear.default": torch._C._nn.linear}
for _space, _names in (
    (torch, "addmm mm bmm baddbmm convolution native_layer_norm cudnn_batch_norm embedding relu tanh sigmoid rsqrt exp "
            "native_batch_norm _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
            "_scaled_dot_product_cudnn_attention _native_batch_norm_legit_no_training _native_batch_norm_legit_functional "
            "native_dropout clone cat neg sin cos erf sqrt log abs"),
    (torch._C._nn, "gelu silu max_pool2d_with_indices hardswish hardsigmoid"),
):  # fmt: skip
    _DIRECT.update({f"aten.{n}.default": getattr(_space, n) for n in _names.split() if hasattr(_space, n)})  # fmt: skip
_DIRECT.update({
    f"aten.{name}.{overload}": getattr(torch, name)
    for name in ("add", "sub", "mul", "div") for overload in ("Tensor", "Scalar")
} | {"aten.where.self": torch.where, "aten.mean.dim": torch.mean, "aten.pow.Tensor_Scalar": torch.pow})  # fmt: skip


def _view_as_complex(t):
    """torch's traced view, of a tensor whose strides weft may have made others."""
    plain = t.stride(-1) == 1 and not any(s % 2 for s in t.stride()[:-1])
    return torch.view_as_complex(t if plain else t.contiguous())


_DIRECT["aten.view_as_complex.default"] = _view_as_complex


#: Operators that read memory, not elements: other strides would give another result.
_OF_MEMORY = (
    "aten.as_strided.default", "aten.as_strided_copy.default", "aten.as_strided_scatter.default", "aten.view.dtype"
)  # fmt: skip


def torch_function(op):
    """What computes an operator on torch."""
    function = _DIRECT.get(op.name) or getattr(op.target, "_op", op.target)
    if "efficient_attention_backward" in op.name:
        function = _state_where_it_is_read(function, op)
    drawn = torch.Tag.nondeterministic_seeded in getattr(op.target, "tags", ())
    return _as_laid_out(function, op) if drawn or op.name in _OF_MEMORY else function


def _state_where_it_is_read(function, op):
    """The random state of a forward pass, where torch's gradient of this attention reads it.

    A forward pass that is being recorded keeps its state on the card, any other one on the host, and the gradient takes for
    granted that it is recorded if and only if the forward pass was: it follows an address of the other side otherwise.
    """
    names = [a.name for a in op.target._schema.arguments]
    state, dropout = [names.index(n) for n in ("philox_seed", "philox_offset")], names.index("dropout_p")  # fmt: skip

    def run(*args, **kwargs):
        if not args[dropout]:
            return function(*args, **kwargs)
        args, recorded = list(args), torch.cuda.is_current_stream_capturing()
        for i in state:
            if recorded and not args[i].is_cuda:
                raise Unsupported("the forward pass of attention was not recorded: its random state lies on the host")  # fmt: skip
            if not recorded and args[i].is_cuda:
                args[i] = args[i].cpu()
        return function(*args, **kwargs)

    return run


def _as_laid_out(function, op):
    """Random numbers are drawn in the order of memory: the operator's tensors get the strides that torch's have."""
    fakes = [(i, a.fake) for i, a in enumerate(op.args) if isinstance(a, Value)]
    if not fakes:
        return function

    def run(*args, **kwargs):
        args = list(args)
        for i, fake in fakes:
            if not same_layout(args[i], fake):
                args[i] = fixed(args[i], fake)
        return function(*args, **kwargs)

    return run


def torch_call(op, args, kwargs):
    return torch_function(op)(*args, **kwargs)


def is_marked(t):
    """Does a bit of the tensor say that its memory holds conjugates or negatives? A capsule does not carry it."""
    return t.is_conj() or t.is_neg()


def as_it_reads(t):
    """The tensor with the elements in memory that it reads as."""
    return t.resolve_conj().resolve_neg()


class Bridge:
    """Tensors to arrays and back: over the same memory, or by copies to and from a named device."""

    def __init__(self, home, device):
        self.home, self.device = home, device
        self.same = device is None

    def to_weft(self, t):
        if t.requires_grad:
            t = t.detach()
        if is_marked(t):
            t = as_it_reads(t)
        x = _core._from_dlpack(torch._C._to_dlpack(t), None, None)
        return x if self.same else x.to(self.device)

    def to_torch(self, x):
        if self.same:
            return torch._C._from_dlpack(
                x.__dlpack__(stream=-1) if self.home.type == "cuda" else x.__dlpack__()
            )
        t = torch._C._from_dlpack(x.to("cpu").__dlpack__())
        return t if self.home.type == "cpu" else t.to(self.home)

    def wait(self):
        if self.home.type == "cuda":
            torch.cuda.synchronize(self.home)


def _overlap(a, b):
    return a[0] < b[1] and b[0] < a[1]


def _span(t):
    if not isinstance(t, torch.Tensor) or not t.numel():
        return (0, 0)
    first = t.data_ptr()
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1
    return (first, first + reach * t.element_size())


class Program:
    """What one graph of known sizes does. Call it with a list of the graph's inputs."""

    def __init__(self, graph, units, home, options):
        self.graph, self.home, self.options = graph, home, options
        self.bridge = Bridge(home, options.weft_device)
        self.steps = [Step(u) for u in units]
        self.kept = kept_ids(graph)
        self.run = self.like = None
        self.code = ""
        self.fixes = {}  # number of an output -> "copy"
        self.later = []  # strides of the results of later calls, where these were looked at
        self.faults = []  # what raised beside the steps, as texts: explain shows them

    def __call__(self, args):
        if self.home.type == "cuda" and torch.cuda.current_stream(self.home).cuda_stream:
            return self._beside_stream(args)
        return self._call(args)

    def _beside_stream(self, args):
        """weft launches on the card's default stream: what torch has on another one is waited for, both ways."""
        own, shared = torch.cuda.current_stream(self.home), torch.cuda.default_stream(self.home)
        shared.wait_stream(own)
        with torch.cuda.stream(shared):
            results = self._call(args)
        own.wait_stream(shared)
        for t in results:
            if isinstance(t, torch.Tensor) and t.is_cuda:
                t.record_stream(own)
        return results

    def _call(self, args):
        run = self.run
        if run is None:
            with _building:
                if self.run is None:
                    return self._first(args)
                run = self.run
        return run(args)

    # ---- the first call

    def like_array(self):
        """An array where the plans will run."""
        if self.like is None:
            named = self.options.weft_device
            home = f"cuda:{self.home.index or 0}" if self.home.type == "cuda" else "cpu"
            self.like = weft.empty((1,), device=named or home)
        return self.like

    def _split(self, step):
        """A group that makes no plan is halved until it does, or stays with torch."""
        unit = step.unit
        try:
            step.recipe = Recipe(unit, self.like_array())
            return [step]
        except Exception as raised:  # a fault of ours must not end the user's program
            reason = refusal(raised)
        if len(unit.ops) == 1:
            return [Step(Unit("torch", unit.ops, reason))]
        out = []
        for part in halves(unit, lambda ops: Unit("fused", ops)):
            part.connect(self.kept)
            out += self._split(Step(part))
        return out

    def _prepare(self):
        steps = []
        for step in self.steps:
            steps += self._split(step) if step.kind == "fused" else [step]
        by_unit = {id(s.unit): s for s in steps}
        self.steps = [by_unit[id(u)] for u in order([s.unit for s in steps], self.kept)]

    def kind_of(self, step):
        """A text that is equal for steps that compute the same from inputs of the same shapes and strides."""
        unit = step.unit
        what = step.recipe.key if step.recipe else "; ".join(f"{op.name} {map_values([op.args, op.kwargs], lambda v: (v.fake.dtype, tuple(v.fake.shape)))}" for op in unit.ops)  # fmt: skip
        strides = [tuple(v.fake.stride()) for v in unit.inputs]
        return f"{unit.kind} {self.home} {self.options.weft_device} {strides} {what}"

    def _first(self, args):
        self._prepare()
        compare = self.options.prefer == "fastest" and not remembered.recall(self)
        built = build_kernels(self)
        trial = Trial(self, args, compare)
        for step in self.steps:
            trial.step(step)
        note_faults(self, built)
        outputs = trial.outputs()
        from .codegen import write

        if compare:
            settle(self, trial.given)
            remembered.keep(self)
            outputs = self._as_later(outputs)
        self.code, self.run = write(self)
        args.clear()
        return outputs

    def _as_later(self, outputs):
        """Results of the first call with the strides of later ones, to which the backward graph is fitted."""
        if not self.later:
            return outputs
        return [
            t if not isinstance(t, torch.Tensor) or s is None or t.stride() == s or self._reaches_user(i)
            else torch.empty_strided(t.shape, s, dtype=t.dtype, device=t.device).copy_(t)
            for i, (t, s) in enumerate(zip(outputs, self.later))
        ]  # fmt: skip

    def _reaches_user(self, number):
        """Whether the strides of a result are seen: those of what the backward graph reads are not."""
        return self.graph.returned is None or number < self.graph.returned

    def protect(self, found, given):
        """Marks results whose strides differ from torch's, and those that share memory where torch's do not."""
        self.fixes = {}
        taken = []
        for v, t in zip(self.graph.inputs, given):
            if isinstance(v, Value):
                taken.append((_span(t), v.fake))
        for v in values_with_constants(self.graph):
            taken.append((_span(v.constant), None))
        for i, (t, v) in enumerate(zip(found, self.graph.outputs)):
            if not isinstance(v, Value) or not isinstance(t, torch.Tensor):
                continue  # a token, which orders effects, is None in a call
            span, fake = _span(t), v.fake
            wrong = v.constant is not None or (self._reaches_user(i) and not same_layout(t, fake))
            for other, theirs in taken:
                shared = theirs is not None and _shares(fake, theirs)
                wrong = wrong or (_overlap(span, other) and not shared)
            if wrong:
                self.fixes[i] = "copy"
            else:
                taken.append((span, fake))


class Trial:
    """The first run: every value is kept as a tensor, an array or both, for as long as a step reads it."""

    def __init__(self, program, args, compare):
        self.p, self.bridge, self.compare = program, program.bridge, compare
        self.t, self.w = {}, {}
        self.given = list(args)
        for v, a in zip(program.graph.inputs, args):
            if isinstance(v, Value):
                self.t[v.id] = a
        self.last = {}
        for i, step in enumerate(program.steps):
            for v in step.unit.inputs:
                self.last[v.id] = i
        self.at = 0

    def tensor(self, v):
        if v.constant is not None:
            return v.constant
        if v.id not in self.t:
            self.t[v.id] = self.bridge.to_torch(self.w[v.id])
        return self.t[v.id]

    def array(self, v):
        if v.id not in self.w:
            self.w[v.id] = self.bridge.to_weft(self.tensor(v))
        return self.w[v.id]

    def on_torch(self, step):
        """The unit's results by torch."""
        local = {}
        tensor = lambda v: local[v.id] if v.id in local else self.tensor(v)  # noqa: E731
        with torch.no_grad():
            for op in step.unit.ops:
                args, kwargs = (map_values(a, tensor) for a in (op.args, op.kwargs))
                method = TENSOR_METHODS.get(op.name)
                found = (
                    getattr(args[0], method)(*args[1:]) if method else torch_call(op, args, kwargs)
                )
                for v, t in zip(op.outputs, found if op.several else [found]):
                    if v is not None:
                        local[v.id] = t
        return [local[v.id] for v in step.unit.outputs]

    def step(self, step):
        if step.where == "weft":
            self._try_weft(step)
        elif step.where == "torch":
            self._keep(self.t, step, self.on_torch(step))
            self._note_cost(step)
        else:
            self._view(step)
            self._note_cost(step)
        for v in step.unit.inputs:
            if self.last[v.id] == self.at and v.id not in self.p.kept:
                self.t.pop(v.id, None)
                self.w.pop(v.id, None)
        self.at += 1

    def _keep(self, table, step, results):
        for v, x in zip(step.unit.outputs, results):
            table[v.id] = x

    def _view(self, step):
        (op,) = step.unit.ops
        source = step.unit.inputs[0]
        if source.id in self.w and source.id not in self.t:
            try:
                return self._keep(self.w, step, step.on_weft(self.array))
            except Exception as raised:  # a view of the tensor does as well
                step.reason = refusal(raised)
        self._keep(self.t, step, self.on_torch(step))

    def _try_weft(self, step):
        try:
            results = step.on_weft(self.array)
        except Exception as raised:  # a fault of ours must not end the user's program
            reason = refusal(raised)
        else:
            if self.compare:
                step.costs = self._measured(step, ("torch", "weft"))
            # Results of this call come from weft in any case, so that refusals show at once.
            return self._keep(self.w, step, results)
        step.where, step.reason, step.able = "torch", reason, False
        return self._keep(self.t, step, self.on_torch(step))

    def _note_cost(self, step):
        """On a card, what torch alone can do counts where host and card are weighed against each other."""
        again = all(
            isinstance(op.target, torch._ops.OpOverload)
            and not op.target._schema.is_mutable
            and torch.Tag.nondeterministic_seeded not in op.target.tags
            for op in step.unit.ops
        )
        weighed = self.p.home.type == "cuda" and not self.p.options.graphs
        if again and weighed and self.compare:
            step.costs = self._measured(step, ("torch",))

    def _key(self, step):
        return (
            self.p.kind_of(step),
            tuple(self.tensor(v).stride() for v in step.unit.inputs),
            torch.get_num_threads(),
            weft.get_threads(),
            self.p.options.patient,
        )

    def _measured(self, step, sides):
        """{side: Cost}; equal steps are measured once."""
        key = (*sides, *self._key(step))
        if key not in _costs:
            from .codegen import write_step

            if len(_costs) >= _MOST_COSTS:
                _costs.clear()
            runs = {side: write_step(self.p, step, side) for side in sides}
            args = [self.tensor(v) for v in step.unit.inputs if v.constant is None]
            with KeptNumbers(step.unit.ops, self.p.home):
                _costs[key] = measure(runs, args, self.p.home, self.p.options.patient)
        return _costs[key]

    # ---- results

    def outputs(self):
        """The graph's results, with the strides and the sharing of memory that torch would have."""
        found = [self.tensor(v) if isinstance(v, Value) else v for v in self.p.graph.outputs]
        fakes = [v.fake if isinstance(v, Value) else None for v in self.p.graph.outputs]
        self.p.protect(found, self.given)
        return [
            fixed(t, f) if i in self.p.fixes else t for i, (t, f) in enumerate(zip(found, fakes))
        ]


def values_with_constants(graph):
    seen = {}
    for op in graph.ops:
        for v in op.inputs:
            if v.constant is not None:
                seen[v.id] = v
    for v in graph.outputs:
        if isinstance(v, Value) and v.constant is not None:
            seen[v.id] = v
    return list(seen.values())


def _shares(a, b):
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def same_layout(t, fake):
    return all(n <= 1 or s == f for n, s, f in zip(fake.shape, t.stride(), fake.stride()))


def fixed(t, fake):
    """A copy of t with the strides of `fake`; along an axis of stride 0 all elements are one."""
    shape, strides = tuple(fake.shape), tuple(fake.stride())
    repeated = [n > 1 and s == 0 for n, s in zip(shape, strides)]
    own = tuple(1 if r else n for r, n in zip(repeated, shape))
    out = torch.empty_strided(own, strides, dtype=t.dtype, device=t.device)
    out.copy_(t[tuple(slice(0, n) for n in own)])
    return out.expand(shape) if any(repeated) else out
