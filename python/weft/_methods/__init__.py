# SPDX-License-Identifier: Apache-2.0
"""The methods of arrays and tensors that are written in Python. The core has the others.

Classes hold them, each method once; `adopt` gives them to the types of the core, and the traced values of weft.compile
inherit `Arithmetic`. Arrays follow NumPy where NumPy and PyTorch differ and
have the methods of tensors elsewhere; tensors follow PyTorch.
"""

from .._core import NDArray, Tensor
from .arithmetic import Arithmetic
from .array import ArrayMethods
from .at import Indexed
from .common import ArrayCopies, Common, TensorCopies
from .inplace import InPlace, TensorInPlace
from .named import Named
from .of_arrays import shared
from .selection import Selection
from .shapes import Shapes
from .statistics import Statistics
from .tensor import OnlyTensors, TensorMethods
from .tools import adopt, members
from .ufuncs import NumpyFunctions

_ARITHMETIC = (Arithmetic, Shapes, Selection, Statistics, TensorMethods)
_OF_ARRAYS = (Common, ArrayMethods, NumpyFunctions, Indexed, Named, InPlace, ArrayCopies)
OF_ARRAYS = (*_OF_ARRAYS, shared(_ARITHMETIC, _OF_ARRAYS))
OF_TENSORS = (
    Common,
    *_ARITHMETIC,
    OnlyTensors,
    NumpyFunctions,
    Indexed,
    Named,
    InPlace,
    TensorInPlace,
    TensorCopies,
)

adopt(NDArray, *OF_ARRAYS, instead=("to",))
adopt(Tensor, *OF_TENSORS, instead=("flip", "size"))

__all__ = ["OF_ARRAYS", "OF_TENSORS", "Arithmetic", "Indexed", "Named", "members"]
