# SPDX-License-Identifier: Apache-2.0
"""Every public function with wrong types, shapes, devices and counts of arguments: weft's errors come out, or a result."""

import importlib
import inspect
import types

import pytest
import weft

MODULES = [
    "weft",
    "weft.random",
    "weft.linalg",
    "weft.fft",
    "weft.te",
    "weft.init",
    "weft.io",
    "weft.ir",
]
SHAPE = (2, 3)
# Rows of arguments; a string of them is text, a callable is called for a fresh value.
ARGUMENTS = [
    (), (3,), ("a",), (None,), (object(),), ([1, "b"],), (-1,), (1.5,), ({},), (3, 4), ("a", "b"), (None, None),
    (lambda: weft.ones(SHAPE), "x"), (lambda: weft.ones(SHAPE), None), (lambda: weft.ones(SHAPE), 99),
    (lambda: weft.ones(SHAPE), lambda: weft.ones((4, 5))), (lambda: weft.ones(SHAPE), 7, 8, 9, 10, 11, 12),
    (lambda: weft.ones((0,)),), (lambda: weft.ones(SHAPE), (1, 2, 3)), (1, 2, 3), ("a", "b", "c"), (None,) * 3,
]  # fmt: skip
OPTIONS = [{}, {"axis": "q"}, {"dtype": "nothing"}, {"device": "moon"}, {"unknown": 1}]
# These change the state of the process.
STATEFUL = {"use", "use_deterministic", "set_threads", "seed"}


def functions(module):
    for name in sorted(vars(module)):
        f = getattr(module, name)
        if name.startswith("_") or name in STATEFUL or not isinstance(f, types.FunctionType):
            continue
        if hasattr(f, "__wrapped__") and f.__module__.startswith("weft"):
            yield name, f


def test_public_functions_of_python_are_guarded():
    for name in ("concat", "arange", "sum", "where", "einsum", "full", "astype"):
        assert inspect.unwrap(getattr(weft, name)) is not getattr(weft, name), name
        assert str(inspect.signature(getattr(weft, name)))


@pytest.mark.parametrize("name", MODULES)
def test_only_errors_of_weft_come_out(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # functions that write files
    raw, calls = [], 0
    for function_name, f in functions(importlib.import_module(name)):
        for arguments in ARGUMENTS:
            for options in OPTIONS:
                calls += 1
                given = [a() if isinstance(a, types.FunctionType) else a for a in arguments]
                try:
                    f(*given, **options)
                except weft.Error as error:
                    assert error.code and str(error).startswith("error["), function_name
                except Exception as error:
                    raw.append(
                        f"{function_name}{tuple(given)} {options}: {type(error).__name__}: {error}"
                    )
    assert not raw, f"{len(raw)} of {calls} calls:\n" + "\n".join(raw[:400])
    assert calls > 200


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: weft.random.seed("a"), weft.DTypeError, ["seed()", "str 'a'", "accepted: seed(value"]),
        (lambda: weft.concat(3), weft.DTypeError, ["concat()", "int 3", "accepted: concat(arrays"]),
        (lambda: weft.arange("a"), weft.DTypeError, ["arange()", "str 'a'", "accepted: arange(start"]),
        (lambda: weft.te.compute(3, 4), weft.DTypeError, ["compute()", "int 3, int 4"]),
        (lambda: weft.sum(), weft.DTypeError, ["sum()", "a call without arguments"]),
        (lambda: weft.tile(weft.ones(SHAPE), 3), weft.DTypeError, ["tile()", "array of float32 (2, 3), int 3"]),
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


def test_operations_with_other_counts_of_arguments():
    with pytest.raises(weft.DTypeError) as caught:
        weft.abs(1, 2)
    assert caught.value.code == "python.arguments"
    assert "abs() takes 1 positional argument, not 2" in str(caught.value)
    with pytest.raises(weft.DTypeError) as caught:
        weft.ones(3).sum(nothing=1)
    assert caught.value.code == "python.arguments" and "keepdims" in str(caught.value)
