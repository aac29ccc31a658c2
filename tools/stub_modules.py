# SPDX-License-Identifier: Apache-2.0
"""For tools/make_stubs.py: weft.autograd and weft.nn.utils."""

FUNCTION, TENSOR_OR_MANY = "Callable[..., Any]", "Tensor | Sequence[Tensor]"
HEAD = "from collections.abc import Callable, Iterable, Sequence\nfrom contextlib import ContextDecorator\nfrom typing import Any, Literal, NamedTuple, TypeVar, overload\n\n"
AUTOGRAD = '''
class Context:
    """What forward leaves for backward: save_for_backward(*tensors), saved_tensors, and any attribute."""
    saved_tensors: tuple[Any, ...]
    needs_input_grad: tuple[bool, ...]
    def save_for_backward(self, *tensors: Tensor | NDArray | None) -> None: ...
    def mark_non_differentiable(self, *tensors: Tensor | NDArray) -> None: ...
    def set_materialize_grads(self, value: bool) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Function:
    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any: ...  # any parameters, for those that override it
    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any: ...
    @classmethod
    def apply(cls, *args: Any) -> Any: ...

class detect_anomaly(ContextDecorator):
    def __init__(self, check_nan: bool = True) -> None: ...
    def __enter__(self) -> detect_anomaly: ...
    def __exit__(self, *_: object) -> None: ...

GradcheckError: type[ArgumentError]

'''
GRAD = """@overload
def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]: ...
@overload
def grad(f: {many}, argnums: {many}, *, grad_outputs: {seeds} = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]: ...
@overload
def grad(f: {many}, argnums: {many}, *, grad_outputs: {seeds} = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: bool) -> tuple[Tensor | None, ...]: ...
@overload
def grad(*, outputs: {many}, inputs: {many}, grad_outputs: {seeds} = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]: ...
@overload
def grad(*, outputs: {many}, inputs: {many}, grad_outputs: {seeds} = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: bool) -> tuple[Tensor | None, ...]: ...
@overload
def grad(f: {many}, *, inputs: {many}, grad_outputs: {seeds} = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]: ...
@overload
def grad(f: {many}, *, inputs: {many}, grad_outputs: {seeds} = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: bool) -> tuple[Tensor | None, ...]: ...
"""
SEEDS = "Tensor | NDArray | Sequence[Tensor | NDArray | None] | None"
CHECKS = {
    "func": FUNCTION,
    "inputs": TENSOR_OR_MANY,
    "grad_outputs": SEEDS,
    **dict.fromkeys(("eps", "atol", "rtol"), "float"),
    "raise_exception": "bool",
    "tensors": TENSOR_OR_MANY,
    "grad_tensors": SEEDS,
    "retain_graph": "bool | None",
    "create_graph": "bool",
    "f": FUNCTION,
    "args": "Any",
}
FUNCTIONAL = {
    "func": FUNCTION,
    "inputs": "Any",
    "v": "Any",
    **dict.fromkeys(("create_graph", "strict", "vectorize"), "bool"),
    **dict.fromkeys(("strategy", "outer_jacobian_strategy"), "str"),
}

PARAMETERS = "Tensor | Iterable[Tensor]"
UTILS = {
    "parameters": PARAMETERS,
    "tensors": "Tensor | NDArray | Iterable[Tensor | NDArray]",
    **dict.fromkeys(("max_norm", "clip_value", "norm_type", "eps", "bn_eps"), "float"),
    "total_norm": "float | NDArray | Tensor",
    "error_if_nonfinite": "bool",
    "foreach": "bool | None",
    "vector": "NDArray | Tensor",
    "module": "_M",
    "conv": "_M",
    "bn": "Module",
    "name": "str",
    "dim": "int | None",
    "n_power_iterations": "int",
    "module_class": "Callable[..., _M]",
    "args": "Any",
    "memory_format": "Any",
    **dict.fromkeys(("conv_w", "bn_rm", "bn_rv"), "NDArray"),
    **dict.fromkeys(("conv_b", "bn_w", "bn_b"), "NDArray | None"),
}
UTILS_RESULTS = {
    "get_total_norm": "NDArray",
    **dict.fromkeys(("clip_grad_norm", "clip_grad_norm_"), "float"),
    **dict.fromkeys(("clip_grads_with_norm_", "clip_grad_value_", "vector_to_parameters"), "None"),
    "parameters_to_vector": "NDArray",
    "fuse_conv_bn_weights": "tuple[NDArray, NDArray]",
}
PACKED = """class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any
    def lengths(self) -> list[int]: ...

"""
RNN = {
    "sequences": "Sequence[Tensor | NDArray]",
    **dict.fromkeys(("padded", "input"), "Tensor | NDArray"),
    "lengths": "NDArray | Tensor | Sequence[int]",
    **dict.fromkeys(("batch_first", "enforce_sorted"), "bool"),
    "padding_value": "float",
    "sequence": "PackedSequence",
    "total_length": "int | None",
}
RNN_RESULTS = {
    "pad_sequence": "Tensor",
    "unpad_sequence": "list[Tensor]",
    "pad_packed_sequence": "tuple[Tensor, Any]",
}


def folder_stubs(load, mark, signature):
    """The stubs by file."""
    out = {}
    autograd = load("autograd")
    text = mark + HEAD
    text += "from weft import ArgumentError, NDArray, Tensor, enable_grad as enable_grad, no_grad as no_grad, value_and_grad as value_and_grad\n"
    text += "from . import functional as functional\n" + AUTOGRAD
    text += GRAD.format(many=TENSOR_OR_MANY, seeds=SEEDS)
    for name, result in (
        ("backward", "None"),
        ("checkpoint", "Any"),
        ("gradcheck", "bool"),
        ("gradgradcheck", "bool"),
    ):
        types = CHECKS | ({"inputs": f"{TENSOR_OR_MANY} | None"} if name == "backward" else {})
        text += signature(name, getattr(autograd, name), result, types) + "\n"
    out["autograd/__init__.pyi"] = text
    functional = load("autograd").functional
    text = mark + "from collections.abc import Callable\nfrom typing import Any\n\n"
    for name in ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"):
        result = "Any" if name in ("jacobian", "hessian") else "tuple[Any, Any]"
        text += signature(name, getattr(functional, name), result, FUNCTIONAL) + "\n"
    out["autograd/functional.pyi"] = text
    utils, rnn = load("nn.utils"), load("nn.utils").rnn
    text = mark + HEAD + "from weft import NDArray, Tensor\n\nfrom .. import Module\nfrom . import parametrizations as parametrizations, parametrize as parametrize, rnn as rnn\n\n"  # fmt: skip
    text += '_M = TypeVar("_M", bound=Module)\n\n'
    for name in (n for n in utils.__all__ if n != "rnn"):
        text += signature(name, getattr(utils, name), UTILS_RESULTS.get(name, "_M"), UTILS) + "\n"
    out["nn/utils/__init__.pyi"] = text
    text = mark + HEAD + "from weft import NDArray, Tensor\n\n" + PACKED
    for name in (n for n in rnn.__all__ if n != "PackedSequence"):
        text += signature(name, getattr(rnn, name), RNN_RESULTS.get(name, "PackedSequence"), RNN) + "\n"  # fmt: skip
    out["nn/utils/rnn.pyi"] = text
    return out
