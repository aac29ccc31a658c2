# SPDX-License-Identifier: Apache-2.0
"""Suggestions for names of NumPy, PyTorch, JAX and TVM that weft spells differently."""

import difflib

# NumPy's (or PyTorch's) name: what to write instead. Names of the array API standard 2024.12 are not listed.
SUGGESTIONS = {
    "FloatTensor": 'weft.tensor(x, dtype="float32")',
    "LongTensor": 'weft.tensor(x, dtype="int64")',
    "Target": 'a text: weft.build(f, target="cuda:arch=sm_90a")',
    "backends": "weft.devices(), or weft devices in a shell",
    "cpu": 'weft.device("cpu")',
    "jit": "weft.compile(f)",
    "export": "weft.build(f, target).save(path)",
    "lower": "weft compile FILE --target T --print-after all, or weft.build(f, target, after=...)",
    "ma": "NaN for what is masked, with weft.nanmean and its like, or weft.where(mask, x, 0)",
    "matrix": "weft.asarray(x), with x @ y for products",
    "memmap": "weft.asarray(numpy.memmap(path)), which shares its memory",
    "multiprocessing": "weft.distributed",
    "nditer": "for row in x, or weft.ndenumerate(x)",
    "nd": 'weft.asarray(x, device="cuda:0")',
    "relax": "torch.compile(model, backend='weft') or weft.onnx.load(path)",
    "relay": "torch.compile(model, backend='weft') or weft.onnx.load(path)",
    "show_config": "weft selftest, or weft devices, in a shell",
    "sparse_coo_tensor": "a dense array: weft has no sparse ones",
    "target": 'a text: weft.build(f, target="cuda:arch=sm_90a")',
    "testing": "numpy.testing, which takes weft's arrays",
    "tir": "weft.te, weft.script and weft.Schedule",
    "utils": "weft.data for torch.utils.data, weft.autograd.checkpoint",
    "version": "weft.__version__",
}
# TVM's names in te, and of steps.
TE = {
    "create_schedule": "weft.Schedule(te.create_prim_func([A, B, C]))",
    "thread_axis": 'the axis by its name: sch.bind(loop, "threadIdx.x")',
    "extern": "T.call in a program of weft.script",
    "hybrid": "weft.script",
}
STEPS = {
    "tile": "sch.split for each loop, then sch.reorder",
    "pragma": "sch.annotate(loop, key, value)",
    "compile": "weft.build(sch, target)",
    "build": "weft.build(sch, target)",
}
# What others call a target.
TARGETS = {
    "llvm": "cpu",
    "host": "cpu",
    "gpu": "cuda",
    "nvidia": "cuda",
    "nvptx": "cuda",
    "rocm": "opencl",
    "vulkan": "opencl",
}


def elsewhere(name):
    """ "; here it is ..." for a name of NumPy or PyTorch, else nothing."""
    return f"; here it is {SUGGESTIONS[name]}" if name in SUGGESTIONS else ""


def no_step(name, known):
    """The AttributeError for a name that a schedule lacks."""
    near = (
        difflib.get_close_matches(name, known, 1, 0.6)
        or [k for k in known if name.startswith(k)][-1:]
    )
    where = (
        f"; here it is {STEPS[name]}"
        if name in STEPS
        else f"; did you mean {near[0]!r}?"
        if near
        else ""
    )
    return AttributeError(f"'Schedule' object has no attribute {name!r}{where}")


def missing(module, name, table):
    """The AttributeError for a name that a module lacks."""
    where = f"; here it is {table[name]}" if name in table else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{where}")
