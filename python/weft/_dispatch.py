# SPDX-License-Identifier: Apache-2.0
"""Public functions given values that are no arrays: traced ones (weft.compile) and batched ones (weft.vmap).

While a transform is at work the public functions are replaced by ones that look for such values among their arguments
and leave the call to the innermost of them (``Recorder.__weft_call__``). At other times the functions are untouched.
A name that was bound before (``from weft import argmax``) still means the function itself: when that refuses such a
value, the call goes to the replacement (``dispatched_late``).
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types

from . import _core
from ._boundary import is_function

_MODULES = ("weft", "weft.linalg", "weft.fft", "weft.special", "weft.nn.functional", "weft.random")
_INSIDE = (
    "weft.nn.",
    "weft._namespace.",
)  # modules that hold public functions under their own names


class Recorder:
    """A value that takes the calls of public functions on itself; the highest level among arguments does."""

    __slots__ = ()
    __weft_level__ = -1

    def __weft_call__(self, name, function, args, kwargs):
        raise NotImplementedError


def _entries(tree):
    """An iterator over what a list, tuple, slice or mapping holds; None of anything else."""
    if isinstance(tree, dict):
        return iter(tree.values())
    if isinstance(tree, slice):
        return iter((tree.start, tree.stop, tree.step))
    return iter(tree) if isinstance(tree, (list, tuple)) else None


def leaves_of(tree, kind):
    """Values of a class in nested lists, tuples, slices and mappings of any depth; what contains itself is looked at once."""
    rows, path, above = [iter((tree,))], [0], {0}
    while rows:
        for t in rows[-1]:
            if isinstance(t, kind):
                yield t
                continue
            inner = _entries(t)
            if inner is not None and id(t) not in above:
                rows.append(inner)
                path.append(id(t))
                above.add(id(t))
                break
        else:
            rows.pop()
            above.discard(path.pop())


def leaves_once(tree, kind):
    """As leaves_of, in another order; a list that stands in many places is looked at once."""
    trees, seen = [tree], set()
    while trees:
        tree = trees.pop()
        if isinstance(tree, kind):
            yield tree
            continue
        inner = _entries(tree)
        if inner is not None and id(tree) not in seen:
            seen.add(id(tree))
            trees.extend(inner)


def first_leaf(tree, kind):
    """Some value of a class in a tree, or None."""
    return next(leaves_once(tree, kind), None)


def mapped(tree, kind, change):
    """The same tree with other values in place of those of a class."""
    if isinstance(tree, kind):
        return change(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(t, kind, change) for t in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(t, kind, change) for t in tree)
    if isinstance(tree, dict):
        return {k: mapped(t, kind, change) for k, t in tree.items()}
    if isinstance(tree, slice):
        return slice(*(mapped(t, kind, change) for t in (tree.start, tree.stop, tree.step)))
    return tree


def whole(function, public=""):
    """A function of arrays that hosts run in one pass: inside a compiled function of arrays it runs as it is, between two pieces;
    a method by its public name."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if args and type(args[0]) is not _core.NDArray:
            first = first_leaf((args, kwargs), Recorder)
            island = getattr(first, "whole", None)
            if island is not None:
                runs = getattr(sys.modules["weft"], public) if public else call
                if (found := island(function.__name__, runs, args, kwargs)) is not None:
                    return found
        return function(*args, **kwargs)

    return call


_lock = threading.RLock()
_depth = 0
_seen: set = set()  # modules whose functions are listed
_public: dict = {}  # id of a function -> (the function, its wrapper)
_wrapper_of: dict = {}  # id of the Python function inside a public one -> the public one's wrapper
_places: list = []  # (module, name, function, wrapper)
draws = (
    threading.local()
)  # .take(name, function, args, kwargs) where random numbers depend on the transform
_calls = threading.local()  # .functions that recorders are at work on in this thread


def _inside(function):
    """The Python function in a public one."""
    return getattr(function, "__wrapped__", function)


def _recorded(recorder, name, function, args, kwargs):
    """The recorder's answer; what refuses the recorder on the way there is not dispatched again."""
    functions = _calls.__dict__.setdefault("functions", [])
    functions.append(_inside(function))
    try:
        return recorder.__weft_call__(name, function, args, kwargs)
    finally:
        functions.pop()


def dispatched_late(function, args, kwargs):
    """The result, in a tuple, of a call that has refused values of a transform under a name from before it; None of other calls."""
    if not _depth:
        return None
    wrapper = _wrapper_of.get(id(function))
    if wrapper is None or any(f is function for f in getattr(_calls, "functions", ())):
        return None
    if first_leaf((args, kwargs), Recorder) is None:
        return None
    return (wrapper(*args, **kwargs),)


def _wrapper(name, function, random):
    @functools.wraps(function)
    def call(*args, **kwargs):
        innermost = max(
            leaves_once((args, kwargs), Recorder), key=lambda v: v.__weft_level__, default=None
        )
        if innermost is not None:
            return _recorded(innermost, name, function, args, kwargs)
        if random and (take := getattr(draws, "take", None)):
            return take(name, function, args, kwargs)
        return function(*args, **kwargs)

    call.__weft_public__ = function
    return call


def _plain(name, function):
    callable_ = is_function(function) or isinstance(function, types.BuiltinFunctionType)
    native = type(function).__name__ == "nb_func"
    return (
        (callable_ or native)
        and not name.startswith("_")
        and getattr(function, "__module__", "").split(".")[0] == "weft"
        and not getattr(function, "__weft_transform__", False)
    )


def dispatching(function):
    """A public function as it is while transforms are at work."""
    return _public.get(id(function), (None, function))[1]


def _list_functions():
    """Fills the tables; a module is read once."""
    import importlib

    for path in _MODULES:
        if path in _seen:
            continue
        _seen.add(path)
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", None) or dir(module):
            function = vars(module).get(name)
            if name == "compile" or not _plain(name, function):
                continue
            if id(function) not in _public:
                random = path == "weft.random" and name not in ("key", "split", "seed")
                _public[id(function)] = function, _wrapper(name, function, random)
                _wrapper_of[id(_inside(function))] = _public[id(function)][1]
            _places.append((module, name, *_public[id(function)]))
    for path, module in list(sys.modules.items()):
        if not path.startswith(_INSIDE) or path in _seen or module is None:
            continue
        _seen.add(path)
        for name, function in list(vars(module).items()):
            if id(function) in _public and _public[id(function)][0] is function:
                _places.append((module, name, *_public[id(function)]))


@contextlib.contextmanager
def public_functions_dispatch():
    """While this is entered, public functions leave calls on recorders to them."""
    global _depth
    with _lock:
        if _depth == 0:
            _list_functions()
            for module, name, _, wrapper in _places:
                setattr(module, name, wrapper)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for module, name, function, _ in _places:
                    setattr(module, name, function)
