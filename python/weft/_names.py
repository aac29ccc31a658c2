# SPDX-License-Identifier: Apache-2.0
"""What the functions of NumPy and PyTorch are called here, for those who look for them in vain."""

# NumPy's (or PyTorch's) name: what to write instead. Names of the array API standard 2024.12 are not listed.
ELSEWHERE = {
    "arccosh": "weft.acosh(x)",
    "arcsinh": "weft.asinh(x)",
    "arctan2": "weft.atan2(x, y)",
    "arctanh": "weft.atanh(x)",
    "array_equal": "a.shape == b.shape and weft.all(a == b)",
    "cat": "weft.concat(arrays, axis=0)",
    "concatenate": "weft.concat(arrays, axis=0)",
    "matrix_power": "weft.linalg.matrix_power(x, n)",
    "randint": "weft.random.integers(low, high, shape)",
    "randperm": "weft.random.permutation(n)",
    "rand_like": "weft.random.uniform(x.shape)",
    "randn_like": "weft.random.normal(x.shape)",
    "float": "weft.float32 or weft.float64",
    "from_numpy": "weft.from_dlpack(x), which shares memory, or weft.asarray(x)",
    "hstack": "weft.concat(arrays, axis=1)",
    "int": "weft.int32 or weft.int64",
    "invert": "weft.bitwise_invert(x)",
    "left_shift": "weft.bitwise_left_shift(x, n)",
    "manual_seed": "weft.random.seed(n)",
    "mod": "weft.remainder(a, b)",
    "ndarray": "weft.NDArray",
    "power": "weft.pow(x, y)",
    "rand": "weft.random.uniform(shape)",
    "randn": "weft.random.normal(shape)",
    "right_shift": "weft.bitwise_right_shift(x, n)",
    "tensor": "weft.Tensor(data)",
    "view_as_real": "weft.real(x) and weft.imag(x)",
    "unique": "weft.unique_values(x)",
    "vstack": "weft.concat(arrays, axis=0)",
}

RANDOM = {
    "rand": "weft.random.uniform(shape)",
    "random": "weft.random.uniform(shape)",
    "randn": "weft.random.normal(shape)",
    "standard_normal": "weft.random.normal(shape)",
    "randint": "weft.random.integers(low, high, shape)",
    "shuffle": "x[weft.random.permutation(len(x))]",
    "default_rng": "weft.random.key(seed), given as key=",
}
LINALG = {
    "norm": "weft.linalg.vector_norm(x) or weft.linalg.matrix_norm(x)",
    "lstsq": "weft.linalg.pinv(a) @ b",
    "multi_dot": "a @ b @ c",
    "cond": "weft.linalg.svdvals(x), the first over the last",
}
FFT = {
    "fft2": "weft.fft.fftn(x, axes=(-2, -1))",
    "ifft2": "weft.fft.ifftn(x, axes=(-2, -1))",
    "rfft2": "weft.fft.rfftn(x, axes=(-2, -1))",
    "irfft2": "weft.fft.irfftn(x, axes=(-2, -1))",
}


def elsewhere(name):
    """ "; here it is ..." for a name of NumPy or PyTorch, else nothing."""
    return f"; here it is {ELSEWHERE[name]}" if name in ELSEWHERE else ""


def missing(module, name, table):
    """The AttributeError for a name that a module lacks."""
    where = f"; here it is {table[name]}" if name in table else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{where}")
