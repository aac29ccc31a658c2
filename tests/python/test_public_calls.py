# SPDX-License-Identifier: Apache-2.0
"""Every public function with wrong types, shapes, devices and counts of arguments: weft's errors come out, or a result."""

import enum
import importlib
import inspect
import sys
import types

import pytest
import weft
from weft import _boundary

MODULES = [
    "weft",
    "weft.random",
    "weft.linalg",
    "weft.fft",
    "weft.te",
    "weft.torch",
    "weft.init",
    "weft.io",
    "weft.ir",
    "weft.build",
    "weft.data",
    "weft.distributed",
    "weft.gguf",
    "weft.profiler",
    "weft.qpu",
    "weft.rpc",
    "weft.script",
    "weft.transforms",
    "weft.tuning",
    "weft.vta",
    "weft.wse",
    "weft.amp",
    "weft.autograd",
    "weft.cuda",
    "weft.distributions",
    "weft.nn.utils",
    "weft.nn.utils.parametrizations",
    "weft.nn.utils.parametrize",
    "weft.nn.utils.rnn",
    "weft.onnx",
    "weft.polynomial",
    "weft.special",
]
SHAPE = (2, 3)
# Rows of arguments; a string of them is text, a callable is called for a fresh value.
ARGUMENTS = [
    (), (3,), ("a",), (None,), (object(),), ([1, "b"],), (-1,), (1.5,), ({},), (3, 4), ("a", "b"), (None, None),
    (lambda: weft.ones(SHAPE), "x"), (lambda: weft.ones(SHAPE), None), (lambda: weft.ones(SHAPE), 99),
    (lambda: weft.ones(SHAPE), lambda: weft.ones((4, 5))), (lambda: weft.ones(SHAPE), 7, 8, 9, 10, 11, 12),
    (lambda: weft.ones((0,)),), (lambda: weft.ones(SHAPE), (1, 2, 3)), (1, 2, 3), ("a", "b", "c"), (None,) * 3,
    (lambda: parameter(),), (lambda: parameter(), lambda: weft.ones(SHAPE)), (lambda: weft.ones(SHAPE), lambda: parameter()),
    (lambda: weft.ones(SHAPE), lambda: weft.ones(SHAPE), lambda: parameter()), (lambda: parameter(), lambda: weft.ones(3), lambda: weft.ones(3)),
    (lambda: parameter(), 0), (lambda: weft.ones(SHAPE, dtype="int8"), lambda: parameter()), (lambda: weft.ones(SHAPE, dtype="complex64"),),
]  # fmt: skip

OPTIONS = [{}, {"axis": "q"}, {"dtype": "nothing"}, {"device": "moon"}, {"unknown": 1}]
# These change the state of the process.
STATEFUL = {
    "use", "use_deterministic", "set_threads", "seed", "shutdown", "set_grad_enabled", "set_num_threads", "set_rng_state", "set_state",
    "use_deterministic_algorithms", "set_printoptions", "seterr", "set_default_device",
}  # fmt: skip
# These start servers and processes; a group of no job is the job.
STARTING = {"init", "local"}


def functions(module):
    """Public functions and constructors. Exceptions, enumerations and named tuples are made as Python makes them, and classes of the
    core without a constructor refuse by themselves."""
    for name in sorted(getattr(module, "__all__", None) or vars(module)):
        f = getattr(module, name)
        if name.startswith("_") or name in STATEFUL | STARTING or not callable(f):
            continue
        if isinstance(f, type):
            if issubclass(f, (BaseException, enum.Enum, tuple)) or f.__module__ == "weft._core":
                continue
        if (getattr(f, "__module__", "") or "").startswith("weft"):
            yield name, f


def test_public_functions_of_python_are_guarded():
    for name in ("concat", "arange", "sum", "where", "einsum", "full", "astype"):
        assert inspect.unwrap(getattr(weft, name)) is not getattr(weft, name), name
        assert str(inspect.signature(getattr(weft, name)))


_WATCHED = set()  # files are opened by their names while something is in it


def _open_by_name(event, given):
    """open() of a number among the arguments reads a descriptor of this process, and may wait for ever."""
    if _WATCHED and event == "open" and isinstance(given[0], int):
        assert given[0] > 3, f"open({given[0]!r})"  # larger ones were opened by the function itself


sys.addaudithook(_open_by_name)


@pytest.mark.parametrize("name", MODULES)
def test_only_errors_of_weft_come_out(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # functions that write files
    monkeypatch.setitem(globals(), "_WATCHED", {name})
    raw, names = [], 0
    for function_name, f in functions(importlib.import_module(name)):
        names += 1
        raw += raw_errors(function_name, lambda: f)  # noqa: B023
    assert not raw, f"{len(raw)} calls:\n" + "\n".join(raw[:20])
    assert names > 1


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: weft.random.seed("a"), weft.DTypeError, ["seed()", "str 'a'", "accepted: seed(value"]),
        (lambda: weft.concat(3), weft.DTypeError, ["concat()", "int 3", "accepted: concat(arrays"]),
        (lambda: weft.arange("a"), weft.DTypeError, ["arange()", "str 'a'", "accepted: arange(start"]),
        (lambda: weft.te.compute(3, 4), weft.DTypeError, ["compute()", "int 3, int 4"]),
        (lambda: weft.sum(), weft.DTypeError, ["sum()", "a call without arguments"]),
        (lambda: weft.tile(weft.ones(SHAPE), 2.5), weft.DTypeError, ["tile()", "array of float32 (2, 3), float 2.5"]),
    ],
)  # fmt: skip
def test_texts(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == "python.arguments"
    assert all(w in str(caught.value) for w in words), str(caught.value)


@pytest.mark.parametrize(
    "made", [lambda: weft.IRModule(5), lambda: weft.PrimFunc("x"), lambda: weft.IRModule({"a": 3})]
)
def test_programs_of_something_else(made):
    with pytest.raises(weft.DTypeError) as caught:
        made()
    assert caught.value.code == "python.program" and "help" in str(caught.value)


def test_a_refused_call_leaves_the_generator_as_it_was():
    weft.random.seed(5)
    wanted = weft.random.uniform((4,)).numpy()
    weft.random.seed(5)
    for shape in (weft.ones(SHAPE), "a", None, (1.5,), (2, "b")):
        with pytest.raises(weft.Error):
            weft.random.uniform(shape)
        with pytest.raises(weft.Error):
            weft.random.normal(shape)
    assert (weft.random.uniform((4,)).numpy() == wanted).all()


def test_errors_of_the_callers_own_functions_stay():
    def wrong(i):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        weft.te.compute((3,), wrong)
    assert not isinstance(caught.value, weft.Error)


def test_a_file_that_is_absent(tmp_path):
    with pytest.raises(weft.IOError) as caught:
        weft.load_arrays(tmp_path / "absent.npz")
    assert caught.value.code == "python.file"
    assert "No such file" in str(caught.value) and "absent.npz" in str(caught.value)


def test_operators_of_torch_take_tensors_that_fit():
    torch = pytest.importorskip("torch")
    from weft import torch as ours

    raw, given = [], [torch.ones(2, 3), torch.ones(4, 5), torch.ones(3), torch.ones(2, 3).to_sparse(), torch.ones(2, 3).half()]  # fmt: skip
    given += [torch.empty(0, 3), torch.tensor(1.0), torch.ones(2, 3, dtype=torch.int8), weft.ones(SHAPE), 3, None]  # fmt: skip
    for name in ("add", "mul", "mv", "matmul"):
        for a in given:
            for b in given:
                for device in (None, "moon", 7):
                    try:
                        getattr(ours, name)(a, b, device)
                    except weft.Error as error:
                        assert error.code, name
                    except Exception as error:
                        raw.append(f"{name} {a} {b} {device}: {type(error).__name__} {error}")
    assert not raw, f"{len(raw)} calls:\n" + "\n".join(raw[:20])
    with pytest.raises(weft.DTypeError) as caught:
        ours.add(weft.ones(SHAPE), torch.ones(2, 3))
    assert caught.value.code == "torch.tensor"
    for words in ("add of a torch tensor was asked, this is NDArray", "legal: a torch.Tensor", "help: weft.torch.to_torch"):  # fmt: skip
        assert words in str(caught.value)
    for call in (lambda t: ours.mul(given[0], t), ours.from_torch):
        with pytest.raises(weft.DTypeError, match=r"of a tensor of layout torch.sparse_coo was asked\n.*torch.strided\n.*to_dense") as caught:  # fmt: skip
            call(given[3])
        assert caught.value.code == "torch.layout"


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError("no words of the system"), "read(): no words of the system"),
        (OSError(24, "Too many open files"), "read(): Too many open files"),
        (OSError(2, "No such file", "a.npy"), "read(): No such file: 'a.npy'"),
        (TimeoutError(), "read(): TimeoutError"),
    ],
)
def test_errors_of_the_system_name_what_they_know(raised, said, monkeypatch):
    def read():
        raise raised

    monkeypatch.setattr(_boundary, "_is_ours", lambda traceback: True)
    with pytest.raises(weft.IOError) as caught:
        _boundary.public(read)()
    assert str(caught.value).splitlines()[0] == f"error[python.file]: {said}"


def test_operations_with_other_counts_of_arguments():
    with pytest.raises(weft.DTypeError) as caught:
        weft.abs(1, 2)
    assert caught.value.code == "python.arguments"
    assert "abs() takes 1 positional argument, not 2" in str(caught.value)
    with pytest.raises(weft.DTypeError) as caught:
        weft.ones(3).sum(nothing=1)
    assert caught.value.code == "python.arguments" and "keepdims" in str(caught.value)


# ---- methods, layers, optimizers


def array():
    return weft.ones(SHAPE)


def parameter():
    return weft.Tensor(weft.ones(SHAPE), requires_grad=True)


nn = weft.nn
OBJECTS = {
    "NDArray": array,
    "Tensor": parameter,
    "SGD": lambda: weft.optim.SGD([parameter()], lr=0.1),
    "Adam": lambda: weft.optim.Adam([parameter()]),
    "StepLR": lambda: weft.optim.lr_scheduler.StepLR(weft.optim.SGD([parameter()], lr=0.1), 3),
    "Linear": lambda: nn.Linear(3, 4),
    "Conv2d": lambda: nn.Conv2d(3, 4, 3),
    "LSTM": lambda: nn.LSTM(3, 4),
    "Embedding": lambda: nn.Embedding(4, 3),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3),
    "LayerNorm": lambda: nn.LayerNorm(3),
    "Dropout": nn.Dropout,
    "Sequential": lambda: nn.Sequential(nn.ReLU()),
    "ModuleList": lambda: nn.ModuleList([nn.ReLU()]),
    "CrossEntropyLoss": nn.CrossEntropyLoss,
    "MultiheadAttention": lambda: nn.MultiheadAttention(8, 2),
    "MaxPool2d": lambda: nn.MaxPool2d(2),
}
CLASSES = [weft.nn, weft.optim, weft.optim.lr_scheduler, weft.data]
# Every option with a few rows of arguments, every row without options.
CALLS = [(a, {}) for a in ARGUMENTS] + [((), o) for o in OPTIONS[1:]] + [((array,), o) for o in OPTIONS[1:]]  # fmt: skip


def raw_errors(label, get):
    """What else than weft's errors comes out of calls of what `get` returns."""
    for arguments, options in CALLS:
        given = [a() if isinstance(a, types.FunctionType) else a for a in arguments]
        try:
            get()(*given, **options)
        except weft.Error as error:
            assert error.code and str(error).startswith("error["), label
        except Exception as error:
            yield f"{label} {arguments} {options}: {type(error).__name__}: {error}"


@pytest.mark.parametrize("name", OBJECTS)
def test_methods(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, raw = OBJECTS[name], []
    names = [m for m in dir(make()) if not m.startswith("_") and callable(getattr(type(make()), m, None))]  # fmt: skip
    for method in names:
        raw += raw_errors(f"{name}.{method}", lambda: getattr(make(), method))  # noqa: B023
    if callable(make()):
        raw += raw_errors(name, make)
    assert not raw, "\n".join(raw[:20])
    assert len(names) > 3


@pytest.mark.parametrize("module", CLASSES, ids=lambda m: m.__name__)
def test_constructors(module):
    raw = []
    classes = [c for n, c in sorted(vars(module).items()) if n[0] != "_" and isinstance(c, type)]
    for cls in classes:
        raw += raw_errors(cls.__name__, lambda: cls)  # noqa: B023
    assert not raw, "\n".join(raw[:20])
    assert len(classes) > 3


def test_functions_of_layers():
    raw = []
    for name, f in sorted(vars(weft.nn.functional).items()):
        if name[0] != "_" and _boundary.is_function(f):
            raw += raw_errors(name, lambda: f)  # noqa: B023
    assert not raw, "\n".join(raw[:20])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nn.Linear("a", "b"), "Linear() does not take these arguments: str 'a', str 'b'"),
        (lambda: nn.LSTM(3, 4)("x"), "Module() does not take these arguments: str 'x'"),
        (lambda: nn.Linear(3, 4).to(1, 2, 3, 4), "Module.to() does not take"),
        (lambda: weft.optim.SGD(3, lr=0.1), "SGD() does not take these arguments: int 3, lr=float 0.1"),
        (lambda: parameter().reshape_as(3), "Tensor.reshape_as() does not take these arguments: int 3"),
        (lambda: nn.functional.softmax(b"x", axis=0), "softmax() does not take"),
        (lambda: array().fill("a", "b"), "fill() does not take"),
        (lambda: array().reshape(3, order="C"), "unexpected keyword argument 'order'"),
    ],
)  # fmt: skip
def test_texts_of_methods(call, words):
    with pytest.raises(weft.DTypeError) as caught:
        call()
    assert caught.value.code == "python.arguments"
    assert words in str(caught.value) and "accepted: " in str(caught.value), str(caught.value)
    assert "(self" not in str(caught.value)


def test_what_is_no_integer():
    with pytest.raises(weft.DTypeError) as caught:
        range(weft.ones(SHAPE))
    assert caught.value.code == "array.index.scalar"
    assert "an array of float32[2, 3] is no integer" in str(caught.value)


def test_errors_of_the_callers_own_layers_stay():
    class Mine(nn.Module):
        def forward(self, x):
            return x.no_such_attribute

    with pytest.raises(AttributeError) as caught:
        nn.Sequential(Mine())(parameter())
    assert not isinstance(caught.value, weft.Error)


def test_methods_that_a_class_must_define():
    class Mine(nn.Module):
        pass

    class Samples(weft.data.Dataset):
        pass

    for call, words in (
        (lambda: Mine()(3), "Mine defines no forward()"),
        (lambda: Samples()[0], "Samples defines no __getitem__()"),
        (lambda: len(Samples()), "Samples defines no __len__()"),
    ):
        with pytest.raises(weft.ArgumentError) as caught:
            call()
        assert caught.value.code == "python.abstract" and words in str(caught.value)
        assert isinstance(caught.value, NotImplementedError)


def test_a_schedule_s_check_is_run_or_none():
    f = weft.script.from_source(
        "@T.prim_func\ndef main(A: T.Buffer((2,), 'float32')):\n    A[0] = T.float32(1)\n"
    )
    with pytest.raises(weft.ArgumentError) as caught:
        weft.Schedule(f, check="walk")
    assert caught.value.code == "schedule.check.kind" and "check is 'walk'" in str(caught.value)
    assert 'legal: "run" or None' in str(caught.value)
