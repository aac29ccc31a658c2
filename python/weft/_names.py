# SPDX-License-Identifier: Apache-2.0
"""What the functions of NumPy and PyTorch are called here, for those who look for them in vain."""

# NumPy's (or PyTorch's) name: what to write instead. Names of the array API standard 2024.12 are not listed.
ELSEWHERE = {
    "float": "weft.float32 or weft.float64",
    "int": "weft.int32 or weft.int64",
    "lib": "weft.sliding_window_view(x, shape, axis) of numpy.lib.stride_tricks",
    "ndarray": "weft.NDArray",
    "view_as_real": "weft.real(x) and weft.imag(x)",
}

RANDOM = {
    "rand": "weft.rand(2, 3) or weft.random.uniform(shape)",
    "random": "weft.random.uniform(shape)",
    "randn": "weft.randn(2, 3) or weft.random.normal(shape)",
    "randint": "weft.randint(low, high, shape) or weft.random.integers(low, high, shape)",
}
LINALG = {
    "lu_factor": "weft.linalg.solve(a, b)",
    "lu": "weft.linalg.solve(a, b)",
}


def elsewhere(name):
    """ "; here it is ..." for a name of NumPy or PyTorch, else nothing."""
    return f"; here it is {ELSEWHERE[name]}" if name in ELSEWHERE else ""


def missing(module, name, table):
    """The AttributeError for a name that a module lacks."""
    where = f"; here it is {table[name]}" if name in table else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{where}")
