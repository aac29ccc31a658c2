# SPDX-License-Identifier: Apache-2.0
"""What tools/make_stubs.py cannot see: types of parameters by name, results, members of the core's classes."""

SHAPE = "int | Sequence[int]"
AXES = "int | Sequence[int] | None"
PARAMETERS = {
    # arrays
    "x": "_ArrayLike",
    "x1": "_ArrayLike",
    "x2": "_ArrayLike",
    "condition": "_ArrayLike",
    "indices": "_ArrayLike",
    "values": "_ArrayLike",
    "arrays": "Sequence[NDArray]",
    "sorter": "NDArray | None",
    "logits": "Tensor",
    "labels": "_ArrayLike | Tensor",
    "weight": "Tensor",
    "index": "_ArrayLike | Tensor",
    "i": "_ArrayLike | Tensor",
    # what arrays are made of
    "obj": "Any",
    "shape": SHAPE,
    "dtype": "_DType | None",
    "device": "_Device | None",
    "copy": "_bool | None",
    "requires_grad": "_bool",
    "fill_value": "_Number | NDArray",
    "key": "random.Key | None",
    "k": "int",
    "n": "int",
    "num": "int",
    # axes and flags
    "axis": AXES,
    "axes": AXES,
    "keepdims": "_bool",
    "descending": "_bool",
    "stable": "_bool",
    "accumulate": "_bool",
    "largest": "_bool",
    "invert": "_bool",
    "include_initial": "_bool",
    "endpoint": "_bool",
    "full_matrices": "_bool",
    "upper": "_bool",
    "causal": "_bool",
    "training": "_bool",
    "bias": "_bool",
    "shuffle": "_bool",
    "side": "str",
    "mode": "str",
    "norm": "str",
    "indexing": "str",
    "nonlinearity": "str",
    "spec": "str",
    "path": "str | os.PathLike[str]",
    # numbers
    "start": "_Number",
    "stop": "_Number | None",
    "step": "_Number",
    "value": "_Number",
    "min": "_Number | NDArray | None",
    "max": "_Number | NDArray | None",
    "correction": "float",
    "offset": "int",
    "decimals": "int",
    "p": "float",
    "seed": "int",
    "low": "float",
    "high": "float",
    "mean": "float",
    "std": "float",
    "gain": "float",
    "lr": "float",
    "momentum": "float",
    "weight_decay": "float",
    "beta1": "float",
    "beta2": "float",
    "eps": "float",
    "max_norm": "float",
    "dropout": "float",
    "slope": "float",
    "noise": "float",
    "d": "float",
    "c": "float",
    "rtol": "float | NDArray | None",
    "batch_size": "int",
    "groups": "int",
    "stride": "int | tuple[int, ...] | None",
    "padding": "int | str | tuple[int, ...] | None",
    "dilation": "int | tuple[int, ...]",
    "output_padding": "int | tuple[int, ...]",
    "kernel_size": "int | tuple[int, ...]",
    "kernel": "int | tuple[int, ...]",
    "ceil_mode": "_bool",
    "count_include_pad": "_bool",
    "divisor_override": "int | None",
    "bidirectional": "_bool",
    "batch_first": "_bool",
    "reduction": "str",
    "padding_mode": "str",
    "padding_idx": "int | None",
    "amsgrad": "_bool",
    "maximize": "_bool",
    "nesterov": "_bool",
    "centered": "_bool",
    "training": "_bool",
    "inplace": "_bool",
    "ignore_index": "int | None",
    "in_features": "int",
    "out_features": "int",
    "in_channels": "int",
    "out_channels": "int",
    "dim": "int",
    "heads": "int",
    "hidden": "int | None",
    "hidden_size": "int",
    "input_size": "int",
    "num_layers": "int",
    "num_embeddings": "int",
    "embedding_dim": "int",
    "fan_in": "int",
    "fan_out": "int",
    "classes": "int",
    "params": "Iterable[Tensor | Mapping[str, Any]]",
    "modules": "Module",
    "fn": "Callable[[Tensor], Tensor]",
    "dataset": "Dataset",
    "transforms": "Sequence[Callable[[NDArray], NDArray]] | None",
    "shift": "int | Sequence[int]",
    "repeats": "int | NDArray",
    "repetitions": "Sequence[int]",
    "widths": "Sequence[tuple[int, int]]",
    "source": "int | Sequence[int]",
    "destination": "int | Sequence[int]",
    "prepend": "NDArray | None",
    "append": "NDArray | None",
    "kind": "_DType | str | tuple[_DType | str, ...]",
    "from_": "_DType | NDArray",
    "to": "_DType",
    "type": "_DType | NDArray",
    "arrays_and_dtypes": "_DType | NDArray | Tensor | _Number",
    "shapes": "Sequence[int]",
    "operands": "_ArrayLike",
    "ord": "int | float | str | None",
    "s": "Sequence[int] | None",
    "f": "Callable[..., Any]",
    "argnums": "int | Sequence[int]",
    "api_version": "str | None",
    "library": "Any",
    "state": "Any",
}
OWN = {  # (function, parameter)
    ("reshape", "shape"): SHAPE,
    ("full_like", "x"): "NDArray",
    ("empty_like", "x"): "NDArray",
    ("zeros_like", "x"): "NDArray",
    ("ones_like", "x"): "NDArray",
    ("save", "x"): "Any",
    ("save", "path"): "Any",
    ("save_safetensors", "arrays"): "Mapping[str, _ArrayLike | Tensor]",
    ("fftn", "axes"): "Sequence[int] | None",
    ("fft", "n"): "int | None",
    ("ifft", "n"): "int | None",
    ("rfft", "n"): "int | None",
    ("irfft", "n"): "int | None",
    ("hfft", "n"): "int | None",
    ("ihfft", "n"): "int | None",
    ("tensordot", "axes"): "int | tuple[Sequence[int], Sequence[int]]",
    ("arange", "start"): "float",
    ("arange", "stop"): "float | None",
    ("arange", "step"): "float",
    ("linspace", "stop"): "_Number",
    ("from_dlpack", "x"): "Any",
    ("compile", "contract"): "_bool",
    ("compile", "function"): "Callable[..., Any]",
    ("capture", "function"): "Callable[..., Any]",
    ("layer_norm", "scale"): "_ArrayLike | Tensor | None",
    ("layer_norm", "shift"): "_ArrayLike | Tensor | None",
    ("key", "key"): "random.Key",
    ("split", "key"): "random.Key",
    ("choice", "x"): "int | NDArray",
    ("integers", "low"): "int",
    ("integers", "high"): "int",
    ("scatter", "indices"): "_ArrayLike | tuple[_ArrayLike, ...]",
    ("softmax", "axis"): "int",
    ("log_softmax", "axis"): "int",
    ("Softmax", "axis"): "int",
}
for _name in ("rrelu", "RReLU"):
    OWN[_name, "lower"] = OWN[_name, "upper"] = "float"
    OWN[_name, "__init__", "lower"] = OWN[_name, "__init__", "upper"] = "float"
for _name in ("local_response_norm", "LocalResponseNorm"):
    OWN[_name, "k"] = OWN[_name, "__init__", "k"] = "float"
OWN["ModuleList", "__init__", "modules"] = "Iterable[Module]"
OWN["ParameterList", "__init__", "values"] = "Iterable[Any]"
OWN["DataLoader", "__init__", "dataset"] = "Dataset | IterableDataset | Sequence[Any]"
OWN["functional", "pad", "widths"] = "Sequence[int]"
OWN["BatchNorm1d", "__init__", "momentum"] = "float | None"
OWN["LayerNorm", "__init__", "dim"] = "int | Sequence[int] | None"
OWN["RMSNorm", "__init__", "dim"] = "int | Sequence[int] | None"
for _name in ("rand", "randn", "constant", "ones", "zeros"):
    OWN["init", _name, "shape"] = "int"
TUPLE = "tuple[int, ...]"
RESULTS = {
    "default_rng": "Any",
    "shuffle": "None",
    "can_cast": "_bool",
    "isdtype": "_bool",
    "result_type": "dtype",
    "finfo": "finfo_object",
    "iinfo": "iinfo_object",
    "broadcast_shapes": TUPLE,
    "nonzero": "tuple[NDArray, ...]",
    "is_autocast_enabled": "_bool",
    "is_autocast_available": "_bool",
    "get_autocast_dtype": "_dtype",
    "get_default_device": "Device",
    "set_default_device": "None",
    "einsum_path": "tuple[list[Any], str]",
    "grad": "Callable[..., Any]",
    "value_and_grad": "Callable[..., tuple[Any, Any]]",
    **dict.fromkeys(
        ("checkpoint", "hessian", "jacfwd", "jacobian", "jacrev"), "Callable[..., Any]"
    ),
    "vmap": "_Mapped",
    "capture": "_Captured",
    "vjp": "tuple[Any, ...]",
    "jvp": "tuple[Any, ...]",
    "linearize": "tuple[Any, Callable[..., Any]]",
    "functional_call": "Any",
    "stop_gradient": "Any",
    "tree_map": "Any",
    "load_gguf": "tuple[dict[str, Any], dict[str, Any]]",
    "device": "Device",
    "devices": "list[Device]",
    "use": "Any",
    "no_grad": "_Switch",
    "enable_grad": "_Switch",
    "is_deterministic": "_bool",
    "use_deterministic": "Any",
    "fallbacks": "list[Any]",
    "tune": "Schedule",
    "set_threads": "None",
    "get_threads": "int",
    "save": "None",
    "savez": "None",
    "save_safetensors": "None",
    "load_arrays": "Any",
    "load_safetensors": "dict[str, NDArray]",
    "compile": "Callable[..., Any]",
    "__array_namespace_info__": "Any",
    "key": "Key",
    "split": "list[Key]",
    "seed": "None",
    "synthetic_images": "ArrayDataset",
}
# Functions of the namespace that take a Tensor and give one.
TENSORS = set(
    """sum prod max min mean var std reshape permute_dims matrix_transpose moveaxis flip squeeze expand_dims broadcast_to
    take take_along_axis sort cumulative_sum pad softmax log_softmax layer_norm logsumexp astype clip repeat roll tile tril triu diff unique_values""".split()
)
OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
NDARRAY = {
    "attributes": {
        "shape": TUPLE,
        "strides": TUPLE,
        "offset": "int",
        "dtype": "_dtype",
        "device": "Device",
        "size": "int",
        "ndim": "int",
        "nbytes": "int",
        "T": "NDArray",
        "mT": "NDArray",
        "handle": "Any",
        "real": "NDArray",
        "imag": "NDArray",
    },
    "methods": [
        "def numpy(self) -> _numpy.ndarray[Any, Any]: ...",
        "def to(self, device: _Device, /) -> NDArray: ...",
        "def to_device(self, device: _Device, /, *, stream: Any = ...) -> NDArray: ...",
        "def item(self, *index: int) -> Any: ...",
        "def tolist(self) -> Any: ...",
        "def is_compact(self) -> _bool: ...",
        "def is_contiguous(self) -> _bool: ...",
        "def compact(self) -> NDArray: ...",
        "def copy(self) -> NDArray: ...",
        "def astype(self, dtype: _DType, copy: _bool = True) -> NDArray: ...",
        "def fill(self, value: _Number, /) -> None: ...",
        "def permute(self, *axes: int | Sequence[int]) -> NDArray: ...",
        "def flip(self, axes: int | Sequence[int], /) -> NDArray: ...",
        "def as_strided(self, shape: Sequence[int], strides: Sequence[int], /) -> NDArray: ...",
        "def broadcast_to(self, shape: Sequence[int], /) -> NDArray: ...",
        "def reshape(self, *shape: int | Sequence[int]) -> NDArray: ...",
        *(
            f"def {name}(self, axis: {AXES} = None, keepdims: _bool = False{dtype}) -> NDArray: ..."
            for name, dtype in {
                "sum": ", *, dtype: _DType | None = None",
                "prod": ", *, dtype: _DType | None = None",
                "max": "",
                "min": "",
                "all": "",
                "any": "",
                "mean": ", dtype: _DType | None = None, out: None = None",
                "std": ", dtype: _DType | None = None, out: None = None, ddof: float = 0",
                "var": ", dtype: _DType | None = None, out: None = None, ddof: float = 0",
            }.items()
        ),
        *(
            f"def {name}(self, axis: int | None = None, keepdims: _bool = False, out: None = None) -> NDArray: ..."
            for name in ("argmax", "argmin")
        ),
        *(
            f"def {name}(self, axis: int | None = None, dtype: _DType | None = None, out: None = None) -> NDArray: ..."
            for name in ("cumsum", "cumprod")
        ),
        *(f"def {name}(self) -> NDArray: ..." for name in ("ravel", "flatten", "conj")),
        "def clip(self, min: Any = None, max: Any = None, out: None = None) -> NDArray: ...",
        "def round(self, decimals: int = 0, out: None = None) -> NDArray: ...",
        "def transpose(self, *axes: int | Sequence[int]) -> NDArray: ...",
        "def swapaxes(self, axis1: int, axis2: int) -> NDArray: ...",
        "def squeeze(self, axis: int | Sequence[int] | None = None) -> NDArray: ...",
        "def take(self, indices: Any, axis: int | None = None) -> NDArray: ...",
        "def dot(self, other: Any) -> NDArray: ...",
        "def argsort(self, *, axis: int = -1, descending: _bool = False, stable: _bool = True) -> NDArray: ...",
        "def nonzero(self) -> tuple[NDArray, ...]: ...",
        *(
            f"def {name}(self) -> NDArray: ..."
            for name in "float double half long int bool".split()
        ),
        *(
            f"def {name}(self, other: Any, *, alpha: _Number = 1) -> NDArray: ..."
            for name in ("add_", "sub_", "mul_", "div_", "pow_")
        ),
        "def zero_(self) -> NDArray: ...",
        "def fill_(self, value: _Number) -> NDArray: ...",
        "def copy_(self, source: Any) -> NDArray: ...",
        "def clamp_(self, min: _Number | None = None, max: _Number | None = None) -> NDArray: ...",
        "def uniform_(self, a: float = 0.0, b: float = 1.0) -> NDArray: ...",
        "def normal_(self, mean: float = 0.0, std: float = 1.0) -> NDArray: ...",
        "def repeat(self, repeats: Any, *, axis: int | None = None) -> NDArray: ...",
        "@staticmethod",
        "def make(shape: Sequence[int], strides: Sequence[int] | None = None, device: _Device | None = None, "
        "handle: Any = None, offset: int = 0, dtype: _DType | None = None) -> NDArray: ...",
        "def __getitem__(self, key: Any, /) -> NDArray: ...",
        "def __setitem__(self, key: Any, value: Any, /) -> None: ...",
        "def __len__(self) -> int: ...",
        "def __iter__(self) -> Iterator[NDArray]: ...",
        "def __bool__(self) -> _bool: ...",
        "def __int__(self) -> int: ...",
        "def __index__(self) -> int: ...",
        "def __float__(self) -> float: ...",
        "def __complex__(self) -> complex: ...",
        "def __neg__(self) -> NDArray: ...",
        "def __pos__(self) -> NDArray: ...",
        "def __abs__(self) -> NDArray: ...",
        "def __invert__(self) -> NDArray: ...",
        "def __array__(self, dtype: Any = None, copy: _bool | None = None) -> _numpy.ndarray[Any, Any]: ...",
        "def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...",
        "def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, "
        "copy: _bool | None = None) -> Any: ...",
        "def __dlpack_device__(self) -> tuple[int, int]: ...",
    ],
}
TENSOR = {
    "attributes": {
        "data": "NDArray",
        "grad": "Tensor | None",
        "requires_grad": "_bool",
        "op": "str",
        "inputs": "list[Tensor]",
        "is_leaf": "_bool",
        "shape": TUPLE,
        "ndim": "int",
        "size": "int",
        "dtype": "_dtype",
        "device": "Device",
        "T": "Tensor",
        "mT": "Tensor",
    },
    "methods": [
        "def __init__(self, data: Any, device: _Device | None = None, dtype: _DType | None = None, "
        "requires_grad: _bool = True) -> None: ...",
        "def detach(self) -> Tensor: ...",
        "def numpy(self) -> _numpy.ndarray[Any, Any]: ...",
        "def item(self) -> Any: ...",
        "def tolist(self) -> Any: ...",
        "def backward(self, grad: Tensor | NDArray | _Number | None = None, create_graph: _bool = False, retain_graph: _bool = True) -> None: ...",
        *(
            f"def {name}(self, axis: {AXES} = None, keepdims: _bool = False) -> Tensor: ..."
            for name in ("sum", "mean", "max", "min", "prod")
        ),
        *(
            f"def {name}(self, axis: {AXES} = None, keepdims: _bool = False) -> NDArray: ..."
            for name in ("all", "any")
        ),
        *(
            f"def {name}(self, other: Any) -> Tensor: ..."
            for name in "add sub mul div pow matmul mm bmm".split()
        ),
        *(f"def {name}(self) -> Tensor: ..." for name in "cpu clone contiguous".split()),
        *(f"def {name}(self) -> int: ..." for name in "dim numel".split()),
        "def to(self, device: _Device | _dtype | None = None, dtype: _DType | None = None) -> Tensor: ...",
        "def repeat(self, *sizes: int | Sequence[int]) -> Tensor: ...",
        "def select(self, dim: int, index: int) -> Tensor: ...",
        "def topk(self, k: int, dim: int = -1, largest: _bool = True) -> Any: ...",
        "def argsort(self, dim: int = -1, descending: _bool = False) -> NDArray: ...",
        "def sort(self, dim: int = -1, descending: _bool = False) -> tuple[Tensor, NDArray]: ...",
        "def addmm(self, a: Any, b: Any, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: ...",
        *(
            f"def {name}(self, other: Any) -> Tensor: ..."
            for name in ("outer", "dot", "view_as", "reshape_as")
        ),
        "def mv(self, vector: Any) -> Tensor: ...",
        *(
            f"def {name}(self, dim: int | Sequence[int] | None = None, keepdim: _bool = False) -> Tensor: ..."
            for name in ("amax", "amin")
        ),
        "def allclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08) -> _bool: ...",
        *(
            f"def {name}(self, *size: int | Sequence[int], dtype: _DType | None = None, "
            "device: _Device | None = None) -> Tensor: ..."
            for name in ("new_zeros", "new_ones", "new_empty")
        ),
        *(
            f"def {name}(self, *args: Any, **kwargs: Any) -> Tensor: ..."
            for name in (
                "trunc erf exp2 log2 log10 tan asin acos atan sinh cosh asinh acosh atanh maximum minimum atan2 hypot "
                "remainder floor_divide copysign logaddexp moveaxis movedim diff"
            ).split()
        ),
        *(
            f"def {name}(self, *args: Any, **kwargs: Any) -> Any: ..."
            for name in ("count_nonzero", "nonzero")
        ),
        *(
            f"def {name}(self, other: Any, *, alpha: _Number = 1) -> Tensor: ..."
            for name in ("add_", "sub_", "mul_", "div_", "pow_")
        ),
        "def zero_(self) -> Tensor: ...",
        "def fill_(self, value: _Number) -> Tensor: ...",
        "def copy_(self, source: Any) -> Tensor: ...",
        "def clamp_(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...",
        "def uniform_(self, a: float = 0.0, b: float = 1.0) -> Tensor: ...",
        "def normal_(self, mean: float = 0.0, std: float = 1.0) -> Tensor: ...",
        "def requires_grad_(self, requires_grad: _bool = True) -> Tensor: ...",
        *(
            f"def {name}(self) -> Tensor: ..."
            for name in "abs cos exp log relu rsqrt sigmoid sin sqrt square tanh".split()
        ),
        *(
            f"def {name}(self, axis: {AXES} = None, keepdims: _bool = False, correction: float = 0.0) -> Tensor: ..."
            for name in ("var", "std")
        ),
        *(
            f"def {name}(self, axis: int | None = None, keepdims: _bool = False, *, dim: int | None = None, "
            "keepdim: _bool = False) -> NDArray: ..."
            for name in ("argmax", "argmin")
        ),
        "def split(self, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]: ...",
        "def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]: ...",
        "def unbind(self, dim: int = 0) -> tuple[Tensor, ...]: ...",
        "def narrow(self, dim: int, start: int, length: int) -> Tensor: ...",
        "def masked_fill(self, mask: Any, value: _Number) -> Tensor: ...",
        "def expand(self, *sizes: int | Sequence[int]) -> Tensor: ...",
        "def expand_as(self, other: Tensor) -> Tensor: ...",
        "def norm(self, p: float = 2, dim: int | Sequence[int] | None = None, keepdim: _bool = False) -> Tensor: ...",
        "def index_select(self, dim: int, index: Any) -> Tensor: ...",
        "def gather(self, dim: int, index: Any) -> Tensor: ...",
        "def cumsum(self, dim: int) -> Tensor: ...",
        "def clamp(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...",
        "def type_as(self, other: Tensor) -> Tensor: ...",
        "def roll(self, *args: Any, **kwargs: Any) -> Tensor: ...",
        *(f"def {name}(self) -> Tensor: ..." for name in "t double half float".split()),
        *(f"def {name}(self) -> NDArray: ..." for name in "long int bool".split()),
        *(
            f"def {name}(self, *args: Any, **kwargs: Any) -> Tensor: ..."
            for name in "log1p expm1 reciprocal sign floor ceil round tril triu".split()
        ),
        *(
            f"def {name}(self, *args: Any, **kwargs: Any) -> Any: ..."
            for name in "isnan isfinite isinf".split()
        ),
        *(f"def {name}(self, other: Any) -> Any: ..." for name in "eq ne lt le gt ge".split()),
        "def clip(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...",
        "def unsqueeze(self, dim: int) -> Tensor: ...",
        "def squeeze(self, dim: int | Sequence[int] | None = None) -> Tensor: ...",
        "def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...",
        "def view(self, *shape: int | Sequence[int]) -> Tensor: ...",
        "def reshape(self, *shape: int | Sequence[int]) -> Tensor: ...",
        "def permute(self, *axes: int | Sequence[int]) -> Tensor: ...",
        "def flip(self, *axes: int | Sequence[int]) -> Tensor: ...",
        "def transpose(self, a: int = -2, b: int = -1) -> Tensor: ...",
        "def broadcast_to(self, shape: Sequence[int], /) -> Tensor: ...",
        "def astype(self, dtype: _DType, /) -> Tensor: ...",
        "def pad(self, widths: Sequence[tuple[int, int]], /) -> Tensor: ...",
        "def softmax(self, axis: int = -1) -> Tensor: ...",
        "def log_softmax(self, axis: int = -1) -> Tensor: ...",
        "def logsumexp(self, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor: ...",
        "def layer_norm(self, scale: Tensor, shift: Tensor, eps: float = 1e-05) -> Tensor: ...",
        "def concat(self, tensors: list[Tensor], axis: int, /) -> Tensor: ...",
        "def where(self, condition: Any, a: Any, b: Any, /) -> Tensor: ...",
        "def windows(self, kh: int, kw: int, stride: int, /) -> Tensor: ...",
        "def __getitem__(self, key: Any, /) -> Tensor: ...",
        "def __len__(self) -> int: ...",
        "def __float__(self) -> float: ...",
        "def __neg__(self) -> Tensor: ...",
        "def __abs__(self) -> Tensor: ...",
        "def __gt__(self, other: Any, /) -> Tensor: ...",
        "def __ge__(self, other: Any, /) -> Tensor: ...",
        "def __lt__(self, other: Any, /) -> Tensor: ...",
        "def __le__(self, other: Any, /) -> Tensor: ...",
        "def __bool__(self) -> _bool: ...",
        "def __int__(self) -> int: ...",
        "def __pos__(self) -> Tensor: ...",
        "def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, "
        "copy: _bool | None = None) -> Any: ...",
        "def __dlpack_device__(self) -> tuple[int, int]: ...",
        "def __array__(self, dtype: Any = None, copy: _bool | None = None) -> _numpy.ndarray[Any, Any]: ...",
    ],
}
DEVICE = """class Device:
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def available(self) -> _bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def host_accessible(self) -> _bool: ...
    @property
    def clock_hz(self) -> float: ...
    @property
    def limits(self) -> dict[str, int]: ...
    def synchronize(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def clear_stats(self) -> None: ...

class dtype:
    def __init__(self, name: _DType) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def is_floating_point(self) -> _bool: ...
    @property
    def is_complex(self) -> _bool: ...
    @property
    def is_signed(self) -> _bool: ...
    @property
    def kind(self) -> str: ...
    @property
    def dtype(self) -> Any: ...
    def __call__(self, x: _ArrayLike = 0) -> NDArray: ...
"""
ERRORS = [
    ("ArgumentError", "ValueError"),
    ("ShapeError", "ValueError"),
    ("DTypeError", "TypeError"),
    ("IndexError", "_builtins.IndexError"),
    ("OutOfMemoryError", "MemoryError"),
    ("ScheduleError", "ValueError"),
    ("DeviceError", "RuntimeError"),
    ("Fault", "RuntimeError"),
    ("ParseError", "ValueError"),
    ("IOError", "OSError"),
]
# Classes and functions that stubs leave to the module's own source.
SUGGESTIONS = {
    "build": ["Function", "Module", "TimeResult", "accepts", "build", "load", "target_limits"],
    "ir": ["IRModule", "PrimFunc"],
    "profiler": ["profile"],
    "schedule": ["BlockRef", "LoopRef", "Schedule"],
}
