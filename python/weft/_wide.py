# SPDX-License-Identifier: Apache-2.0
"""Floats of 8 and 16 bits in compositions whose intermediate sums may lie beyond the type's range: computed in float32 on the host.
Kernels of cards keep such values in float32 until the end."""

from ._pointwise import on_host


def narrow(x):
    """Is it a float of 8 or 16 bits on the host?"""
    return x.dtype.kind == "f" and x.dtype.itemsize < 4 and on_host(x)


def wide(x):
    """float32 of such an array, tensor or traced value; anything else as it is."""
    return x.astype("float32") if hasattr(x, "dtype") and narrow(x) else x


def of_type(out, *like):
    """The result in the type of the operands, where these were widened."""
    import weft

    return out.astype(weft.result_type(*(x.dtype for x in like))) if narrow(like[0]) else out
