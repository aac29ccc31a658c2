# SPDX-License-Identifier: Apache-2.0
"""The command `cs_python`. A script of the SDK wants `weft.wse` and few others of weft's modules: the package's own
contents (arrays, functions, compilers) are imported when somebody asks for one of them."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import runpy
import sys
import threading
import types

_BESIDE = pathlib.Path(__file__).resolve().parent.parent  # the folder that holds weft and weft_wse


class _Later(types.ModuleType):
    """The package `weft` before its own text has run: modules within it can be imported, and whatever else is asked
    for runs the text."""

    def __getattr__(self, name: str):
        private = name.startswith("_") and not name.startswith("__")
        if private and importlib.util.find_spec(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        with _lock:
            if self in _started:
                # Within the text, or it has run meanwhile.
                return types.ModuleType.__getattribute__(self, name)
            _started.append(self)
            try:
                self.__spec__.loader.exec_module(self)
            except BaseException:
                _started.remove(self)
                raise
            self.__class__ = types.ModuleType
        return getattr(self, name)


_lock = threading.RLock()
_started: list[types.ModuleType] = []


def _postpone(name: str) -> None:
    """Lets `import name` be done later, unless it has been done."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Later
    sys.modules[name] = module


def _compat_root() -> pathlib.Path | None:
    for root in (
        _BESIDE / "weft" / "compat",
        _BESIDE / "compat" / "cerebras",
        _BESIDE.parent / "compat" / "cerebras",
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
    _postpone("weft")
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
    from weft._script import run_script

    return run_script(args)
