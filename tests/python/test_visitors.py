# SPDX-License-Identifier: Apache-2.0
"""What visitors tried after reading the front door only, and what they must find."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import weft
from weft import script as T
from weft import te


def has_remotes():
    try:
        from weft import _rpc  # noqa: F401
    except ImportError:
        return False
    return True


def refused(kind, code, f, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        f(*arguments, **keywords)
    assert caught.value.code == code, caught.value
    return caught.value


def add(n=64):
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])


# ---- copies and pickles


@pytest.mark.targets("qpu")
def test_devices_and_programs_are_copied_and_pickled():
    device = weft.device("cpu")
    assert pickle.loads(pickle.dumps(device)) == device == copy.deepcopy(device)
    absent = weft.device("qpu:hw")
    assert pickle.loads(pickle.dumps(absent)).available == absent.available
    f = add()
    again = pickle.loads(pickle.dumps(f))
    assert isinstance(again, weft.PrimFunc) and weft.ir.structural_equal(again, f)
    assert again.name == f.name and copy.deepcopy(f) == f
    both = weft.IRModule({"f": add(), "g": add(32)})
    assert weft.ir.structural_equal(pickle.loads(pickle.dumps(both)), both)


def test_a_schedule_is_pickled_with_its_steps():
    sch = weft.Schedule(add())
    (i,) = sch.get_loops("C")
    outer, inner = sch.split(i, [None, 8])
    sch.vectorize(inner)
    for other in (pickle.loads(pickle.dumps(sch)), copy.deepcopy(sch), copy.copy(sch)):
        assert weft.ir.structural_equal(other.mod, sch.mod)
        assert other.trace.as_json() == sch.trace.as_json()
    other.parallel(other.get_loops("C")[0])  # a copy goes its own way
    assert not weft.ir.structural_equal(other.mod, sch.mod)
    assert repr(outer) == "weft.LoopRef(i_0)" and repr(sch.get_block("C")).startswith(
        "weft.BlockRef("
    )


def test_a_module_is_pickled_and_called():
    module = weft.build(add(), target=weft.device("cpu"))
    a = weft.asarray(np.arange(64, dtype="float32"))
    for m in (module, pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        out = weft.zeros(64, dtype="float32")
        m(a, a, out)
        np.testing.assert_array_equal(out.numpy(), 2 * a.numpy())


def test_tensors_and_layers_are_copied_and_pickled():
    x = weft.Tensor([1.0, 2.0, 3.0])
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y.grad.tolist() == [2.0, 4.0, 6.0] and y is not x
    y.data = y.data * 5.0
    assert x.tolist() == [1.0, 2.0, 3.0]
    z = pickle.loads(pickle.dumps(weft.Tensor([1, 2], dtype="float64", requires_grad=False)))
    assert z.dtype == weft.float64 and not z.requires_grad and z.tolist() == [1.0, 2.0]
    model = weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.ReLU(), weft.nn.Linear(4, 1))
    twin = copy.deepcopy(model)
    other = pickle.loads(pickle.dumps(model))
    data = weft.Tensor(np.random.RandomState(0).rand(5, 3).astype("float32"))
    for m in (twin, other):
        np.testing.assert_array_equal(m(data).numpy(), model(data).numpy())
        assert all(type(p) is weft.nn.Parameter for p in m.parameters())
    optimizer = weft.optim.SGD(twin.parameters(), lr=0.5)
    twin(data).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(other(data).numpy(), model(data).numpy())
    assert not np.array_equal(twin(data).numpy(), model(data).numpy())


# ---- building and calling


def test_build_says_what_it_was_given():
    assert refused(weft.Error, "python.program", weft.build, None).help
    assert (
        "list"
        in refused(weft.DTypeError, "build.target", weft.build, add(), target=["cpu"]).message
    )
    seen = []
    weft.build(add(), after=lambda name, function, seconds: seen.append(function))
    assert seen and all(isinstance(f, weft.PrimFunc) for f in seen)
    error = refused(
        weft.ArgumentError,
        "target.option.range",
        weft.build,
        add(),
        target="cuda:max_threads_per_block=-1",
    )
    assert "-1" in error.message and "legal: 1" in error.notes[0]


@pytest.mark.targets("wse")
def test_an_option_that_no_target_knows_is_refused():
    for target, slug, legal in [
        ("cpu:mcp=host", "cpu.option.unknown", "mcpu"),
        ("cpu:1", "cpu.option.unknown", "mcpu"),
        ("wse:2x2,foo=1", "wse.option.unknown", "WxH, arch"),
        ("c:foo=1", "c.option.unknown", "flags"),
    ]:
        error = refused(weft.ArgumentError, slug, weft.build, add(), target=target)
        assert legal in error.notes[0], error
    assert (
        "mcpu" in refused(weft.ArgumentError, "cpu.option.unknown", weft.device, "cpu:mcp=x").help
    )
    assert weft.device("cpu:0") == weft.device("cpu")


@pytest.mark.targets("qpu")
def test_host_memory_serves_every_target_that_computes_there():
    a = weft.asarray(np.arange(64, dtype="float32"))
    for target in ("c", "ref", "cpu"):
        out = weft.zeros(64, dtype="float32")
        weft.build(add(), target=target)["main"](a, a, out)
        np.testing.assert_array_equal(out.numpy(), 2 * a.numpy())
    f = weft.build(add(), target="qpu")["main"]
    error = refused(weft.DeviceError, "call.device", f, a, a, a)
    assert "lies on cpu" in error.message and "runs on qpu" in error.message


def test_a_wrong_argument_is_named_by_its_type():
    f = weft.build(add())["main"]
    a = weft.zeros(64, dtype="float32")
    error = refused(weft.ArgumentError, "call.kind", f, a, np.zeros(64, "float32"), a)
    assert error.message == "argument 2 is a numpy.ndarray, which no kernel takes"
    assert "\n" not in error.message and "asarray" in error.help


def test_empty_arrays_are_compact_arguments():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "float32", name="A")
    f = te.create_prim_func([a, te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")])
    for target in ("cpu", "c"):
        module = weft.build(f, target=target)
        for shape in ((5, 0), (0, 5), (0, 0)):
            module["main"](weft.zeros(shape, dtype="float32"), weft.ones(shape, dtype="float32"))


@pytest.mark.targets("qpu")
def test_the_default_device_belongs_to_the_thread():
    seen = {}

    def other():
        seen["before"] = weft.zeros(1).device.name
        with weft.use("ref"):
            seen["inside"] = weft.zeros(1).device.name
        seen["after"] = weft.zeros(1).device.name

    with weft.use("null"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert weft.zeros(1).device.name == "null"
        with weft.use("ref"):
            assert weft.zeros(1).device.name == "ref"
        assert weft.zeros(1).device.name == "null"
    assert seen == {"before": "cpu", "inside": "ref", "after": "cpu"}
    with pytest.raises(weft.DeviceError):
        with weft.use("qpu:hw"):
            pass
    assert weft.zeros(1).device.name == "cpu"


@pytest.mark.targets("qpu")
def test_an_absent_default_device_is_no_import_error(tmp_path):
    text = (
        "import weft\n"
        "print(weft.zeros(2, device='cpu').device)\n"
        "for _ in range(2):\n"
        "    try: weft.zeros(2)\n"
        "    except weft.Error as e: print(e.code)\n"
    )
    for name, code in [("qpu:hw", "qpu.absent"), ("nope", "target.unknown")]:
        done = subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "WEFT_DEVICE": name,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        assert done.stdout.split() == ["cpu", code, code], done.stdout + done.stderr


def test_everything_that_is_loaded_later_is_listed():
    for name in (
        "nn",
        "optim",
        "init",
        "data",
        "te",
        "script",
        "rpc",
        "vta",
        "wse",
        "qpu",
        "torch",
    ):
        assert name in dir(weft), name
    assert weft.qpu.__name__ == "weft.qpu"


# ---- script and te


def test_older_script_is_read():
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                x = T.float32()
                with T.let(x, A[v] * A[v]):
                    B[v] = T.if_then_else(v >= 1 and v < 15, x + x, T.float32(0), dtype="float32")

    assert weft.ir.structural_equal(T.from_source(f.script()), f)
    a, b = np.arange(16, dtype="float32"), weft.zeros(16, dtype="float32")
    weft.build(f)["main" if f.name == "main" else "f"](weft.asarray(a), b)
    expected = 2 * a * a
    expected[0] = expected[15] = 0
    np.testing.assert_array_equal(b.numpy(), expected)


def test_script_errors_say_what_is_wrong():
    head = '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n'
    step = head + "    for i in range(0, 8, 2):\n        A[i] = 0.0\n"
    error = refused(weft.ParseError, "parse.loop", T.from_source, step)
    assert "no step" in error.message and "multiply" in error.help
    other = head + '    A[0] = T.if_then_else(A[1] > 0.0, A[1], A[2], dtype="int32")\n'
    assert (
        "float32, not int32"
        in refused(weft.ParseError, "parse.types", T.from_source, other).message
    )


def test_te_joins_conditions():
    n = 9
    a = te.placeholder((n,), "float32", name="A")

    def padded(i):
        return te.if_then_else(te.all(i >= 2, i < n + 2, te.any(i != 5, i < 0)), a[i - 2], 0.0)

    f = te.create_prim_func([a, te.compute((n + 4,), padded, name="P")])
    x, out = np.arange(1, n + 1, dtype="float32"), weft.zeros(n + 4, dtype="float32")
    weft.build(f)["main"](weft.asarray(x), out)
    expected = np.pad(x, 2)
    expected[5] = 0
    np.testing.assert_array_equal(out.numpy(), expected)


# ---- arrays


def test_numpy_functions_take_arrays():
    x = np.arange(6.0).reshape(2, 3) + 1
    a = weft.asarray(x)
    for f in (
        np.sum,
        np.prod,
        np.max,
        np.min,
        np.mean,
        np.std,
        np.var,
        np.argmax,
        np.cumsum,
        np.ravel,
        np.squeeze,
    ):
        np.testing.assert_allclose(np.asarray(f(a)), f(x))
    assert np.all(a) and np.any(a)
    np.testing.assert_allclose(np.mean(a, axis=1), x.mean(1))
    np.testing.assert_allclose(np.std(a, axis=0, ddof=1), x.std(0, ddof=1))


def test_arrays_have_the_methods_of_numpy():
    x = np.random.RandomState(3).rand(3, 4, 2)
    a = weft.asarray(x)
    i = np.array([2, 0])
    for name, args in {
        "std": (1,),
        "var": (),
        "cumsum": (),
        "cumprod": (1,),
        "ravel": (),
        "flatten": (),
        "clip": (0.2, 0.7),
        "round": (1,),
        "transpose": (2, 0, 1),
        "swapaxes": (0, 2),
        "argsort": (1,),
        "take": (i, 1),
        "repeat": (2, 1),
        "conj": (),
    }.items():
        extra = {"axis": args[0]} if name == "argsort" else {"axis": 1} if name == "repeat" else {}
        given = () if name == "argsort" else args[:1] if name == "repeat" else args
        np.testing.assert_allclose(
            np.asarray(getattr(a, name)(*given, **extra)), getattr(x, name)(*args), err_msg=name
        )
    np.testing.assert_allclose(a[0].dot(a[1].T).numpy(), x[0] @ x[1].T)
    np.testing.assert_allclose(a.permute(2, 0, 1).numpy(), a.permute((2, 0, 1)).numpy())
    z = weft.asarray(x + 1j * x[::-1])
    np.testing.assert_array_equal(z.real.numpy(), x)
    np.testing.assert_array_equal(z.imag.numpy(), x[::-1])
    np.testing.assert_array_equal(a.imag.numpy(), 0 * x)
    assert [list(p) for p in weft.asarray([0, 3, 0, 1]).nonzero()] == [[1, 3]]
    assert f"{weft.asarray(2.5):.3f} {weft.asarray(7):03d}" == "2.500 007"
    assert round(weft.asarray(2.6)) == 3 and divmod(weft.asarray(7), 2)[0].item() == 3
    refused(weft.ArgumentError, "array.method.out", a.mean, out=a)
    with pytest.raises(ValueError):
        f"{a:.3f}"


def test_arrays_of_strings_and_dates_are_refused():
    for x in (np.array(["a"]), np.array(["2020-01-01"], dtype="datetime64[D]")):
        error = refused(weft.DTypeError, "array.asarray.type", weft.asarray, x)
        assert str(x.dtype) in error.message


# ---- tensors


def test_the_truth_of_a_tensor_is_its_value():
    assert bool(weft.Tensor(2.0) > 1.0) is True and not weft.Tensor(0.0)
    with pytest.raises(TypeError):
        bool(weft.Tensor([1.0, 2.0]) > 0.0)
    with pytest.raises(TypeError):
        len(weft.Tensor(1.0))
    assert int(weft.Tensor(3.0)) == 3 and f"{weft.Tensor(2.5):.2f}" == "2.50"


def test_tensors_compare_element_by_element():
    x = weft.Tensor([1.0, 2.0, 3.0])
    assert (x == 2.0).tolist() == [False, True, False]
    assert (x != weft.Tensor([1.0, 2.0, 4.0])).tolist() == [False, False, True]
    assert (x >= 2.0).tolist() == [False, True, True] and (x <= 2.0).tolist() == [True, True, False]
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    assert 3.0 in x and 4.0 not in x
    matrix = weft.Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert 3.0 in matrix and 3.0 in matrix.data and 5.0 not in matrix.data
    assert len({x, weft.Tensor([1.0])}) == 2  # still hashed by identity
    with pytest.raises(TypeError):
        x < "a"
    assert x[x > 1.5].tolist() == [2.0, 3.0]


def test_a_tensor_without_gradients_is_exported():
    x = weft.Tensor([1.0, 2.0])
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(x)
    assert np.shares_memory(np.from_dlpack(x.detach()), np.from_dlpack(x.data))


def test_remainders_have_gradients():
    x = weft.Tensor([1.25, -2.5])
    (x % 1.0 + (x // 1.0) + (+x)).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def numeric(f, x, h=1e-6):
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        g[i] = (f(up) - f(down)) / (2 * h)
    return g


def test_functions_of_the_namespace_keep_the_graph():
    rng = np.random.RandomState(5)
    x = rng.rand(3, 3) + 0.5 * np.eye(3)
    b, w = weft.asarray(rng.rand(3, 2)), weft.asarray(rng.rand(3, 3))
    array = weft.asarray(rng.rand(3, 3))
    for name, f in {
        "concat": lambda t: (weft.concat([array, t], axis=0)[3:] * w).sum(),
        "stack": lambda t: (weft.stack([array, t])[1] * w).sum(),
        "roll": lambda t: (weft.roll(t, 1, axis=1) * w).sum(),
        "meshgrid": lambda t: (weft.meshgrid(t[0], t[1])[0] * w).sum(),
        "cumulative_prod": lambda t: (weft.cumulative_prod(t, axis=1) * w).sum(),
        "cumulative_sum": lambda t: (
            weft.cumulative_sum(t, axis=0, include_initial=True)[1:] * w
        ).sum(),
        "inv": lambda t: (weft.linalg.inv(t) * w).sum(),
        "det": lambda t: weft.linalg.det(t) * 2.0,
        "solve": lambda t: (weft.linalg.solve(t, t[:, :2] + b) * b).sum(),
        "solve vector": lambda t: (weft.linalg.solve(t, t[:, 0]) * b[:, 0]).sum(),
        "matrix_power": lambda t: (weft.linalg.matrix_power(t, 3) * w).sum(),
    }.items():
        t = weft.Tensor(x)
        f(t).backward()
        value = lambda v, f=f: f(weft.Tensor(v, requires_grad=False)).item()  # noqa: E731
        np.testing.assert_allclose(
            t.grad.numpy(), numeric(value, x), rtol=1e-5, atol=1e-6, err_msg=name
        )
    t = weft.Tensor(np.array([[1.0, 0.0, 2.0]]))
    weft.cumulative_prod(t, axis=1).sum().backward()
    assert t.grad.tolist() == [[1.0, 3.0, 0.0]]
    error = refused(weft.DTypeError, "array.qr.gradient", weft.linalg.qr, weft.Tensor(x))
    assert "detach" in error.help
    assert (
        "detach"
        in refused(weft.DTypeError, "array.fft.gradient", weft.fft.fft, weft.Tensor(x)).help
    )
    np.testing.assert_allclose(weft.fft.fft(weft.Tensor(x).detach()).numpy(), np.fft.fft(x))
    assert weft.count_nonzero(weft.Tensor(x) > 0.0).item() == 9


def test_no_graph_is_made_inside_no_grad():
    x = weft.Tensor([1.0, 2.0])
    with weft.no_grad():
        y = x * 3.0
        seen = []
        thread = threading.Thread(target=lambda: seen.append((x * 3.0).requires_grad))
        thread.start()
        thread.join()
    assert not y.requires_grad and y.is_leaf and seen == [True]
    assert (x * 3.0).requires_grad

    @weft.no_grad()
    def evaluate(t):
        return t * 2.0

    assert not evaluate(x).requires_grad and (x * 1.0).requires_grad
    with pytest.raises(ZeroDivisionError), weft.no_grad():
        1 / 0
    assert (x * 1.0).requires_grad


def test_an_operation_of_ones_own():
    class Cube(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * x * scale

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3.0 * ctx.scale * x * x, None

    x = weft.Tensor([1.0, 2.0])
    y = Cube.apply(x, 2.0)
    assert y.tolist() == [2.0, 16.0] and y.op == "Cube"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0] and not x.grad.requires_grad
    second = weft.grad(lambda v: weft.grad(lambda u: Cube.apply(u, 1.0).sum())(v).sum())
    assert second(weft.Tensor([1.0, 2.0])).tolist() == [6.0, 12.0]

    class Few(Cube):
        @staticmethod
        def backward(ctx, g):
            return g

    error = refused(
        weft.ArgumentError, "array.function.gradients", Few.apply(x, 2.0).sum().backward
    )
    assert "2 gradients" in error.message

    class Narrow(Cube):
        @staticmethod
        def backward(ctx, g):
            return g[:1], None

    refused(weft.ShapeError, "array.function.shape", Narrow.apply(x, 2.0).sum().backward)

    class Text(Cube):
        @staticmethod
        def forward(ctx, x, scale):
            return "text"

    refused(weft.ArgumentError, "array.function.result", Text.apply, x, 1.0)


def test_tensors_move_between_devices_with_their_gradients():
    x = weft.Tensor([1.0, 2.0])
    y = x.to("ref")
    assert y.device.name == "ref" and x.to("cpu") is x
    (y * y).sum().backward()
    assert x.grad.device.name == "cpu" and x.grad.tolist() == [2.0, 4.0]


# ---- scheduling


def test_scheduling_opens_no_driver():
    text = (
        "import weft\n"
        "from weft import te\n"
        "a = te.placeholder((8,), name='A')\n"
        "f = te.create_prim_func([a, te.compute((8,), lambda i: a[i] + 1.0, name='B')])\n"
        "sch = weft.Schedule(f)\n"
        "sch.bind(sch.get_loops('B')[0], 'threadIdx.x')\n"
        "maps = open('/proc/self/maps').read()\n"
        "print([n for n in ('libOpenCL', 'libcuda', 'libLLVM', 'libpocl') if n in maps])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


# ---- lowering


def test_a_reduction_across_threads_feeds_the_same_block():
    """Softmax's shape: a sum over threads into shared memory, used by all threads of the block."""
    n, m = 5, 70
    a = te.placeholder((n, m), "float32", name="A")
    k = te.reduce_axis((0, m), name="k")
    s = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="s")
    f = te.create_prim_func([a, te.compute((n, m), lambda i, j: a[i, j] / s[i], name="o")])
    sch = weft.Schedule(f)
    i, _ = sch.get_loops("o")
    sch.set_scope("s", 0, "shared")
    sch.compute_at("s", i)
    sch.bind(i, "blockIdx.x")
    for block in ("s", "o"):
        _, inner = sch.split(sch.get_loops(block)[-1], [None, 32])
        sch.bind(inner, "threadIdx.x")
    for target in ("cuda", "metal"):
        assert "s_tree" in weft.build(sch, target=target).source()
    x = np.random.RandomState(1).rand(n, m).astype("float32")
    device = weft.device("opencl")
    if not device.available:
        device = weft.device("ref")
    out = weft.zeros((n, m), dtype="float32", device=device)
    weft.build(sch, target=device)["main"](weft.asarray(x, device=device), out)
    np.testing.assert_allclose(out.numpy(), x / x.sum(1, keepdims=True), rtol=1e-5)


# ---- remote devices


@pytest.mark.skipif(not has_remotes(), reason="built without remote devices")
def test_a_connection_is_closed(tmp_path):
    with weft.rpc.local("cpu") as remote:
        assert remote.device("cpu").available
        error = refused(weft.IOError, "rpc.file.read", remote.upload, tmp_path / "none")
        assert "No such file" in error.message
        refused(weft.IOError, "rpc.file.read", remote.reconfigure, "none.json")
        refused(weft.IOError, "rpc.file.read", remote.program, tmp_path / "none.bit")
    error = refused(weft.DeviceError, "rpc.closed", remote.device)
    assert "connect again" in error.help
    remote.close()


@pytest.mark.skipif(not has_remotes(), reason="built without remote devices")
def test_arrays_on_a_remote_device_have_no_operators():
    remote = weft.rpc.local("cpu")
    x = weft.ones(4, dtype="float32").to(remote.device())
    error = refused(weft.DeviceError, "array.device.remote", lambda: x + x)
    assert "add" in error.message and "upload" in error.help
    refused(weft.DeviceError, "array.device.remote", weft.sum, x)


# ---- layers and optimizers


def test_the_gradient_of_a_compiled_function():
    f = weft.compile(lambda v: (weft.exp(v) * 2.0).sum())
    g = weft.grad(f)(weft.Tensor([0.0, 1.0]))
    np.testing.assert_allclose(g.numpy(), 2 * np.exp([0.0, 1.0]), rtol=1e-6)
    refused(
        weft.Error,
        "compile.gradient.second",
        weft.grad(lambda v: weft.grad(f)(v).sum()),
        weft.Tensor([0.0, 1.0]),
    )


def test_modules_are_walked():
    nn = weft.nn
    model = nn.Sequential(
        nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.5), nn.ReLU()), nn.Linear(3, 1)
    )
    assert len(model) == 3 and type(model[-1]) is nn.Linear and len(model[:2]) == 2
    assert [type(m).__name__ for m in model] == ["Linear", "Sequential", "Linear"]
    assert list(model.named_children()) == ["0", "1", "2"]
    assert model.children()[1][0] is model.named_modules()["1.0"]
    assert not any(m.training for m in model.train(False).modules())
    assert all(m.training for m in model.train().modules())
    names = []
    assert (
        model.apply(lambda m: names.append(type(m).__name__)) is model and names[-1] == "Sequential"
    )
    model[0].requires_grad_(False)
    model(weft.ones((4, 2))).sum().backward()
    assert model[0].weight.grad is None and model[2].weight.grad is not None
    several = nn.ModuleList([nn.Linear(2, 2)]).append(nn.Linear(2, 1))
    assert len(several) == 2 and len(several.parameters()) == 4 and len(several[1:]) == 1
    assert "legal" in str(refused(weft.ArgumentError, "nn.dropout.p", nn.Dropout, 1.5))


def test_optimizers_say_what_they_take_and_go_on_from_a_state():
    optim = weft.optim
    p = weft.nn.Parameter([1.0, -2.0])
    error = refused(weft.DTypeError, "optim.params.type", optim.SGD, [p, {"params": [p]}])
    assert "dict" in error.message
    refused(weft.ArgumentError, "optim.lr", optim.SGD, [p], lr=-1.0)

    def run(make, steps, state=None, start=(1.0, -2.0)):
        q = weft.nn.Parameter(list(start), dtype="float64")
        o = make([q])
        if state is not None:
            o.load_state_dict(state)
        for _ in range(steps):
            o.zero_grad()
            (q * q * q * q).sum().backward()
            o.step()
        return q.tolist(), o.state_dict()

    import torch

    for make, twin in [
        (lambda ps: optim.SGD(ps, lr=0.01, momentum=0.9, nesterov=True), lambda ps: torch.optim.SGD(ps, lr=0.01, momentum=0.9, nesterov=True)),
        (lambda ps: optim.Adam(ps, lr=0.1, betas=(0.8, 0.9)), lambda ps: torch.optim.Adam(ps, lr=0.1, betas=(0.8, 0.9))),
        (lambda ps: optim.AdamW(ps, lr=0.1, weight_decay=0.1), lambda ps: torch.optim.AdamW(ps, lr=0.1, weight_decay=0.1)),
    ]:  # fmt: skip
        t = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
        o = twin([t])
        for _ in range(6):
            o.zero_grad()
            (t * t * t * t).sum().backward()
            o.step()
        whole, _ = run(make, 6)
        np.testing.assert_allclose(whole, t.detach().numpy(), rtol=1e-6)
        half, state = run(make, 3)
        state = pickle.loads(pickle.dumps(state))
        np.testing.assert_allclose(run(make, 3, state, half)[0], whole, rtol=1e-12)
    refused(weft.ArgumentError, "optim.state.names", optim.SGD([p]).load_state_dict, {})


# ---- command line


def test_files_that_are_no_programs(tmp_path, capsys):
    from weft import cli

    assert cli.main(["compile", str(tmp_path / "none.weft"), "--target", "cpu"]) == 1
    error = capsys.readouterr().err
    assert (
        error.startswith("error[cli.file]: ") and "none.weft" in error and "No such file" in error
    )
    binary = tmp_path / "binary.weft"
    binary.write_bytes(b"\x7fELF\xff\xfe")
    assert cli.main(["compile", str(binary), "--target", "cpu"]) == 1
    assert capsys.readouterr().err.startswith("error[cli.text]: byte 4 ")


@pytest.mark.targets("wse")
def test_a_target_without_passes_says_so(tmp_path, capsys):
    from weft import cli

    program = tmp_path / "add.weft"
    program.write_text(add(8).script())
    arguments = ["compile", str(program), "--emit", "source", "--print-after", "all", "--target"]
    assert cli.main([*arguments, "wse:2x2"]) == 0
    assert "without passes" in capsys.readouterr().err
    assert cli.main([*arguments, "cpu"]) == 0
    assert "# after simplify" in capsys.readouterr().err


def test_a_word_of_the_script_is_no_program():
    from weft import script as T

    with pytest.raises(weft.Error):
        weft.build(T.no_such_function("text"), target="c")


def test_one_loop_over_results_and_terms_is_not_reduced_across_threads():
    """fuse(i, k) counts results and terms: threads would add into each other's results."""
    from weft import script as T

    @T.prim_func
    def rows(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    sch = weft.Schedule(rows)
    both = sch.fuse(*sch.get_loops(sch.get_block("B")))
    with pytest.raises(weft.ScheduleError, match="reduction iterator") as caught:
        sch.bind(both, "threadIdx.x")
    assert caught.value.code == "schedule.bind.iterator"
    sch = weft.Schedule(rows)
    sch.bind(sch.get_loops(sch.get_block("B"))[1], "threadIdx.x")  # terms alone: a cross-thread sum
