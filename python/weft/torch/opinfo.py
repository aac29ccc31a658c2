# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own sample inputs through the back end: python -m weft.torch.opinfo [NAME...].

Each sample of torch.testing._internal's operator table is traced to ATen operators, compiled, run twice (the trying first
call and the generated code) and compared with eager torch by torch.testing's tolerances; with --gradients its gradients
too. Prints passed / total, and what failed. Exit status 1 where something failed.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.func import functionalize
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._backend import HandedOver, Options, _compile_graph, _decompositions, watch

DTYPES = ("float32", "float64", "int64", "bool", "bfloat16")
#: Operators that do not give the same twice, or whose result is memory that nobody wrote.
UNREPEATABLE = ("rand", "dropout", "bernoulli", "multinomial", "normal", "empty", "uniform", "rrelu",
                "exponential", "cauchy", "geometric", "svd_lowrank", "pca_lowrank", "randn", "fractional")  # fmt: skip


class Tally:
    def __init__(self):
        self.passed = self.total = self.with_weft = self.untraced = 0
        self.faults, self.failures = collections.Counter(), []
        self.nodes = self.able = 0

    def line(self):
        return (
            f"{self.passed}/{self.total} passed, {self.with_weft} of them with work on weft "
            f"({self.able} of {self.nodes} operators), {self.untraced} samples that torch cannot trace"
        )


def tensors_of(structure):
    leaves, spec = tree_flatten(structure)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    return leaves, spec, places


def results_of(found):
    return [t for t in tree_flatten(found)[0] if isinstance(t, torch.Tensor)]


def forward_of(op, sample):
    """(function of tensors, the tensors) of a sample."""
    leaves, spec, places = tensors_of((sample.input, sample.args, sample.kwargs))

    def run(*given):
        filled = list(leaves)
        for i, t in zip(places, given):
            filled[i] = t
        x, args, kwargs = tree_unflatten(filled, spec)
        return results_of(op.op(x, *args, **kwargs))

    return run, [leaves[i].detach() for i in places]


def gradient_of(forward, tensors):
    """The gradients of the results' weighted sum, as a function of the tensors."""
    wanted = [i for i, t in enumerate(tensors) if t.is_floating_point()]

    def run(*given):
        given = [t.detach().requires_grad_() if i in wanted else t for i, t in enumerate(given)]
        out = [t for t in forward(*given) if t.requires_grad and t.is_floating_point()]
        if not out:
            return []
        seeds = [
            torch.cos(torch.arange(t.numel(), dtype=t.dtype, device=t.device)).reshape(t.shape)
            for t in out
        ]
        found = torch.autograd.grad(out, [given[i] for i in wanted], seeds, allow_unused=True)
        return [g for g in found if g is not None]

    return run


def check(function, tensors, tally, options, name):
    """Compiles and compares one function of tensors."""
    try:
        want = function(*[t.clone() for t in tensors])
        traced = make_fx(
            functionalize(function), decomposition_table=_decompositions(), tracing_mode="fake"
        )
        module = traced(*tensors)
        module.graph.eliminate_dead_code()
        module.recompile()
    except (
        Exception
    ):  # no gradient, data-dependent sizes, an operator without a fake kernel: torch's own limits
        tally.untraced += 1
        return
    tally.total += 1
    programs = []
    before = watch(programs)
    try:
        run = _compile_graph(module, options)
        for again in range(2):
            got = run([t.clone() for t in tensors])
            for g, w in zip(got, want, strict=True):
                torch.testing.assert_close(g, w, equal_nan=True, check_stride=True)
    except Exception as fault:
        text = str(fault).strip().split("\n")
        tally.failures.append((name, f"{type(fault).__name__}: {' '.join(text)[:300]}"))
        return
    finally:
        watch(before)
    tally.passed += 1
    program = programs[0]
    if isinstance(program, HandedOver):
        return
    for step in program.steps:
        tally.nodes += len(step.unit.ops)
        tally.able += len(step.unit.ops) if step.able else 0
        if step.reason.startswith("fault"):
            tally.faults[(name, step.reason)] += 1
    tally.with_weft += any(s.where == "weft" for s in program.steps)


def operators(names):
    from torch.testing._internal.common_methods_invocations import op_db

    found = [op for op in op_db if not names or op.name in names or op.formatted_name in names]
    return [op for op in found if not any(part in op.name for part in UNREPEATABLE)]


def run(names=(), dtypes=DTYPES, samples=4, gradients=False, options=None, progress=None):
    """A Tally of the named operators, all of them where none is named."""
    options = options or Options(prefer="weft")
    tally = Tally()
    for op in operators(names):
        for dtype in dtypes:
            kind = getattr(torch, dtype)
            if kind not in op.supported_dtypes("cpu"):
                continue
            torch.manual_seed(0)
            try:
                drawn = op.sample_inputs("cpu", kind, requires_grad=False)
            except Exception:
                tally.untraced += 1
                continue
            for i, sample in enumerate(drawn):
                if i >= samples:
                    break
                forward, tensors = forward_of(op, sample)
                if not tensors:
                    continue
                name = f"{op.formatted_name}[{dtype}]"
                check(forward, tensors, tally, options, name)
                if gradients and kind.is_floating_point and op.supports_autograd:
                    check(
                        gradient_of(forward, tensors), tensors, tally, options, f"{name} gradient"
                    )
        if progress:
            progress(op, tally)
    return tally


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m weft.torch.opinfo", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="operators of torch's table; all where none is given"
    )
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--samples", type=int, default=4, help="of each operator and type")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument(
        "--device", default=None, help="a weft device; where the tensors are if not given"
    )
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    options = Options(device=given.device, prefer="weft")
    tally = run(given.names, given.dtypes.split(","), given.samples, given.gradients, options)
    for name, text in tally.failures:
        print(f"FAILED {name}: {text}")
    for (name, text), count in tally.faults.items():
        print(f"FAULT {name} ({count}): {text}")
    print(tally.line())
    return 1 if tally.failures or tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
