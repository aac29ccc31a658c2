# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own sample inputs through the back end: python -m weft.torch.opinfo [NAME...].

Each sample of torch.testing._internal's operator table is traced to ATen operators, compiled, run twice (the trying first
call and the generated code) and compared with eager torch by torch.testing's tolerances; with --gradients its gradients
too. Prints passed / total, what failed, and why operators stayed with torch. Exit status 1 where something failed.
With --seconds each operator has a process of its own, which is ended after that time and named; what it had counted is lost.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import warnings

import torch
from torch._functorch.aot_autograd import aot_function, make_boxed_func
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._backend import Options, _compile_graph, watch
from .decompositions import decompositions

DTYPES = ("float32", "float64", "int64", "bool", "bfloat16")
#: Operators that do not give the same twice, or whose result is memory that nobody wrote.
UNREPEATABLE = ("rand", "dropout", "bernoulli", "multinomial", "normal", "empty", "uniform", "rrelu",
                "exponential", "cauchy", "geometric", "svd_lowrank", "pca_lowrank", "randn", "fractional")  # fmt: skip


class Tally:
    def __init__(self):
        self.passed = self.total = self.with_weft = 0
        self.untraced = (
            collections.Counter()
        )  # (sample, why): eager torch refuses it, or cannot trace it
        self.faults, self.failures = collections.Counter(), []
        self.closer = []  # beyond the tolerance, and nearer to float64's results than eager torch
        self.differing = (
            collections.Counter()
        )  # (sample, how): torch's own decompositions differ from eager
        self.nodes = self.able = 0
        self.reasons = collections.Counter()  # why operators stay with torch
        self.unended = []  # operators whose process gave no result

    def take(self, other):
        """Adds what another tally counted."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def line(self):
        return (
            f"{self.passed}/{self.total} passed ({len(self.closer)} of them by being closer to float64 than eager is), {self.with_weft} of them with work on weft "
            f"({self.able} of {self.nodes} operators), "
            f"{self.untraced.total()} samples that torch cannot trace, {self.differing.total()} whose decomposition differs from eager in torch itself"
        )

    def add(self, name, programs):
        with_weft = False
        for program in programs:
            self.faults.update((name, text) for text in getattr(program, "faults", ()))
            for step in program.steps:
                self.nodes += len(step.unit.ops)
                self.able += len(step.unit.ops) if step.able else 0
                with_weft |= step.where == "weft"
                if not step.able:
                    self.reasons.update((op.name, step.reason) for op in step.unit.ops)
                if step.reason.startswith("fault"):
                    self.faults[(name, step.reason)] += 1
        self.with_weft += with_weft


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


def with_gradients(function, tensors, weights=None):
    """The results and the gradients of their weighted sum; weights: the type to round these to."""
    torch.manual_seed(0)
    given = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
    results = function(*given)
    out = [t for t in results if t.requires_grad]
    wanted = [t for t in given if t.requires_grad]
    if not out or not wanted:
        return None
    seeds = [
        torch.cos(torch.arange(t.numel()).to(weights or t.dtype)).to(t.dtype).reshape(t.shape)
        for t in out
    ]
    found = torch.autograd.grad(out, wanted, seeds, allow_unused=True)
    return [t.detach() for t in results], [g for g in found if g is not None]


def without_gradients(function, tensors, weights=None):
    torch.manual_seed(0)
    with torch.no_grad():
        return function(*[t.clone() for t in tensors]), []


def same(got, want):
    """Values and types by torch.testing's tolerances, and strides of axes that have more than one element."""
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, equal_nan=True)
        for n, a, b in zip(w.shape, g.stride(), w.stride()):
            assert n <= 1 or w.numel() == 0 or a == b, (
                f"strides {g.stride()} and {w.stride()} of {tuple(w.shape)}"
            )


def _short(fault):
    """One line of an exception."""
    return f"{type(fault).__name__}: {' '.join(str(fault).split())[:300]}"


def check(function, tensors, tally, options, name, run=without_gradients):
    """Compiles one function of tensors, calls it twice and compares."""
    try:
        want = run(function, tensors)
    except Exception as refused:  # eager torch has no gradient, or refuses the sample
        tally.untraced[name, f"eager: {_short(refused)}"] += 1
        return
    if want is None:
        return  # nothing to differentiate
    programs, reached = [], []

    def compile_graph(module, inputs):
        reached.append(module)
        return _compile_graph(module, options)

    compiled = aot_function(
        function,
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        decompositions=decompositions(),
    )
    before = watch(programs)
    try:
        for _ in range(2):
            results, gradients = run(compiled, tensors)
            same(results, want[0])
            same(gradients, want[1])
    except Exception as fault:
        if not reached:  # torch could not trace it: sizes that the data decides, sparse tensors
            tally.untraced[name, _short(fault)] += 1
            return
        if is_closer(function, tensors, run, compiled, want):
            tally.closer.append(name)
            tally.total += 1
            tally.passed += 1
            tally.add(name, programs)
            return
        differs = torch_differs(function, tensors, run, want)
        if differs:
            tally.differing[name, differs] += 1
            return
        tally.total += 1
        tally.failures.append((name, _short(fault)))
        return
    finally:
        watch(before)
    tally.total += 1
    tally.passed += 1
    tally.add(name, programs)


def _widened(t):
    """The tensor in float64 or complex128; integers as they are."""
    return t.double() if t.is_floating_point() else t.to(torch.complex128) if t.is_complex() else t


def is_closer(function, tensors, run, compiled, want):
    """Whether the compiled results are at least as near to those of float64 as eager's are, each by its largest error."""
    wide = [_widened(t) for t in tensors]
    try:
        narrow = next(
            (t.dtype for t in tensors if t.dtype in (torch.float16, torch.bfloat16)), None
        )
        exact, got = run(function, wide, narrow), run(compiled, tensors)
        for parts in zip(exact, got, want, strict=True):
            for e, g, w in zip(*parts, strict=True):
                if (
                    not (e.is_floating_point() or e.is_complex())
                    or g.shape != e.shape
                    or g.dtype != w.dtype
                    or g.stride() != w.stride()
                ):
                    return False
                mine, theirs = ((_widened(t) - e).abs().max() for t in (g, w))
                if not mine <= theirs:
                    return False
    except Exception:  # the sample has no form in float64
        return False
    return True


def torch_differs(function, tensors, run, want):
    """How torch alone, running the same decomposed graph, differs from eager, too (other random numbers, say); else ""."""
    run_as_traced = lambda module, inputs: make_boxed_func(module.forward)  # noqa: E731
    traced = aot_function(
        function,
        fw_compiler=run_as_traced,
        bw_compiler=run_as_traced,
        inference_compiler=run_as_traced,
        decompositions=decompositions(),
    )
    try:
        results, gradients = run(traced, tensors)
        same(results, want[0])
        same(gradients, want[1])
    except Exception as fault:
        return _short(fault)
    return ""


def operators(names):
    """Entries of torch's table by name, all where none is given; entries stay as they are."""
    if names and not isinstance(names[0], str):
        return list(names)
    from torch.testing._internal.common_methods_invocations import op_db

    found = [op for op in op_db if not names or op.name in names or op.formatted_name in names]
    return [op for op in found if not any(part in op.name for part in UNREPEATABLE)]


def run_apart(names, seconds, *arguments):
    """`run` with a process for each operator, which has so many seconds."""
    context = multiprocessing.get_context("fork")  # torch and its table are imported once
    tally = Tally()
    for op in operators(names):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=lambda to=theirs, op=op: to.send(run([op], *arguments)))
        process.start()
        theirs.close()
        try:
            if not ours.poll(seconds):
                raise EOFError
            tally.take(ours.recv())
        except EOFError:
            tally.unended.append(op.formatted_name)
            process.kill()
        process.join()
    return tally


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
            except Exception as refused:
                tally.untraced[op.formatted_name, f"no samples: {_short(refused)}"] += 1
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
                    check(forward, tensors, tally, options, f"{name} gradient", with_gradients)
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
    parser.add_argument("--seconds", type=float, help="for each operator, in a process of its own")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    options = Options(device=given.device, prefer="weft")
    how = given.dtypes.split(","), given.samples, given.gradients, options
    tally = run_apart(given.names, given.seconds, *how) if given.seconds else run(given.names, *how)
    for name in tally.unended:
        print(f"UNENDED {name}")
    for name, text in tally.failures:
        print(f"FAILED {name}: {text}")
    for (name, text), count in tally.faults.items():
        print(f"FAULT {name} ({count}): {text}")
    for kind, found in (("untraced", tally.untraced), ("differs in torch", tally.differing)):
        for (name, text), count in found.items():
            print(f"{kind}: {name} ({count}): {text}")
    for (name, text), count in tally.reasons.most_common():
        print(f"on torch: {name} ({count}): {text}")
    print(tally.line())
    return 1 if tally.failures or tally.faults or tally.unended else 0


if __name__ == "__main__":
    sys.exit(main())
