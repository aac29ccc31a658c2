# SPDX-License-Identifier: Apache-2.0
"""The commands `cslc` and `cs_python`, with the Cerebras SDK's options."""

from __future__ import annotations

import pathlib
import runpy
import sys

from weft_wse.compiler import cslc_main

from ._script import run_script

__all__ = ["add_sdk_modules", "cs_python_main", "cslc_main"]


def _compat_root() -> pathlib.Path | None:
    here = pathlib.Path(__file__).resolve().parent
    for root in (
        here / "compat",
        here.parent.parent / "compat" / "cerebras",
        here.parent.parent.parent / "compat" / "cerebras",
    ):
        if (root / "cerebras").is_dir():
            return root
    return None


def add_sdk_modules() -> None:
    """Makes `import cerebras...` find the SDK's names."""
    if (root := _compat_root()) is not None:
        sys.path.insert(0, str(root))


def cs_python_main(argv: list[str] | None = None) -> int:
    """Runs a Python script with the SDK's modules on the path: `cs_python run.py --name out`. With
    `--perturb SEED` before the script: once for every order of ready tasks; says whether its output differs."""
    args = sys.argv[1:] if argv is None else list(argv)
    if len(args) > 2 and args[0] == "--perturb":
        from weft._wse_perturb import of_script

        try:
            return of_script(int(args[1]), args[2:])
        except ValueError:
            print(f"cs_python: --perturb wants a number, not {args[1]!r}", file=sys.stderr)
            return 2
    add_sdk_modules()
    if not args:
        print("usage: cs_python script.py [arguments]", file=sys.stderr)
        return 2
    if args[0] == "-c" and len(args) > 1:
        sys.argv = ["-c", *args[2:]]
        sys.path.insert(0, "")
        exec(compile(args[1], "<string>", "exec"), {"__name__": "__main__"})
        return 0
    if args[0] == "-m" and len(args) > 1:
        sys.argv = args[1:]
        sys.path.insert(0, "")
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        return 0
    if not pathlib.Path(args[0]).is_file():
        print(f"cs_python: there is no file {args[0]!r}", file=sys.stderr)
        return 2
    return run_script(args)
