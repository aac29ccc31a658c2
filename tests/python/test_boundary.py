# SPDX-License-Identifier: Apache-2.0
"""What stands between public functions and their callers (weft._boundary), and programs as Python objects (weft.ir), piece by piece."""

import copy
import enum
import importlib
import inspect
import pickle
import sys
import types
import weakref

import pytest
import weft
from weft import _boundary, _core, _manners, _torch_names, ir
from weft import script as T
from weft._errors import NotExchanged


def refused(f, *args, **kwargs):
    with pytest.raises(weft.Error) as caught:
        f(*args, **kwargs)
    return caught.value


def inside(name, code):
    """Functions compiled as a file of this package, as guards look at files."""
    space = types.SimpleNamespace()
    exec(compile(code, _boundary._PACKAGE + "/" + name + ".py", "exec"), vars(space))
    return space


RAISES = inside(
    "planted",
    """
def raising(reason, *rest, option=None):
    raise reason
def calls(f):
    return f()
class Box:
    def __init__(self, value):
        self.value = value + 1
    def __call__(self, value):
        return value + 1
    def method(self, value, *, option=None):
        return value + 1
    @classmethod
    def made(cls, value):
        return value + 1
    @staticmethod
    def alone(value):
        return value + 1
    def _hidden(self, value):
        return value + 1
""",
)


@pytest.mark.parametrize(
    "raised, kind, cls",
    [
        (TypeError("t"), "dtype", weft.DTypeError),
        (AttributeError("a"), "dtype", weft.DTypeError),
        (ValueError("v"), "value", weft.ArgumentError),
        (KeyError("k"), "value", weft.ArgumentError),
        (OverflowError("o"), "value", weft.ArgumentError),
        (ZeroDivisionError("z"), "value", weft.ArgumentError),
        (IndexError("i"), "index", weft.IndexError),
    ],
)
def test_each_exception_of_python_has_its_kind(raised, kind, cls):
    error = refused(_boundary.public(RAISES.raising), raised, 3, "text", option=b"b")
    assert type(error) is cls and (error.kind, error.code) == (kind, "python.arguments")
    assert error.message == (
        f"raising() does not take these arguments: {type(raised).__name__}, int 3, str 'text', option=bytes b'b'"
    )
    assert error.notes == [f"{type(raised).__name__}: {raised}"]
    assert error.help == "accepted: raising(reason, *rest, option=None)"
    assert error.__cause__ is None and error.__suppress_context__ is False
    assert error._reason is raised


def test_a_refused_exchange_is_a_buffer_error():
    error = refused(_boundary.public(RAISES.raising), BufferError("b"))
    assert type(error) is NotExchanged and isinstance(error, BufferError) and error.kind == "value"


def test_memory_and_files_have_texts_of_their_own():
    error = refused(_boundary.public(RAISES.raising), MemoryError())
    assert (error.kind, error.code) == ("memory", "host.memory")
    assert error.notes == ["it was raising()"] and "ulimit -v" in error.help
    error = refused(_boundary.public(RAISES.raising), FileNotFoundError(2, "No such file", "x"))
    assert (error.kind, error.code) == ("io", "python.file")
    assert error.message == "raising(): No such file: 'x'"
    assert refused(_boundary.public(RAISES.raising), OSError("text")).message == "raising(): text"
    assert refused(_boundary.public(RAISES.raising), OSError()).message == "raising(): OSError"
    assert refused(_boundary.public(RAISES.raising), OSError(5, "")).message.startswith(
        "raising():"
    )


def test_what_is_no_error_of_arguments_passes():
    for raised in (RuntimeError("r"), AssertionError("a"), KeyboardInterrupt(), StopIteration()):
        with pytest.raises(type(raised)) as caught:
            _boundary.public(RAISES.raising)(raised)
        assert caught.value is raised


def test_errors_of_the_callers_functions_stay_his():
    def theirs():
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        _boundary.public(RAISES.calls)(theirs)
    # A library between is not the caller's.
    error = refused(_boundary.public(RAISES.calls), lambda_of_a_library())
    assert error.code == "python.arguments"


def test_only_functions_of_weft_are_called_again_in_numpys_manner(monkeypatch):
    asked = []
    monkeypatch.setattr(_manners, "retried", lambda function, *rest: asked.append(function))
    refused(_boundary.public(RAISES.raising), TypeError("t"))
    assert asked == [RAISES.raising]
    refused(_boundary.public(RAISES.Box.method, "Box", "method"), 1, "a")  # a method
    refused(_boundary.public(RAISES.Box, name="Box"), "a")  # no function of Python
    with pytest.raises(KeyError):
        _boundary.public(RAISES.calls)(lambda: {}["theirs"])  # what the caller's function raised
    assert asked == [RAISES.raising]


def lambda_of_a_library():
    """A function of the standard library that raises."""
    import functools
    import textwrap

    return functools.partial(textwrap.dedent, 3)


def test_an_inner_refusal_names_the_outer_function():
    inner = _boundary.public(RAISES.raising, name="inner")
    outer = _boundary.public(RAISES.calls, name="outer")

    def call():
        return inner(TypeError("why"))

    code = compile("def call():\n    return inner(TypeError('why'))", _boundary._PACKAGE + "/x.py", "exec")  # fmt: skip
    space = {"inner": inner}
    exec(code, space)
    error = refused(outer, space["call"])
    assert error.message.startswith("outer() does not take these arguments: function")
    assert error.notes == ["TypeError: why"]
    # Between them a function of the caller's: the inner refusal is what he sees.
    error = refused(outer, call)
    assert error.message.startswith("inner() does not take")
    # Weft's own errors without such a reason pass as they are.
    made = weft.Error("made")
    with pytest.raises(weft.Error) as caught:
        outer(lambda: (_ for _ in ()).throw(made))
    assert caught.value is made


def test_values_are_described_shortly():
    described = _boundary._described
    assert described(weft.ones((2, 3), dtype="int8")) == "array of int8 (2, 3)"
    assert described(True) == "bool True" and described(1.5) == "float 1.5"
    assert described(None) == "NoneType" and described([1]) == "list" and described("") == "str ''"
    assert described("x" * 90) == "str '" + "x" * 39


def test_methods_are_named_with_their_class():
    box = type("Box", (), dict(vars(RAISES.Box)))
    hidden = vars(box)["_hidden"]
    _boundary.publish_class(box)
    made = box(1)
    assert made.value == 2 and made(1) == 2 and made.method(1) == 2
    assert box.made(1) == box.alone(1) == 2
    for f, said, accepted in (
        (lambda: box("a"), "Box() does not take these arguments: str 'a'", "Box(value)"),
        (lambda: made("a"), "Box() does not take these arguments: str 'a'", "Box(value)"),
        (lambda: made.method("a"), "Box.method() does not", "Box.method(value, *, option=None)"),
        (lambda: box.made("a"), "Box.made() does not take these arguments: str 'a'", "Box.made(value)"),
        (lambda: box.alone("a"), "alone() does not take these arguments: str 'a'", "alone(value)"),
    ):  # fmt: skip
        error = refused(RAISES.calls, f) if False else refused(f)
        assert error.message.startswith(said) and error.help == f"accepted: {accepted}"
    assert vars(box)["_hidden"] is hidden
    before = dict(vars(box))
    _boundary.publish_class(box)  # what is guarded is left
    assert vars(box)["method"] is before["method"] and vars(box)["__init__"] is before["__init__"]
    error = refused(_boundary.public(inside("none", "def none(): raise TypeError('x')").none))
    assert error.message == "none() does not take a call without arguments"


def test_modules_are_published():
    name = "weft._planted_module"
    module = sys.modules[name] = types.ModuleType(name)
    try:
        code = "def own(x): return x + 1\ndef skipped(x): return x + 1\ndef _private(x): return x + 1\nvalue = 3\n"
        exec(compile(code, _boundary._PACKAGE + "/planted.py", "exec"), vars(module))
        for f in (module.own, module.skipped, module._private):
            f.__module__ = name
        module.other = inside("other", "def other(x): return x + 1").other
        module.other.__module__ = "weft.elsewhere"
        module.foreign = lambda x: x
        before = dict(vars(module))
        _boundary.publish(name, skip=("skipped",))
        changed = {k for k, v in before.items() if vars(module)[k] is not v}
        assert changed == {"own"} and module.own(1) == 2
        _boundary.publish(name, skip=("skipped",), gathered=True)
        changed = {k for k, v in before.items() if vars(module)[k] is not v}
        assert changed == {"own", "other"}
        guarded = module.own
        _boundary.publish(name, gathered=True)
        assert module.own is guarded and module.skipped is not before["skipped"]

        class Public:
            def f(self, x):
                return x + 1

        class Kind(enum.Enum):
            A = 1

            def f(self):
                return 1

        class Wrong(Exception):
            def f(self):
                return 1

        for cls in (Public, Kind, Wrong):
            cls.__module__ = name
            setattr(module, cls.__name__, cls)
        module._Hidden = type("_Hidden", (), {"f": lambda self: 1, "__module__": name})
        module.Foreign = type("Foreign", (), {"f": lambda self: 1, "__module__": "elsewhere"})
        _boundary.publish_classes(name)
        guards = {k: hasattr(vars(v)["f"], "__weft_guarded__") for k, v in vars(module).items() if isinstance(v, type)}  # fmt: skip
        assert guards == {"Public": True, "Kind": False, "Wrong": False, "_Hidden": False, "Foreign": False}  # fmt: skip
    finally:
        del sys.modules[name]


def test_imports_on_first_use(monkeypatch):
    assert _boundary.import_later("weft.random") is weft.random

    def denied(name):
        raise OSError(24, "Too many open files", "x.py")

    monkeypatch.setattr(importlib, "import_module", denied)
    error = refused(_boundary.import_later, "weft.planted")
    assert error.code == "python.file" and error.kind == "io"
    assert error.message == "import weft.planted: Too many open files: 'x.py'"
    own = weft.IOError("own")

    def refuses(name):
        raise own

    monkeypatch.setattr(importlib, "import_module", refuses)
    with pytest.raises(weft.IOError) as caught:
        _boundary.import_later("weft.planted")
    assert caught.value is own


@T.prim_func
def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "twice"})
    for i in range(4):
        B[i] = A[i] * T.float32(2)


def test_programs_are_values(capsys):
    again = weft.script.from_source(twice.script())
    other = again.with_attr("mark", 7)
    assert again == twice and hash(again) == hash(twice) and other != twice
    assert twice != twice.script() and (twice == 3) is False
    assert repr(twice) == str(twice) == twice.script() and "def " in twice.script()
    assert twice.show(1, black_format=True) is None
    assert capsys.readouterr().out == twice.script() + "\n"
    assert copy.copy(twice) is twice and copy.deepcopy([twice])[0] is twice
    assert "mark" not in twice.attrs and other.attrs["mark"] == 7
    assert twice.params == ["A", "B"] and isinstance(twice.name, str)
    back = pickle.loads(pickle.dumps(twice))
    assert type(back) is weft.PrimFunc and back == twice


def test_modules_of_programs_are_values():
    module = weft.IRModule({"main": twice, "other": twice.with_attr("mark", 7)})
    assert set(module.functions) == {"main", "other"} and module() is module
    assert all(type(f) is weft.PrimFunc for f in module.functions.values())
    assert module["main"] == twice or module["main"].params == twice.params
    assert type(module["other"]) is weft.PrimFunc and module["other"].attrs["mark"] == 7
    back = pickle.loads(pickle.dumps(module))
    assert type(back) is weft.IRModule and back == module and hash(back) == hash(module)
    assert module != twice and twice != module
    assert type(ir._adopt(twice._core)) is weft.PrimFunc
    assert type(ir._adopt(module._core)) is weft.IRModule
    assert weft.IRModule(module._core) == module


def test_what_is_no_program_is_refused():
    for f, said in (
        (lambda: weft.PrimFunc(3), "PrimFunc cannot be made of int"),
        (lambda: weft.IRModule("x"), "IRModule cannot be made of str"),
        (lambda: weft.IRModule({3: twice}), "IRModule maps names to PrimFuncs, not 3 to PrimFunc"),
        (lambda: weft.IRModule({"f": 3}), "IRModule maps names to PrimFuncs, not 'f' to int"),
    ):
        error = refused(f)
        assert (error.kind, error.code, error.message) == ("dtype", "python.program", said)
        assert error.help


def test_equality_and_verification_of_programs():
    renamed = weft.script.from_source(twice.script().replace("A", "X"))
    assert weft.ir.structural_equal(renamed._core, twice._core) is True
    assert weft.ir.structural_hash(renamed._core) == weft.ir.structural_hash(twice._core)
    changed = weft.script.from_source(twice.script().replace("(2", "(3").replace("2.0", "3.0"))
    assert weft.ir.structural_equal(changed._core, twice._core) is False
    assert weft.ir.verify(twice._core) is None
    assert isinstance(_core.PrimFunc, type)


def test_public_functions_are_functions_to_their_users():
    f = weft.concat
    assert pickle.loads(pickle.dumps(f)) is f and copy.deepcopy(f) is f
    assert f.__name__ == "concat" and f.__module__.startswith("weft") and "joined" in f.__doc__
    assert repr(f) == "<function concat>" and callable(f)
    assert str(inspect.signature(f)) == "(arrays, /, *, axis=0)"
    assert weakref.ref(f)() is f
    f.mark = 1
    assert vars(f).pop("mark") == 1 and not hasattr(f, "mark")


def test_public_functions_are_methods_of_classes():
    class Box:
        value = 3

        def add(self, a, *, b=0):
            return self.value + a + b

        made = classmethod(_boundary.public(lambda cls, a: (cls, a), name="made"))
        alone = staticmethod(_boundary.public(lambda a: a, name="alone"))

    Box.add = _boundary.public(Box.add, "Box", "add")
    box = Box()
    assert box.add(1) == 4 and box.add(1, b=2) == 6 and Box.add(box, 1) == 4
    kept = box.add
    assert kept.__self__ is box and kept(5) == 8
    assert Box.made(2) == (Box, 2) and Box.alone(4) == 4


def test_names_of_arguments():
    def f(x, y=0, /, *, axis=None, keepdims=False, correction=0.0):
        return x, y, axis, keepdims, correction

    g = _boundary.public(_torch_names.understanding(f))
    assert type(g) is _core.PublicFunction and g.__wrapped__ is f
    assert g(1) == (1, 0, None, False, 0.0)
    assert g(1, 2, 3) == (1, 2, 3, False, 0.0)
    assert g(1, 2, 3, keepdim=True) == (1, 2, 3, True, 0.0)
    assert g(1, dim=4, keepdims=True) == (1, 0, 4, True, 0.0)
    assert g(1, dim=4, unbiased=True) == (1, 0, 4, False, 1.0)
    assert g(1, 2, 3, unbiased=False) == (1, 2, 3, False, 0.0)
    assert g(*(1, 2), **{"dim": 5}) == (1, 2, 5, False, 0.0)
    for wrong in ({"dim": 1, "axis": 2}, {"keepdim": 1, "keepdims": 1}):
        error = refused(g, 1, **wrong)
        assert error.code == "array.axis.twice"
    for args, kwargs in (((1, 2, 3), {"axis": 1}), ((1, 2, 3, 4), {}), ((), {}), ((1,), {"z": 1})):
        error = refused(g, *args, **kwargs)
        assert error.code == "python.arguments" and "f() does not take" in str(error)


def test_other_exceptions_pass():
    class Own(Exception):
        pass

    def f(reason):
        raise reason

    for reason in (Own("x"), KeyboardInterrupt(), StopIteration(3), RuntimeError("y")):
        with pytest.raises(type(reason)) as caught:
            _boundary.public(f)(reason)
        assert caught.value is reason
    with pytest.raises(RecursionError):
        loop = _boundary.public(lambda: loop(), name="loop")
        loop()
