#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the type stubs of python/weft from the run-time surface and the tables below. --check: only compares.

Elementwise functions come from the rows of the operation table, everything else from inspect; the tables say what
inspect cannot: the types of parameters by name, results, and the members of the classes of the core.
"""

import importlib
import inspect
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(root / "python"), str(root / "tools")]
from stub_either import ALWAYS_ARRAYS, MAIN, PLAIN, VARIABLE, either, result_classes  # noqa: E402
from stub_manuals import with_manuals  # noqa: E402
from stub_modules import folder_stubs  # noqa: E402
from stub_programs import program_stubs  # noqa: E402
from stub_tables import (  # noqa: E402
    DEVICE,
    SUGGESTIONS,
    ERRORS,
    NDARRAY,
    OPERATORS,
    OWN,
    PARAMETERS,
    RESULTS,
    TENSOR,
    TENSORS,
)

package = root / "python" / "weft"

OF_EITHER = ("linalg", "fft")  # modules whose functions give tensors for tensors
MARK = "# SPDX-License-Identifier: Apache-2.0\n# Written by tools/make_stubs.py.\n"
TYPES = """
_bool = _builtins.bool
_Number = _bool | int | float | complex
_DType = dtype | str | type[Any]
_Device = Device | str
class _Switch(ContextDecorator):
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

class _Mapped(Protocol):
    looped: frozenset[str]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class _Captured(Protocol):
    @property
    def launches(self) -> list[int]: ...
    def __call__(self, *args: Any) -> Any: ...

_ArrayLike = NDArray | _Number | _numpy.ndarray[Any, Any] | Sequence[Any]
"""


def default(value):
    if value is None or isinstance(value, (bool, int, float, str)) and value == value:
        text = repr(value)
        return text if text not in ("inf", "-inf") else "..."
    return "..."


def parameter(function, p, types, owner=""):
    own = OWN.get((owner, function, p.name)) or OWN.get((function, p.name))
    annotation = types.get(p.name) or own or PARAMETERS.get(p.name, "Any")
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    if p.kind is p.VAR_KEYWORD:
        annotation = "Any"
    text = f"{star}{p.name}: {annotation}"
    if p.default is not p.empty:
        value = default(p.default)
        if value == "None" and "None" not in annotation and annotation != "Any":
            text += " | None"
        text += f" = {value}"
    return text


def signature(name, f, result, types=None, bound=False, owner=""):
    """`def name(...) -> result: ...` from the function's own signature."""
    parts, last = ["self"] if bound else [], None
    listed = list(inspect.signature(f).parameters.values())
    if bound:
        listed = [p for p in listed if p.name != "self"]
    for p in listed:
        if last is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
        if p.kind is p.KEYWORD_ONLY and last not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        parts.append(parameter(name, p, types or {}, owner))
        last = p.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


def overloads(name, f, variants):
    return "".join(
        f"@overload\n{signature(name, f, result, types)}\n" for types, result in variants
    )


def operation(name, f, arity):
    if arity == 1:
        return overloads(name, f, [({"x": "Tensor"}, "Tensor"), ({"x": "_ArrayLike"}, "NDArray")])
    return overloads(
        name,
        f,
        [
            ({"x1": "Tensor", "x2": "Tensor | _ArrayLike"}, "Tensor"),
            ({"x1": "_ArrayLike", "x2": "Tensor"}, "Tensor"),
            ({"x1": "_ArrayLike", "x2": "_ArrayLike"}, "NDArray"),
        ],
    )


def named_tuple(t, fields=None):
    body = "".join(f"    {name}: {(fields or {}).get(name, 'NDArray')}\n" for name in t._fields)
    return f"class {t.__name__}(NamedTuple):\n{body}\n"


def shadowed(text):
    """A class with methods called int, float and bool: inside it these names are not the types."""
    return re.sub(r"(?<!def )\b(int|float|bool)\b", r"_builtins.\1", text)


def core_class(name, table, other):
    lines = [f"class {name}:"]
    settable = {"data", "grad", "requires_grad"} if name == "Tensor" else set()
    for attribute, kind in table["attributes"].items():
        if attribute in settable:
            set_kind = "Any" if attribute in ("data", "grad") else kind
            lines += ["    @property", f"    def {attribute}(self) -> {kind}: ..."]
            lines += [
                f"    @{attribute}.setter",
                f"    def {attribute}(self, value: {set_kind}) -> None: ...",
            ]
        else:
            lines += ["    @property", f"    def {attribute}(self) -> {kind}: ..."]
    lines += [f"    {m}" for m in table["methods"]]
    cls = other
    for short in OPERATORS:
        for prefix, result in (("", name), ("r", name), ("i", name)):
            dunder = f"__{prefix}{short}__"
            if dunder in dir(cls):
                operand = "_ArrayLike | Tensor" if name == "Tensor" else "_ArrayLike"
                lines.append(f"    def {dunder}(self, other: {operand}, /) -> {result}: ...")
    operand = "_ArrayLike | Tensor" if name == "Tensor" else "_ArrayLike"
    # The others of a tensor are methods that Python's classes add.
    for short in ("eq", "ne", *(("lt", "le", "gt", "ge") if name == "NDArray" else ())):
        plain = "  # type: ignore[override]" if short in ("eq", "ne") else ""
        lines.append(f"    def __{short}__(self, other: {operand}, /) -> {name}: ...{plain}")
    return "\n".join(lines) + "\n\n"


def python_methods(weft, cls, families, table):
    """The methods that are written in Python: names and defaults from inspect, no types."""
    told = {re.match(r"def (\w+)", line)[1] for line in table["methods"] if line.startswith("def ")}
    told |= set(table["attributes"])
    out = ""
    for name, member in (m for family in families for m in weft._methods.members(family).items()):
        if name in told or name.startswith("_"):
            continue
        if isinstance(member, property):
            out += f"    @property\n    def {name}(self) -> Any: ...\n"
            continue
        parts, keywords = ["self"], False
        for p in list(inspect.signature(getattr(cls, name)).parameters.values())[1:]:
            if p.kind is p.KEYWORD_ONLY and not keywords:
                parts, keywords = [*parts, "*"], True
            star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            keywords = keywords or bool(star)
            value = "" if p.default is p.empty else f" = {default(p.default)}"
            parts.append(f"{star}{p.name}: Any{value}")
        out += f"    def {name}({', '.join(parts)}) -> Any: ...\n"
    return "\n" + out + "\n"


def main_stub(weft):
    from weft._namespace import indexing, types

    out = MARK + (
        "import builtins as _builtins\nimport os\nfrom collections.abc import Callable, Iterator, Mapping, Sequence\n"
        "from contextlib import ContextDecorator\nfrom typing import Any, Generic, NamedTuple, Protocol, overload\n\nimport numpy as _numpy\n"
        "from typing_extensions import TypeVar\n\n"
    )
    for module in sorted({"fft", "linalg", "random", *weft._LATER}):
        out += f"from . import {module} as {module}\n"
    for module, names in SUGGESTIONS.items():
        out += f"from .{module} import " + ", ".join(f"{n} as {n}" for n in names) + "\n"
    out += TYPES + "_dtype = dtype\n\n__version__: str\n__array_api_version__: str\n\n"
    out += "e: float\npi: float\ninf: float\nnan: float\nnewaxis: None\n\n"
    out += shadowed(
        core_class("NDArray", NDARRAY, weft.NDArray).rstrip()
        + python_methods(weft, weft.NDArray, weft._methods.OF_ARRAYS, NDARRAY)
        + core_class("Tensor", TENSOR, weft.Tensor).rstrip()
        + python_methods(weft, weft.Tensor, weft._methods.OF_TENSORS, TENSOR)
    )
    out += (
        DEVICE
        + "\nclass Error(Exception):\n    code: str\n    message: str\n    kind: str\n    help: str\n"
    )
    out += "    notes: list[str]\n    places: list[Any]\n\n"
    out += "".join(f"class {a}(Error, {b}): ...\n" for a, b in ERRORS) + "\n"
    out += "".join(f"{name}: dtype\n" for name in weft._dtypes) + "\n"
    out += named_tuple(
        types.finfo_object,
        dict.fromkeys(("eps", "max", "min", "smallest_normal"), "float")
        | {"bits": "int", "dtype": "_dtype"},
    )
    out += named_tuple(
        types.iinfo_object, dict.fromkeys(("bits", "max", "min"), "int") | {"dtype": "_dtype"}
    )
    results = [name for name in ALWAYS_ARRAYS if name.endswith("_result")]
    out += VARIABLE + result_classes({name: getattr(indexing, name)._fields for name in results})
    rows = {r["name"]: r["arity"] for r in weft._core.elementwise_rows}
    skip = {
        "e",
        "pi",
        "inf",
        "nan",
        "newaxis",
        *weft._dtypes,
        "NDArray",
        "Tensor",
        "Device",
        "dtype",
        "Error",
    }
    skip |= {n for n, _ in ERRORS} | {n for names in SUGGESTIONS.values() for n in names}
    for name in weft.__all__:
        f = getattr(weft, name)
        if name in skip or inspect.ismodule(f):
            continue
        foreign = not (getattr(f, "__module__", None) or "").startswith("weft")
        if name in weft._functions.later.names("weft") and (foreign or not callable(f)):
            out += f"{name}: Any\n"
        elif inspect.isclass(f) and name[0] != "_":
            out += f"from .{f.__module__.removeprefix('weft.')} import {name} as {name}\n"
        elif name in rows:
            out += operation(name, f, rows[name])
        elif name in ("concat", "stack"):
            out += overloads(
                name,
                f,
                [
                    ({"arrays": "Sequence[Tensor]"}, "Tensor"),
                    ({"arrays": "Sequence[_ArrayLike]"}, "NDArray"),
                ],
            )
        elif name in MAIN:
            out += either(name, f, overloads)
        elif name == "where":
            out += overloads(
                name,
                f,
                [
                    ({"x1": "Tensor", "x2": "Tensor | _ArrayLike"}, "Tensor"),
                    ({"x1": "_ArrayLike", "x2": "Tensor"}, "Tensor"),
                    ({}, "NDArray"),
                ],
            )
        elif name in TENSORS:
            out += overloads(
                name, f, [({"x": "Tensor"}, "Tensor"), ({"x": "_ArrayLike"}, "NDArray")]
            )
        elif name in ("set_threads", "get_threads"):
            out += f"def {name}({'n: int, /' if name == 'set_threads' else ''}) -> {RESULTS[name]}: ...\n"
        elif name == "scatter":
            out += overloads(
                name,
                f,
                [
                    ({"x": "Tensor", "values": "Tensor | _ArrayLike"}, "Tensor"),
                    ({"x": "_ArrayLike", "values": "Tensor"}, "Tensor"),
                    ({}, "NDArray"),
                ],
            )
        elif name in weft._torch_all:  # of a tensor a tensor, of an array an array
            types = {"input": "Tensor | _ArrayLike"}
            for p in list(inspect.signature(f).parameters)[1:]:
                types[p] = "Any"
            out += signature(name, f, "Any", types) + "\n"
        elif name in weft._functions.functions or name in weft._functions.later.names(
            "weft"
        ):  # composed ones take what those take that they are made of
            out += (
                signature(name, f, "Any", dict.fromkeys(inspect.signature(f).parameters, "Any"))
                + "\n"
            )
        else:
            out += signature(name, f, RESULTS.get(name, "NDArray")) + "\n"
    return out + "\n__all__: list[str]\n"


def imports(*names, more=""):
    return (
        "import builtins as _builtins\nimport os\nfrom collections.abc import Callable, Iterable, Iterator, Mapping, "
        "Sequence\nfrom typing import Any, NamedTuple\n\n"
        f"from weft import {', '.join(names)}, _ArrayLike, _bool, _Device, _DType, _Number\n{more}\n"
    )


def function_stub(module, result, names, more=""):
    out = MARK + imports("NDArray", "Tensor", "random", more=more)
    short = module.__name__.rpartition(".")[2]
    if short in OF_EITHER:
        out = out.replace("Any, NamedTuple\n", "Any, Generic, NamedTuple, overload\n\nfrom typing_extensions import TypeVar\n")  # fmt: skip
    if short == "linalg":
        from weft._functions import factors

        # The fields of one that is made where it is returned follow those of the other.
        hidden = {"_LUFactorsEx": (*factors.LUFactors._fields, "info")}
        for n in (n for n in ALWAYS_ARRAYS if n[0] == "_" and n not in hidden):
            hidden[n] = getattr(factors, n[1:])._fields
        public = {
            n: getattr(module, n)._fields
            for n in ALWAYS_ARRAYS
            if n in module.__dict__ and n[0] != "_"
        }
        out += VARIABLE + result_classes(public | hidden)
    for name in names:
        f = getattr(module, name)
        if inspect.isclass(f) or not callable(f):
            out += f"{name}: Any\n"
            continue
        result_of = RESULTS.get(name, result) if module.__name__ != "weft.init" else result
        if name == "relu":
            continue
        if short in OF_EITHER and name not in PLAIN:
            out += either(name, f, overloads)
            continue
        if name == "use":
            result_of = "Any"
        out += signature(name, f, result_of, owner=short) + "\n"
    return out


_CALLED = "__len__ __iter__ __next__ __getitem__ __call__ __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __neg__ __pow__ __floordiv__ __mod__ __enter__ __exit__".split()  # fmt: skip


def own_members(cls, results):
    """The public methods and properties that a class defines itself, with results by name and Any for others."""
    out = []
    for name, value in vars(cls).items():
        if name.startswith("_") and name not in _CALLED:
            continue
        result = results.get(name, {"__len__": "int", "__iter__": "Iterator[Any]"}.get(name, "Any"))
        if isinstance(value, property):
            out += ["@property", f"def {name}(self) -> {result}: ..."]
        elif isinstance(value, classmethod):
            text = signature(name, value.__func__, result, owner=cls.__name__)
            out += ["@classmethod", text]
        elif callable(value) and not inspect.isclass(value):
            out.append(signature(name, value, result, bound=True, owner=cls.__name__))
    return out


def class_stub(module, names, methods):
    """Classes by their constructors; `methods`: what they have beside it, by class or for all of them."""
    out = ""
    for name in names:
        cls = getattr(module, name)
        base = next((b.__name__ for b in cls.__mro__[1:] if b.__name__ in names), "")
        out += f"class {name}{f'({base})' if base else ''}:\n"
        lines = []
        parent = getattr(module, base, object)
        if not base or cls.__init__ is not parent.__init__:
            if cls.__init__ is not object.__init__:
                lines.append(signature("__init__", cls.__init__, "None", bound=True, owner=name))
        lines += methods.get(name, [])
        forward = getattr(cls, "forward", None)
        if (
            name != "Module"
            and forward is not None
            and forward is not getattr(parent, "forward", None)
        ):
            pairs = ("RNN", "LSTM", "LSTMCell", "MultiheadAttention")
            many = "tuple[Tensor, Any]" if name in pairs else "Tensor"
            kinds = {"x": "Tensor", "y": "Tensor", "h": "Tensor | None", "memory": "Tensor | None"}
            if name.startswith("Embedding"):
                kinds = {}
            if name == "MultiheadAttention" or name.startswith("Transformer"):
                kinds = {p: "Tensor" for p in ("query", "key", "value", "src", "tgt", "memory")}
                kinds["x"] = "Tensor"
            text = signature("forward", cls.forward, many, kinds, bound=True, owner=name)
            if base != "Module" and list(inspect.signature(forward).parameters) != list(
                inspect.signature(getattr(module, base).forward).parameters
            ):
                text += "  # type: ignore[override]"
            # A call takes arrays for tensors without gradient.
            call = re.sub(r": Tensor\b(?=[,) |])", ": Tensor | NDArray", text)
            lines += [text, call.replace("def forward", "def __call__")]
        out += "".join(f"    {line}\n" for line in lines) or "    ...\n"
        out += "\n"
    return out


def stubs():
    import weft

    load = lambda name: importlib.import_module(f"weft.{name}")
    files = {
        "py.typed": "",
        **program_stubs(load, MARK, signature, default),
        "__init__.pyi": main_stub(weft),
    }
    linalg, fft, random = load("linalg"), load("fft"), load("random")
    later = weft._functions.later.starred
    files["linalg.pyi"] = function_stub(linalg, "NDArray", [*linalg.__all__, *later("weft.linalg")])
    files["fft.pyi"] = function_stub(fft, "NDArray", [*fft.__all__, *later("weft.fft"), "use"])
    special = load("special")
    files["special/__init__.pyi"] = function_stub(special, "Any", special.__all__)
    names = [
        "key",
        "split",
        "seed",
        "uniform",
        "normal",
        "integers",
        "bernoulli",
        "permutation",
        "choice",
        *weft._functions.distributions.__all__,
        *later("weft.random"),
    ]
    key = (
        "\nclass Key:\n    seed: int\n    offset: int\n    def __init__(self, seed: int, offset: int = 0) -> None: ...\n"
        "    def split(self, n: int = 2) -> list[Key]: ...\n"
        "    def take(self, count: int) -> tuple[int, int]: ...\n"
        "\nclass Stream(Key): ...\n"
    )
    files["random.pyi"] = (
        function_stub(random, "NDArray", names, key)
        .replace(", random,", ",")
        .replace("random.Key", "Key")
    )
    init = load("init")
    names = [
        n
        for n, f in vars(init).items()
        if load("_boundary").is_function(f) and f.__module__ == "weft.init" and n[0] != "_"
    ]
    files["init.pyi"] = function_stub(init, "Tensor", names)
    functional, nn = load("nn.functional"), load("nn")
    several = re.compile(r"\b(x|y|q|k|v|weight|logits|anchor|positive|negative|log_probs): Any")
    files["nn/functional.pyi"] = (
        several.sub(r"\1: Tensor", function_stub(functional, "Tensor", functional.__all__))
        .replace("x: _ArrayLike", "x: Tensor")
        .replace("q: Any, k: int, v: Any", "q: Tensor, k: Tensor, v: Tensor")
        .replace("weight: Tensor, bias: _bool | None", "weight: Tensor, bias: Tensor | None")
        + "def relu(x: Tensor, /) -> Tensor: ...\n"
    )
    module = [
        "training: _bool",
        "def __call__(self, *args: Any, **kwargs: Any) -> Any: ...",
        "def forward(self, *args: Any, **kwargs: Any) -> Any: ...",
        "def parameters(self) -> list[Parameter]: ...",
        "def named_parameters(self) -> dict[str, Parameter]: ...",
        "def zero_grad(self) -> None: ...",
        "def named_buffers(self) -> dict[str, NDArray]: ...",
        "def buffers(self) -> list[NDArray]: ...",
        "def get_submodule(self, target: str) -> Module: ...",
        "def get_parameter(self, target: str) -> Parameter: ...",
        "def get_buffer(self, target: str) -> NDArray: ...",
        "def add_module(self, name: str, module: Module) -> None: ...",
        "def register_module(self, name: str, module: Module) -> None: ...",
        "def register_parameter(self, name: str, parameter: Any) -> None: ...",
        "def register_buffer(self, name: str, array: Any) -> None: ...",
        "def register_forward_hook(self, hook: Callable[..., Any]) -> Any: ...",
        "def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Any: ...",
        "def register_full_backward_hook(self, hook: Callable[..., Any]) -> Any: ...",
        "def modules(self) -> list[Module]: ...",
        "def children(self) -> list[Module]: ...",
        "def named_modules(self, prefix: str = '') -> dict[str, Module]: ...",
        "def named_children(self) -> dict[str, Module]: ...",
        "def apply(self: _M, f: Callable[[Module], Any]) -> _M: ...",
        "def requires_grad_(self: _M, requires_grad: _bool = True) -> _M: ...",
        "def extra_repr(self) -> str: ...",
        "def cpu(self: _M) -> _M: ...",
        "def cuda(self: _M) -> _M: ...",
        "def to(self: _M, device: _Device | _DType | None = None, dtype: _DType | None = None) -> _M: ...",
        "def float(self: _M) -> _M: ...",
        "def double(self: _M) -> _M: ...",
        "def half(self: _M) -> _M: ...",
        "def bfloat16(self: _M) -> _M: ...",
        "def train(self: _M, mode: _bool = True) -> _M: ...",
        "def eval(self: _M) -> _M: ...",
        "def state_dict(self) -> dict[str, NDArray]: ...",
        "def load_state_dict(self, state: Mapping[str, Any], strict: _bool = True) "
        "-> tuple[list[str], list[str]]: ...",
    ]
    linear = ["weight: Parameter", "bias: Parameter | None"]
    norm = ["weight: Parameter", "bias: Parameter", "running_mean: NDArray", "running_var: NDArray"]
    cell = [
        "weight_ih: Parameter",
        "weight_hh: Parameter",
        "bias_ih: Parameter | None",
        "bias_hh: Parameter | None",
    ]
    extra = {
        "Module": module,
        "BatchNorm1d": norm,
    }
    # What a container of modules gives is Any: net[0].weight is an attribute that only the layer's own class has.
    one = "def __getitem__(self, index: int) -> {0}: ..."
    row = ["def __len__(self) -> int: ...", "def __iter__(self) -> Iterator[{0}]: ..."]
    row += ["@overload", one, "@overload", "def __getitem__(self, index: slice) -> {1}: ..."]
    row += ["def append(self: _M, {2}) -> _M: ...", "def extend(self: _M, {3}) -> _M: ..."]
    named = [
        "def __len__(self) -> int: ...",
        "def __iter__(self) -> Iterator[str]: ...",
        one.replace("index: int", "name: str"),
    ]
    named += [
        "def __setitem__(self, name: str, value: Any) -> None: ...",
        "def __delitem__(self, name: str) -> None: ...",
    ]
    named += [
        "def __contains__(self, name: str) -> _bool: ...",
        "def update(self, items: Any) -> None: ...",
    ]
    named += [
        "def keys(self) -> Iterable[str]: ...",
        "def values(self) -> Iterable[{0}]: ...",
        "def items(self) -> Iterable[tuple[str, {0}]]: ...",
    ]
    change = ["def __setitem__(self, index: int, module: Module) -> None: ..."]
    for name, members, words in (
        (
            "Sequential",
            row + change,
            ("Any", "Sequential", "module: Module", "modules: Iterable[Module]"),
        ),
        (
            "ModuleList",
            row + change,
            ("Any", "ModuleList", "module: Module", "modules: Iterable[Module]"),
        ),
        (
            "ParameterList",
            row,
            ("Parameter", "ParameterList", "value: Any", "values: Iterable[Any]"),
        ),
        ("ModuleDict", named, ("Any",)),
        ("ParameterDict", named, ("Parameter",)),
    ):
        extra[name] = [m.format(*words) for m in members]
    extra["ModuleList"] += [
        "def insert(self, index: int, module: Module) -> None: ...",
        "def __iadd__(self: _M, modules: Iterable[Module]) -> _M: ...",
    ]
    extra["BatchNorm2d"] = extra["BatchNorm1d"]
    extra["RNNCell"] = cell
    extra["RNN"] = ["cells: list[RNNCell]"]
    extra["LayerNorm"] = ["weight: Parameter", "bias: Parameter"]
    extra["RMSNorm"] = ["weight: Parameter"]
    extra["Embedding"] = ["weight: Parameter"]
    extra["BatchNorm3d"] = extra["BatchNorm1d"]
    convolutions = [f"Conv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3)]
    for name in ("Linear", *convolutions):
        extra[name] = linear
    classes = [
        "Module",
        *(n for n in nn.__all__ if n not in ("functional", "init", "utils", "Module", "Parameter")),
    ]
    files["nn/__init__.pyi"] = (
        MARK
        + imports(
            "NDArray",
            "Tensor",
            more="from typing import TypeVar, overload\n\nfrom .. import init as init\n"
            "from . import functional as functional, utils as utils\n",
        )
        + '_M = TypeVar("_M", bound="Module")\n\nclass Parameter(Tensor): ...\n\n'
        + class_stub(nn, classes, extra).replace("logits: Any", "logits: Tensor")
        + "\n__all__: list[str]\n"
    )
    optim, data = load("optim"), load("data")
    step = [
        "param_groups: list[dict[str, Any]]",
        "@property",
        "def params(self) -> list[Tensor]: ...",
        "def zero_grad(self, set_to_none: _bool = True) -> None: ...",
        "def reset_grad(self) -> None: ...",
        "def clip_grad_norm(self, max_norm: float = 1.0) -> float: ...",
        "def add_param_group(self, given: dict[str, Any]) -> None: ...",
        "def state_dict(self) -> dict[str, Any]: ...",
        "def load_state_dict(self, state: Mapping[str, Any]) -> None: ...",
        "def step(self, closure: Callable[[], Any] | None = None) -> Any: ...",
    ]
    files["optim/__init__.pyi"] = (
        MARK
        + imports(
            "NDArray",
            "Tensor",
            more="from . import lr_scheduler as lr_scheduler, swa_utils as swa_utils\n",
        )
        + class_stub(
            optim,
            [n for n in optim.__all__ if n not in ("lr_scheduler", "swa_utils")],
            {"Optimizer": [*step, "lr: float"], "ASGD": ["averages: list[NDArray]"]},
        )
    )
    each = {
        "Dataset": [
            "def __len__(self) -> int: ...",
            "def __getitem__(self, index: Any) -> Any: ...",
            "def transform(self, x: Any) -> Any: ...",
        ],
        "ArrayDataset": ["arrays: list[NDArray]"],
        "Subset": ["dataset: Dataset", "indices: NDArray"],
        "DataLoader": [
            "def __len__(self) -> int: ...",
            "def __iter__(self) -> Iterator[Any]: ...",
        ],
    }
    orders = (
        "Sampler SequentialSampler RandomSampler SubsetRandomSampler WeightedRandomSampler BatchSampler DistributedSampler"
    ).split()
    sets = "IterableDataset ConcatDataset ChainDataset".split()
    for name in (*orders, *sets):
        each[name] = own_members(getattr(data, name), {})
    files["data.pyi"] = (
        MARK
        + imports("NDArray", "Tensor", "random")
        + class_stub(
            data,
            [
                "Dataset",
                "ArrayDataset",
                "TensorDataset",
                "IdxDataset",
                "Subset",
                *sets,
                *orders,
                "DataLoader",
            ],
            each,
        )
        .replace("arrays: Sequence[NDArray]", "arrays: Any")
        .replace("labels: _ArrayLike | Tensor", "labels: Any")
        + signature("synthetic_images", data.synthetic_images, "ArrayDataset")
        + "\n"
        + signature("random_split", data.random_split, "list[Subset]")
        + "\n"
        + signature("default_collate", data.default_collate, "Any")
        + "\n"
        + signature("get_worker_info", data.get_worker_info, "None")
        + "\n"
    )
    files |= small_stubs(load) | folder_stubs(load, MARK, signature)
    for name, text in files.items():
        place = name.removesuffix(".pyi").removesuffix("/__init__").replace("/", ".")
        if text:
            module = weft if place == "__init__" else load(place)
            files[name] = with_manuals(text, module, whole=("Schedule",))
    return files


def small_stubs(load):
    """Modules of a few functions and a class or two."""
    out = {}
    amp, cuda, polynomial, func = (load(name) for name in ("amp", "cuda", "polynomial", "func"))
    numbers = dict.fromkeys(("get_scale", "get_growth_factor", "get_backoff_factor"), "float")
    scaler = {**numbers, "get_growth_interval": "int", "is_enabled": "_bool", "state_dict": "dict[str, Any]"}  # fmt: skip
    out["amp.pyi"] = function_stub(
        amp, "Any", ["custom_bwd", "custom_fwd"], "from weft import autocast as autocast, is_autocast_available as is_autocast_available\n"
    ) + class_stub(amp, ["GradScaler"], {"GradScaler": own_members(amp.GradScaler, scaler)})  # fmt: skip
    answers = dict.fromkeys(("device_count", "current_device"), "int") | dict.fromkeys(("is_available", "is_bf16_supported"), "_bool")  # fmt: skip
    out["cuda.pyi"] = MARK + imports("NDArray", more="from . import amp as amp\n") + "".join(
        signature(name, getattr(cuda, name), answers.get(name, "str" if name == "get_device_name" else "None")) + "\n"
        for name in cuda.__all__
        if name != "amp"
    )  # fmt: skip
    made = dict.fromkeys(("fit", "fromroots", "identity", "basis", "copy", "trim", "truncate", "convert", "deriv", "integ"), "Polynomial")  # fmt: skip
    made |= dict.fromkeys((n for n in vars(polynomial.Polynomial) if n in _CALLED and n not in ("__call__", "__iter__", "__len__")), "Polynomial")  # fmt: skip
    attributes = ["coef: Any", "domain: NDArray", "window: NDArray", "symbol: str"]
    out["polynomial.pyi"] = function_stub(
        polynomial, "NDArray", [n for n in polynomial.__all__ if n not in ("Polynomial", "polydiv")]
    ) + (
        signature("polydiv", polynomial.polydiv, "tuple[NDArray, NDArray]")
        + "\n"
        + class_stub(polynomial, ["Polynomial"], {"Polynomial": attributes + own_members(polynomial.Polynomial, made)})
    )  # fmt: skip
    out["polynomial.pyi"] = re.sub(r"\b(c|k|x): (float|int|_ArrayLike)", r"\1: Any", out["polynomial.pyi"])  # fmt: skip
    out["func.pyi"] = MARK + "from collections.abc import Callable\nfrom typing import Any\n\n" + "".join(
        f"from weft import {n} as {n}\n" for n in func.__all__ if n != "grad_and_value"
    ) + "def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., tuple[Any, Any]]: ...\n"  # fmt: skip
    return out


def main():
    check, changed = "--check" in sys.argv, []
    for name, text in stubs().items():
        path = package / name
        if not path.exists() or path.read_text() != text:
            changed.append(name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    print(
        f"stubs: {len(changed)} {'differ' if check else 'written'}"
        + "".join(f"\n  {n}" for n in changed)
    )
    return bool(check and changed)


if __name__ == "__main__":
    sys.exit(main())
