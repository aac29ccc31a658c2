# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="weft")."""

from __future__ import annotations

import threading

import torch

import weft

from .._core import shown as _shown
from .._errors import error as _error
from . import _graphs, rules
from .added_rows import join_added_rows
from .decompositions import decompositions
from .graph import HandedBack, has_symbols, lower
from .layouts import lay_out_images
from .linears import join_linears
from .mutation import changed_inputs, write_in_place
from .partition import partition
from .parts import join_parts
from .program import Program, fixed, same_layout
from .second import Facts, with_second_gradients
from .statistics import correct_statistics

_MOST_SIZES = 16  # combinations of sizes that one dynamic graph is compiled for
_watchers = threading.local()

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
PREFERENCES = ("fastest", "weft")


class Options:
    """What torch.compile's options say. device: a weft device, None for where the tensors are."""

    def __init__(self, device=None, prefer=None, mode=None, graphs=None, **unknown):
        if unknown:
            raise _error(
                "value",
                "torch.compile.option",
                f"no option is called {', '.join(map(repr, sorted(unknown)))}",
                [
                    'legal: "device" (a weft device), "prefer" ("fastest" or "weft"), "graphs" (True or False)'
                ],
                help='torch.compile(model, backend="weft", options={"device": "opencl"})',
            )
        if mode not in (None, *MODES):
            raise _error(
                "value",
                "torch.compile.mode",
                f"mode {_shown(mode)} of torch.compile",
                [f"legal: {', '.join(map(repr, MODES))}"],
                help="leave mode out",
            )
        if prefer not in (None, *PREFERENCES):
            raise _error(
                "value",
                "torch.compile.prefer",
                f"prefer is {_shown(prefer)}",
                ['legal: "fastest" (each part is timed on weft and on torch) or "weft"'],
                help="leave prefer out",
            )
        if graphs not in (None, True, False):
            raise _error(
                "value",
                "torch.compile.graphs",
                f"graphs is {_shown(graphs)}",
                ["legal: True (calls are replays of CUDA graphs), False (they never are)"],
                help="leave graphs out: programs whose calls the host bounds are replayed",
            )
        self.weft_device = None
        if device is not None:
            self.weft_device = weft.device(device if isinstance(device, str) else str(device))
            if not self.weft_device.available:
                raise _error(
                    "device",
                    "torch.compile.device",
                    f"device {device} is not there: {self.weft_device.reason}",
                    help="weft.devices() lists those that are",
                )
        self.prefer = prefer or ("fastest" if self.weft_device is None else "weft")
        asked = mode in ("reduce-overhead", "max-autotune") if graphs is None else graphs
        self.graphs = asked and self.weft_device is None
        # Graphs where they pay: unless something was said about them.
        self.graphs_where_slow = (
            graphs is None and mode in (None, "default") and self.weft_device is None
        )
        self.collector = None  # of the thread that compiles forward; backward is compiled by others
        self.patient = mode in ("max-autotune", "max-autotune-no-cudagraphs")


def watch(collector):
    """Programs made by this thread are appended to `collector` from now on; gives the one before."""
    before = getattr(_watchers, "list", None)
    _watchers.list = collector
    return before


class HandedOver:
    """A graph that torch runs as it is."""

    def __init__(self, module, reason):
        self.module, self.reason = module, reason
        self.steps, self.graph = [], None

    def count(self):
        return sum(node.op == "call_function" for node in self.module.graph.nodes)


def _device_of(module):
    """The device that the graph's tensors are on; a HandedBack where there are several kinds."""
    found = set()
    for node in module.graph.nodes:
        value = node.meta.get("val")
        for v in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(v, torch.Tensor) and (v.device.type != "cpu" or v.dim()):
                found.add(v.device)
    if not found:
        return torch.device("cpu")
    if len(found) > 1:
        raise HandedBack(f"tensors on {' and '.join(sorted(map(str, found)))}")
    (device,) = found
    if device.type not in ("cpu", "cuda"):
        raise HandedBack(f"tensors on {device}")
    return device


def _program(module, options, returned, inputs=None):
    device = _device_of(module)
    graph = lower(module, inputs)
    graph.returned = returned
    correct_statistics(graph)
    if options.weft_device is None:  # a named device works on copies
        write_in_place(graph)
    join_linears(graph)
    join_parts(graph)
    join_added_rows(graph)
    if options.prefer == "fastest" and options.weft_device is None:
        lay_out_images(graph)
    program = Program(graph, partition(graph, device), device, options)
    _notice(program, options)
    if not _graphs.supported(device):
        return program
    if options.graphs:
        changed = changed_inputs(graph)
        return _graphs.Graphed(program, lambda args: program.run(args), program, device, changed)
    if options.graphs_where_slow and inputs is None:
        return _graphs.WhereSlow(program, device, changed_inputs(graph))
    return program


def _notice(program, options):
    collector = getattr(_watchers, "list", None)
    collector = options.collector if collector is None else collector
    if collector is not None:
        collector.append(program)


def _through_torch(module, reason, options):
    handed = HandedOver(module, reason)
    _notice(handed, options)

    fakes = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
    fakes = [] if has_symbols(module) else fakes

    def run(args):
        given = list(args)
        args.clear()
        for i, fake in enumerate(
            fakes
        ):  # what another graph saved for this one may have other strides
            if (
                isinstance(fake, torch.Tensor)
                and fake.layout is torch.strided
                and not same_layout(given[i], fake)
            ):
                given[i] = fixed(given[i], fake)
        return module(*given)

    return _boxed(run, module)


def _boxed(program, module):
    """A function, which torch's wrappers keep the mark of, unlike an object's. Under vmap (`is_grads_batched`) torch runs the graph."""
    included, batched = (
        torch._C._dispatch_tls_is_dispatch_key_included,
        torch._C._parse_dispatch_key("VmapMode"),
    )

    def run(args):
        return module(*args) if included(batched) else program(args)

    run._boxed_call = True
    return run


class Dynamic:
    """A graph with symbolic sizes: one program for each combination of sizes that comes."""

    def __init__(self, module, options):
        self.module, self.options = module, options
        self.programs, self.lock = {}, threading.Lock()

    def __call__(self, args):
        key = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args)
        run = self.programs.get(key)
        if run is None:
            with self.lock:
                run = self.programs.get(key) or self._make(key, args)
        return run(args)

    def _make(self, key, args):
        if len(self.programs) >= _MOST_SIZES:
            reason = f"more than {_MOST_SIZES} combinations of sizes"
            return self.programs.setdefault(
                "more", _through_torch(self.module, reason, self.options)
            )
        try:
            run = _program(self.module, self.options, None, args)
        except HandedBack as reason:
            run = _through_torch(self.module, str(reason), self.options)
        self.programs[key] = run
        return run


def _returned():
    """How many outputs of the forward graph that torch compiles now reach the user; None where that is not known."""
    context = torch._guards.TracingContext.try_get()
    return getattr(getattr(context, "fw_metadata", None), "num_forward", None)


def _compile_graph(module, options, returned=None):
    rules.load()
    try:
        if has_symbols(module):
            _device_of(module)
            return _boxed(Dynamic(module, options), module)
        return _boxed(_program(module, options, returned), module)
    except HandedBack as reason:
        return _through_torch(module, str(reason), options)


def _lay_out_masks(module):
    """Copies masks of attention on a card whose last axis is not compact.

    torch has no fused kernel for such a mask, and takes attention apart into products with all scores in memory.
    """
    compact = {}
    for node in list(module.graph.nodes):
        if node.target is not torch.nn.functional.scaled_dot_product_attention:
            continue
        mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
        example = mask.meta.get("example_value") if isinstance(mask, torch.fx.Node) else None
        if example is None or example.device.type != "cuda" or example.stride(-1) == 1:
            continue
        if mask not in compact:
            with module.graph.inserting_after(mask):
                compact[mask] = module.graph.call_method("contiguous", (mask,))
        node.replace_input_with(mask, compact[mask])
    if compact:
        module.recompile()


def _partitioner(example_inputs):
    """The argument of aot_autograd that splits a training step into its two passes.

    On a card what is cheap is computed again in the backward pass, so a chain of element-wise operators stores its result
    alone: memory bounds it there. On a host a tanh costs more than its load, and what the forward pass has is kept.
    """
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    on_card = any(isinstance(x, torch.Tensor) and x.is_cuda for x in example_inputs)
    return {"partition_fn": min_cut_rematerialization_partition} if on_card else {}


def backend(module, example_inputs, **arguments):
    """The back end "weft" of torch.compile: whole graphs of ATen operators, forward and backward.

    options: "device" (any weft device; else the one that the tensors are on), "prefer" ("fastest": each part is timed on
    weft and on torch in the first call, and the faster one stays; "weft": whatever weft can compute), "graphs" (False: no
    CUDA graphs; left out, a program whose calls the host bounds, not the card, is replayed as one from its fourth call on).
    Raises weft.Error for other options, modes and absent devices.
    """
    from torch._dynamo.backends.common import aot_autograd

    given = dict(arguments.pop("options", None) or {})
    mode = arguments.pop("mode", None)
    if "mode" in given:
        mode = given.pop("mode")
    options = Options(mode=mode, **given, **arguments)
    options.collector = getattr(_watchers, "list", None)

    def compile_graph(module, example_inputs):
        return _compile_graph(module, options)

    def compile_forward(module, example_inputs):
        facts.take(module)
        return _compile_graph(module, options, _returned())

    facts = Facts()
    _lay_out_masks(module)
    compiled = aot_autograd(
        fw_compiler=compile_forward,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
        **_partitioner(example_inputs),
    )
    return with_second_gradients(compiled(module, example_inputs), module, facts, example_inputs)
