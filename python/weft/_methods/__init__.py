# SPDX-License-Identifier: Apache-2.0
"""The methods of arrays and tensors that are written in Python. The core has the others.

Classes hold them, each method once; `adopt` gives them to the types of the core, and the traced values of weft.compile
inherit `Arithmetic`. Arrays follow NumPy where NumPy and PyTorch differ, tensors follow PyTorch.
"""

from .._core import NDArray, Tensor
from .arithmetic import Arithmetic
from .array import ArrayMethods
from .common import ArrayCopies, Common, TensorCopies
from .inplace import InPlace, TensorInPlace
from .selection import Selection
from .shapes import Shapes
from .statistics import Statistics
from .tensor import TensorMethods
from .tools import adopt, members

OF_ARRAYS = (Common, ArrayMethods, InPlace, ArrayCopies)
OF_TENSORS = (
    *(Common, Arithmetic, Shapes, Selection, Statistics, TensorMethods),
    *(InPlace, TensorInPlace, TensorCopies),
)

adopt(NDArray, *OF_ARRAYS)
adopt(Tensor, *OF_TENSORS, instead=("flip",))

__all__ = ["OF_ARRAYS", "OF_TENSORS", "Arithmetic", "members"]
