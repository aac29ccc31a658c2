# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def polyadd(c1: Any, c2: Any) -> NDArray:
    """The sum."""
def polycompanion(c: Any) -> NDArray:
    """The companion matrix, whose eigenvalues are the zeros."""
def polyder(c: Any, m: Any = 1, scl: Any = 1) -> NDArray:
    """The m-th derivative, times scl for each."""
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None) -> NDArray:
    """Coefficients of ascending powers with the least sum of squares through the points; deg: the degree, or the powers to use."""
def polyfromroots(roots: Any) -> NDArray:
    """Coefficients of the polynomial with these zeros and 1 at the highest power."""
def polyint(c: Any, m: Any = 1, k: Any = ..., lbnd: Any = 0, scl: Any = 1) -> NDArray:
    """The m-th integral from lbnd on, times scl for each; k: its constants."""
def polymul(c1: Any, c2: Any) -> NDArray:
    """The product."""
def polypow(c: Any, pow: Any, maxpower: Any = 16) -> NDArray:
    """The polynomial to a whole power."""
def polyroots(c: Any) -> NDArray:
    """The zeros, ascending; complex where one is."""
def polysub(c1: Any, c2: Any) -> NDArray:
    """The difference."""
def polyval(x: Any, c: Any) -> NDArray:
    """The polynomial with coefficients c of ascending powers at x."""
def polyvander(x: Any, deg: Any) -> NDArray:
    """Powers 0 to deg of x along a new last axis."""
def polydiv(c1: Any, c2: Any) -> tuple[NDArray, NDArray]:
    """(quotient, rest)."""
class Polynomial:
    def __init__(self, coef: Any, domain: Any = None, window: Any = None, symbol: Any = 'x') -> None: ...
    coef: Any
    domain: NDArray
    window: NDArray
    symbol: str
    def mapparms(self) -> Any:
        """(offset, scale) with which x is taken from the domain to the window."""
    def __call__(self, x: Any) -> Any: ...
    @classmethod
    def fit(cls: Any, x: Any, y: Any, deg: Any, domain: Any = None, rcond: Any = None, full: Any = False, w: Any = None, window: Any = None, symbol: Any = 'x') -> Polynomial:
        """The least sum of squares through the points; the domain is from the least x to the largest."""
    @classmethod
    def fromroots(cls: Any, roots: Any, domain: Any = None, window: Any = None, symbol: Any = 'x') -> Polynomial:
        """With these zeros."""
    @classmethod
    def identity(cls: Any, domain: Any = None, window: Any = None, symbol: Any = 'x') -> Polynomial:
        """p(x) = x."""
    @classmethod
    def basis(cls: Any, deg: Any, domain: Any = None, window: Any = None, symbol: Any = 'x') -> Polynomial:
        """The power deg alone."""
    def degree(self) -> Any:
        """The highest power."""
    def copy(self) -> Polynomial:
        """The same polynomial."""
    def trim(self, tol: Any = 0) -> Polynomial:
        """Without last coefficients of magnitude up to tol."""
    def truncate(self, size: Any) -> Polynomial:
        """The first coefficients."""
    def convert(self, domain: Any = None, kind: _DType | str | tuple[_DType | str, ...] | None = None, window: Any = None) -> Polynomial:
        """The same function in another domain and window, by themselves [-1, 1]."""
    def deriv(self, m: Any = 1) -> Polynomial:
        """The m-th derivative."""
    def integ(self, m: Any = 1, k: Any = ..., lbnd: Any = None) -> Polynomial:
        """The m-th integral, from lbnd on (0 of the domain by itself)."""
    def roots(self) -> Any:
        """The zeros, ascending; complex where one is."""
    def linspace(self, n: int = 100, domain: Any = None) -> Any:
        """(x, p(x)) at n places of the domain."""
    def __add__(self, other: Any) -> Polynomial: ...
    def __sub__(self, other: Any) -> Polynomial: ...
    def __rsub__(self, other: Any) -> Polynomial: ...
    def __mul__(self, other: Any) -> Polynomial: ...
    def __radd__(self, other: Any) -> Polynomial: ...
    def __rmul__(self, other: Any) -> Polynomial: ...
    def __truediv__(self, other: Any) -> Polynomial: ...
    def __floordiv__(self, other: Any) -> Polynomial: ...
    def __mod__(self, other: Any) -> Polynomial: ...
    def __pow__(self, n: int) -> Polynomial: ...
    def __neg__(self) -> Polynomial: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...

