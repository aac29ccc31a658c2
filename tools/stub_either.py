# SPDX-License-Identifier: Apache-2.0
"""For tools/make_stubs.py: functions that give a tensor for a tensor and an array for an array, and results of several parts.

Classes of such results are generic; without an argument their parts are arrays.
"""

import inspect

VARIABLE = '_A = TypeVar("_A", default=NDArray)\n'
# Classes of results, and those of their parts that are arrays in any case. A leading _: a class without a public name.
ALWAYS_ARRAYS = {
    "topk_result": ("indices",),
    "sort_result": ("indices",),
    "unique_all_result": ("indices", "inverse_indices", "counts"),
    "unique_counts_result": ("counts",),
    "unique_inverse_result": ("inverse_indices",),
    "EigResult": (),
    "EighResult": (),
    "QRResult": (),
    "SlogdetResult": (),
    "SVDResult": (),
    "_Factor": ("info",),
    "_Inverse": ("info",),
    "_Result": ("info",),
    "_LU": ("P",),
    "_LUFactors": ("pivots",),
    "_LUFactorsEx": ("pivots", "info"),
}
# Function: its operands and what it gives for arrays, where that is not one array of one operand x.
EITHER = {
    name: (("x",), f"{result}[NDArray]")
    for name, result in (
        ("topk", "topk_result"), ("unique_all", "unique_all_result"), ("unique_counts", "unique_counts_result"),
        ("unique_inverse", "unique_inverse_result"), ("eig", "EigResult"), ("eigh", "EighResult"), ("qr", "QRResult"),
        ("slogdet", "SlogdetResult"), ("svd", "SVDResult"), ("cholesky_ex", "_Factor"), ("inv_ex", "_Inverse"),
        ("lu", "_LU"), ("lu_factor", "_LUFactors"), ("lu_factor_ex", "_LUFactorsEx"),
    )
}  # fmt: skip
EITHER["unstack"] = (("x",), "tuple[NDArray, ...]")
EITHER |= {name: (("x1", "x2"), "NDArray") for name in ("cross", "matmul", "outer", "tensordot", "vecdot", "solve")}  # fmt: skip
EITHER |= {name: (("a", "b"), "NDArray") for name in ("solve_triangular", "tensorsolve")}
EITHER["lstsq"] = (("a", "b"), "tuple[NDArray, NDArray, int, NDArray]")
EITHER["solve_ex"] = (("a", "b"), "_Result[NDArray]")
EITHER["lu_solve"] = (("b", "LU_data"), "NDArray")
EITHER["tensorinv"] = (("a",), "NDArray")
EITHER["householder_product"] = (("x", "tau"), "NDArray")
EITHER |= {name: ((f"*{rest}",), result) for name, rest, result in (
    ("einsum", "operands", "NDArray"), ("meshgrid", "arrays", "list[NDArray]"), ("broadcast_arrays", "arrays", "list[NDArray]"),
)}  # fmt: skip
# Those of the namespace itself; its other functions of these names are composed ones.
MAIN = (
    "topk unique_all unique_counts unique_inverse unstack matmul tensordot vecdot einsum meshgrid broadcast_arrays"
).split()
# Of linalg and fft those that give no tensor, or take sequences of arrays.
PLAIN = ("fftfreq", "rfftfreq", "use", "LinAlgError", "matrix_rank", "multi_dot")


def result_classes(tuples):
    """Text of the classes for {name: fields}."""
    out = ""
    for name, fields in tuples.items():
        parts = (
            f"    {f}: {'NDArray' if f in ALWAYS_ARRAYS[name] else '_A'}\n"
            for f in fields
        )  # fmt: skip
        out += f"class {name}(NamedTuple, Generic[_A]):\n{''.join(parts)}\n"
    return out


def of_tensors(result):
    """What the function gives where an operand is a tensor. Of a plain tuple only the first part follows it."""
    if result.startswith("tuple[NDArray, NDArray"):
        return result.replace("NDArray", "Tensor", 1)
    return result.replace("NDArray", "Tensor")


def either(name, f, overloads):
    """The overloads of a function of these tables, or of one operand."""
    operands, result = EITHER.get(name, (None, "NDArray"))
    if operands is None:
        operands = (next(iter(inspect.signature(f).parameters)),)
    if operands[0][0] == "*":
        rest = operands[0][1:]
        # One form: overloads by the types of many operands would overlap.
        variant = [({rest: "_ArrayLike | Tensor"}, result.replace("NDArray", "Any"))]
        return overloads(name, f, variant).replace("@overload\n", "")
    elif len(operands) == 1:
        variants = [({operands[0]: "Tensor"}, of_tensors(result)), ({operands[0]: "_ArrayLike"}, result)]  # fmt: skip
    else:
        a, b = operands
        variants = [
            ({a: "Tensor", b: "Tensor | _ArrayLike"}, of_tensors(result)),
            ({a: "_ArrayLike", b: "Tensor"}, of_tensors(result)),
            ({a: "_ArrayLike", b: "_ArrayLike"}, result),
        ]
    return overloads(name, f, variants)
