# SPDX-License-Identifier: Apache-2.0
"""Runs a user's script in this process as Python would, with tracebacks that show the script's own frames."""

from __future__ import annotations

import os
import pathlib
import runpy
import sys
import traceback

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = (_HERE + os.sep, _HERE + "_wse" + os.sep)
_SDK = os.sep.join(("compat", "cerebras", "")) + "cerebras" + os.sep


def _is_ours(filename: str) -> bool:
    path = os.path.abspath(filename)
    return (
        filename.startswith("<frozen")
        or path == os.path.abspath(runpy.__file__)
        or path.startswith(_PACKAGES)
        or _SDK in path
    )


def own_frames(error: BaseException) -> str:
    """The traceback without frames of weft, of the SDK's names and of what starts the script. All frames stay where
    none is the user's."""
    shown = traceback.TracebackException.from_exception(error)
    pending, seen = [shown], set()
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        kept = [frame for frame in part.stack if not _is_ours(frame.filename)]
        if kept:
            part.stack = traceback.StackSummary.from_list(kept)
        pending += [part.__cause__, part.__context__]
    return "".join(shown.format())


def run_script(arguments: list[str]) -> int:
    """Runs the script `arguments[0]` with the others as its arguments; 1 where it raised, after printing that."""
    script = pathlib.Path(arguments[0])
    sys.argv = list(arguments)
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  (what Python prints for any of them)
        from ._debug import has_quit

        if has_quit(error):
            return 0
        print(own_frames(error), end="", file=sys.stderr)
        return 1
    return 0
