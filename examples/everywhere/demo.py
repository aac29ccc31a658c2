# SPDX-License-Identifier: Apache-2.0
"""One GEMV and one MLP on every device present, their text for each machine, a model through torch.compile, a
tuned kernel."""

import pathlib
import tempfile

import beside
import numpy as np
import one_program
import weft
from weft.cli.demo import unless_absent

SIZE = 256
MLP = (16, 64, 64, 16)  # rows, inside, hidden, outside
LABELS = {"GEMV": f"GEMV {SIZE} x {SIZE}", "MLP": f"MLP {MLP[0]} x {MLP[1]}, {MLP[2]}, {MLP[3]}"}
TEXTS = {
    "CUDA": "cuda",
    "QPU assembly": "qpu",
    "CSL (wafer)": "wse:4x4",
    "Metal": "metal",
    "OpenCL": "opencl",
    "C": "c",
    "LLVM (processor)": "cpu",
}


def _data(shapes, dtype):
    rng = np.random.default_rng(5)
    if dtype == "int8":
        return [rng.integers(-40, 40, shape).astype("int8") for shape in shapes]
    return [rng.random(shape, np.float32) - np.float32(0.5) for shape in shapes]


def _gemv(xp, a, x):
    return xp.matmul(a, x)


def _mlp(xp, x, w, v):
    return xp.matmul(xp.maximum(xp.matmul(x, w), xp.zeros_like(x[:1, :1])), v)


def _wanted(name, data, dtype):
    """The result in float64, or the exact integers."""
    wide = [d.astype("int64" if dtype == "int8" else "float64") for d in data]
    if name == "GEMV":
        return wide[0] @ wide[1]
    inner = wide[0] @ wide[1]
    return (np.clip(inner >> 7, 0, 127) if dtype == "int8" else np.maximum(inner, 0)) @ wide[2]


def _works():
    """(name, program of a type, shapes of the arguments, of the result, the same in NumPy's names, operations)."""
    rows, inside, hidden, outside = MLP
    yield (
        "GEMV", lambda t: one_program.gemv(SIZE, SIZE, t), [(SIZE, SIZE), (SIZE,)], (SIZE,), _gemv, 2 * SIZE**2,
    )  # fmt: skip
    yield (
        "MLP", lambda t: one_program.mlp(*MLP, t), [(rows, inside), (inside, hidden), (hidden, outside)],
        (rows, outside), _mlp, 2 * rows * hidden * (inside + outside),
    )  # fmt: skip


def _others(device, function, data):
    """The same work by NumPy, and by PyTorch where it is installed, on the same processor or card."""
    torch, out = beside.torch_or_none(), {}
    if device.name.startswith("cuda"):
        if torch is None or not torch.cuda.is_available():
            return out
        place = "cuda"
    else:
        out["NumPy"] = lambda: function(np, *data)
        place = "cpu"
    if torch is not None:
        tensors = [torch.from_numpy(d).to(place) for d in data]
        out["PyTorch"] = lambda: function(torch, *tensors)
    return out


def _row(device, name, make, shapes, result, function, flop):
    dtype = "float32"
    if weft.accepts(make(dtype), device.name) is not None:  # a machine of integers
        dtype = "int8"
    data = _data(shapes, dtype)
    module = weft.build(make(dtype), target=device.name)
    arrays = [weft.asarray(d, device=device) for d in data]
    total = "float32" if dtype == "float32" else "int32"
    out = weft.zeros(result, dtype=total, device=device)
    rivals, note = {}, dtype
    if device.kind == "hardware":
        calls = {"weft": lambda: module["main"](*arrays, out), **_others(device, function, data)}
        taken = beside.in_turns(calls, settle=device.synchronize)
        seconds = taken.pop("weft")
        rivals = taken
    else:
        timed = module.time_evaluator("main", number=1, repeat=1)(*arrays, out)
        seconds = timed.median
        note += f", {timed.cycles:,.0f} simulated cycles" if timed.cycles else ", interpreted"
    return dict(
        program=LABELS[name],
        device=device.name,
        seconds=seconds,
        rate=flop / seconds / 1e9,
        unit="Gop/s",
        got=out.numpy(),
        wanted=_wanted(name, data, dtype),
        limit=0 if dtype == "int8" else 1e-5,
        note=note,
        rivals=rivals,
        flop=flop,
        bytes=sum(d.nbytes for d in data) + out.numpy().nbytes,
    )


def _roofs(devices):
    for device in devices:
        if device.kind == "hardware":
            flop, stream, size = beside.roof(device.name)
            source = (
                f"The line is what weft's own float32 product of {size} x {size} ({flop / 1e9:.3g} Gop/s) and a sum over 64 MiB "
                f"({stream / 1e9:.3g} GB/s) reach in this run; what fits into the caches may lie above."
            )
        elif device.name == "qpu":
            flop, stream = 28.8e9, 8 * 300e6
            source = "The line: 12 QPUs x 4 lanes x 2 operations and 8 bytes a clock at 300 MHz."
        elif device.name == "vta":
            env = weft.vta.env()
            flop, stream = env.peak_ops, 8 * env.clock_hz
            source = "The line: the matrix unit's products, and a bus of 8 bytes a cycle."
        elif device.name.startswith("wse"):
            flop, stream = 32 * device.clock_hz, 128 * device.clock_hz
            source = (
                "The line: 16 PEs, each with a product and a sum a cycle of two words that it reads from its memory. Times "
                "are those of the launches; the copies between host and wafer are not in them."
            )
        else:
            continue
        yield {"roof": {"device": device.name, "flop": flop, "bytes": stream, "source": source}}


def _texts():
    """The GEMV's default schedule as text of each machine; no machine is needed for it."""
    program, panes = one_program.gemv(SIZE, SIZE), {}
    panes["tensor program"] = program.script()
    for label, target in TEXTS.items():
        try:
            panes[label] = weft.build(program, target=target).source()
        except weft.Error as error:  # what the processor's compiler needs is not installed
            panes[label] = str(error)
    return {"title": f"One GEMV of {SIZE} x {SIZE}, as each machine gets it", "panes": panes}


def _compiled_model():
    """A model of PyTorch through torch.compile, beside PyTorch as it is."""
    name, torch = "a PyTorch model by torch.compile", beside.torch_or_none()
    if torch is None or not hasattr(torch, "compile"):
        found = "PyTorch is not installed" if torch is None else f"torch is {torch.__version__}"
        return dict(
            program=name, device="cpu", seconds=0, rate=0, unit="",
            absent=f"{found}; this needs torch 2.4 or newer",
        )  # fmt: skip
    import weft.torch  # noqa: F401  (registers the back end)

    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 64), torch.nn.Softmax(-1)
    ).eval()
    x = torch.randn(64, 128)
    with torch.no_grad():
        compiled = torch.compile(model, backend="weft")
        got, wanted = compiled(x).numpy(), model(x).numpy()
        taken = beside.in_turns({"weft": lambda: compiled(x), "PyTorch": lambda: model(x)})
    return dict(
        program=name,
        device="cpu",
        seconds=taken.pop("weft"),
        rate=0,
        unit="",
        got=got,
        wanted=wanted,
        limit=1e-5,
        rivals=taken,
        note=f"torch {torch.__version__}, weft as its back end",
    )


def _tuned(quick):
    """A product whose schedule is searched for; the default schedule is the first candidate."""
    n, trials = 192, 4 if quick else 12
    program = one_program.product(n)
    with tempfile.TemporaryDirectory() as folder:
        best = weft.tune(
            program,
            target="cpu",
            trials=trials,
            seconds=10 if quick else 25,
            database=str(pathlib.Path(folder) / "tune.db"),
        )
    rng = np.random.default_rng(8)
    a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    x, y, c = weft.asarray(a), weft.asarray(b), weft.zeros((n, n), dtype="float32")
    tuned, plain = weft.build(best, target="cpu"), weft.build(program, target="cpu", tuned=False)
    taken = beside.in_turns(
        {
            "weft": lambda: tuned["main"](x, y, c),
            "weft's default schedule": lambda: plain["main"](x, y, c),
            "NumPy": lambda: a @ b,
        }
    )
    tuned["main"](x, y, c)
    seconds = taken.pop("weft")
    return dict(
        program=f"GEMM {n}, tuned",
        device="cpu",
        seconds=seconds,
        rate=2 * n**3 / seconds / 1e9,
        unit="Gop/s",
        got=c.numpy(),
        wanted=a.astype("float64") @ b,
        limit=1e-5,
        rivals=taken,
        note=f"at most {trials} candidates",
    )


def demo(quick=False, progress=lambda text: None, output="out"):
    devices = [d for d in weft.devices() if d.available and d.name != "null"]
    for work in _works():
        for device in devices:
            progress(f"{work[0]} on {device.name}")
            yield from unless_absent(
                LABELS[work[0]], device.name, lambda d=device, w=work: [_row(d, *w)]
            )
    progress("what the devices can do at most")
    for device in devices:
        yield from unless_absent("roofline", device.name, lambda d=device: _roofs([d]))
    progress("the text of each machine")
    yield _texts()
    progress("a model through torch.compile")
    yield _compiled_model()
    progress("a tuned product")
    yield from unless_absent("GEMM 192, tuned", "cpu", lambda: [_tuned(quick)])
