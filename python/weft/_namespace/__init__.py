# SPDX-License-Identifier: Apache-2.0
"""The main namespace of the array API standard 2024.12, over weft._core, one file a subject.

Elementwise functions are the rows of the operation table; what stands in the files gives the structured
functions their signatures and composes the small ones.
"""

import math as _math

from .._core import operations as _operations
from .._torch_names import understand as _understand
from .._info import __array_namespace_info__
from . import creation, elementwise, indexing, manipulation, padding, products, statistics, types
from .creation import *
from .elementwise import *
from .indexing import *
from .manipulation import *
from .padding import *
from .products import *
from .statistics import *
from .types import *

e = _math.e
pi = _math.pi
inf = _math.inf
nan = _math.nan
newaxis = None

globals().update(_operations)

__all__ = [  # noqa: PLE0604
    "__array_namespace_info__",
    "e",
    "pi",
    "inf",
    "nan",
    "newaxis",
    *_operations,
    *creation.__all__,
    *elementwise.__all__,
    *indexing.__all__,
    *manipulation.__all__,
    *padding.__all__,
    *products.__all__,
    *statistics.__all__,
    *types.__all__,
]

_understand(globals(), __all__, "weft")
