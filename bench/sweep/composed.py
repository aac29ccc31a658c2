# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions that are composed of rows of the table, and weft.special beside torch.special."""

from case import Case

FLATS = ("4", "1e3", "1e5", "transposed", "odd")
ONE = {  # name: (NumPy's, torch's, types, domain)
    "fmod": ("fmod", "fmod", ("float32", "float64", "int32", "bfloat16"), (-5, 5)),
    "fmax": ("fmax", "fmax", ("float32", "float64"), (-5, 5)),
    "fmin": ("fmin", "fmin", ("float32", "bfloat16"), (-5, 5)),
    "heaviside": ("heaviside", "heaviside", ("float32", "float64"), (-5, 5)),
    "logaddexp2": ("logaddexp2", "logaddexp2", ("float32", "float64"), (0.1, 2)),
    "float_power": ("float_power", "float_power", ("float32", "int32"), (0.1, 2)),
    "xlogy": ("-", "xlogy", ("float32", "float64", "bfloat16"), (0.1, 2)),
    "isclose": ("isclose", "isclose", ("float32", "float64"), (0.1, 2)),
    "gcd": ("gcd", "gcd", ("int32", "int64"), (0, 0)),
    "lcm": ("lcm", "lcm", ("int32",), (0, 0)),
}
UNARY = {
    "cbrt": ("cbrt", "-", ("float32", "float64"), (-5, 5)),
    "sinc": ("sinc", "sinc", ("float32", "float64", "bfloat16"), (-5, 5)),
    "erfc": ("-", "erfc", ("float32", "float64", "bfloat16"), (-5, 5)),
    "erfinv": ("-", "erfinv", ("float32", "float64"), (-0.9, 0.9)),
    "lgamma": ("-", "lgamma", ("float32", "float64"), (0.1, 5)),
    "digamma": ("-", "digamma", ("float32", "float64"), (0.1, 5)),
    "logit": ("-", "logit", ("float32", "float64", "bfloat16"), (0.1, 0.9)),
    "frac": ("-", "frac", ("float32", "bfloat16"), (-5, 5)),
    "deg2rad": ("deg2rad", "deg2rad", ("float32", "bfloat16"), (-5, 5)),
    "nan_to_num": (None, None, ("float32", "float64", "bfloat16"), (-5, 5)),
    "frexp": (None, None, ("float32", "float64"), (-5, 5)),
    "modf": ("modf", "-", ("float32", "float64"), (-5, 5)),
    "angle": (None, None, ("float32", "complex64"), (-5, 5)),
    "isposinf": (None, None, ("float32",), (-5, 5)),
    "sgn": ("sign", "sgn", ("float32", "complex64"), (-5, 5)),
}
SPECIAL = "j0 j1 y0 y1 i0 i0e i1 i1e erfcx ndtr log_ndtr ndtri entr"
TORCHS = dict(j0="bessel_j0", j1="bessel_j1", y0="bessel_y0", y1="bessel_y1")
TERNARY = {
    "lerp": lambda m, x, y, z: m.lerp(x, y, z),
    "addcmul": lambda m, x, y, z: m.addcmul(x, y, z, value=0.5),
    "addcdiv": lambda m, x, y, z: m.addcdiv(x, y, z, value=0.5),
}


def cases():
    out = []

    def call(name):
        return None if name == "-" else lambda m, *a: getattr(m, name)(*a)

    for table, inputs in ((UNARY, 1), (ONE, 2)):
        for name, (numpy, torch, dtypes, domain) in table.items():
            out.append(
                Case("composed", name, call(name), call(numpy or name), call(torch or name),
                     layouts=FLATS, dtypes=dtypes, inputs=inputs, domain=domain)
            )  # fmt: skip
    for name, f in TERNARY.items():
        out.append(
            Case("composed", name, f, None, f, layouts=FLATS, inputs=3,
                 dtypes=("float32", "float64", "bfloat16"))
        )  # fmt: skip
    for name in SPECIAL.split():

        def special(m, x, name=name):
            torchs = m.__name__ == "torch" and TORCHS.get(name)
            return getattr(m.special, torchs or name)(x)

        domain = (0.05, 0.95) if name == "ndtri" else (0.1, 12)
        out.append(
            Case("special", name, special, None, special, layouts=FLATS[:3],
                 dtypes=("float32", "float64"), domain=domain,
                 tolerance="float32" if name == "y1" else "")  # near 5 torch is 1e-6 off
        )  # fmt: skip
    return out
