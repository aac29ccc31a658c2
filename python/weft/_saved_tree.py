# SPDX-License-Identifier: Apache-2.0
"""Dicts, lists and numbers around arrays, as a checkpoint has them: named arrays, and one more that holds the tree as JSON."""

from __future__ import annotations

import json

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error

_NAME = "weft.tree"
_PLAIN = (bool, int, float, str, type(None))


def flat(saved):
    """Named arrays of a dict; where it holds more than those, the tree beside them."""
    if all(isinstance(k, str) and _is_array(v) for k, v in saved.items()):
        return saved
    arrays = {}
    text = json.dumps(_taken(saved, "", arrays))
    arrays[_NAME] = _core._from_bytes(text.encode(), (len(text),), _core.dtype("uint8"))
    return arrays


def restored(arrays):
    """What `flat` was given, of the arrays that a file has; an array, or a dict without a tree, as it is."""
    if not isinstance(arrays, dict) or _NAME not in arrays:
        return arrays
    try:
        return _given(json.loads(_core._to_bytes(arrays[_NAME])), arrays)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise _error(
            "io",
            "io.tree",
            f'the file\'s array "{_NAME}" describes no dict of its arrays',
            help="write the file again, or read its arrays with weft.load_arrays",
        ) from None


def _is_array(x):
    return isinstance(x, (NDArray, Tensor)) or hasattr(x, "__array__")


def _taken(x, at, arrays):
    """x as JSON: a pair of a kind and its content."""
    if isinstance(x, _PLAIN):
        return ["value", x]
    if isinstance(x, dict):
        parts = [(k, _taken(v, f"{at}.{k}" if at else str(k), arrays)) for k, v in x.items()]
        return ["dict", [[_taken(k, at, arrays), v] for k, v in parts]]
    if isinstance(x, (list, tuple)):
        kind = "list" if isinstance(x, list) else "tuple"
        return [kind, [_taken(v, f"{at}.{i}", arrays) for i, v in enumerate(x)]]
    if not _is_array(x):
        raise _error(
            "dtype",
            "io.save.type",
            f"{at or 'the value'} is a {type(x).__name__}, which is neither an array nor data",
            notes=[
                "a file holds arrays, numbers, texts, None, and dicts, lists and tuples of them"
            ],
            help="save its state: model.state_dict(), optimizer.state_dict()",
        )
    while at in arrays or at == _NAME:
        at += "_"
    arrays[at] = x
    return ["array", at]


def _given(node, arrays):
    kind, content = node
    if kind == "value":
        return content
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {_given(k, arrays): _given(v, arrays) for k, v in content}
    parts = [_given(v, arrays) for v in content]
    return {"list": list, "tuple": tuple}[kind](parts)
