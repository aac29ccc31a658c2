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
from importlib.machinery import PathFinder

_BESIDE = pathlib.Path(__file__).resolve().parent.parent  # the folder that holds weft and weft_wse


class _Later(types.ModuleType):
    """A module before its own text has run: whatever is asked for runs the text."""

    def __getattr__(self, name: str):
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

    def __dir__(self):
        getattr(self, "__all__", None)
        return types.ModuleType.__dir__(self)


class _LaterPackage(_Later):
    """The package `weft`: modules within it can be imported without running its text."""

    def __getattr__(self, name: str):
        private = name.startswith("_") and not name.startswith("__")
        if private and importlib.util.find_spec(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        return super().__getattr__(name)


_lock = threading.RLock()
_started: list[types.ModuleType] = []


def _postpone(name: str) -> None:
    """Lets `import name` be done later, unless it has been done."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _LaterPackage
    sys.modules[name] = module


class _LaterLoader:
    """Loads a module whose text runs when something of it is asked for."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        module.__class__ = _Later


class _Loaded:
    """Stands for the loading of a module that its package has loaded meanwhile."""

    def __init__(self, module):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module) -> None:
        module.__spec__ = self._spec


class _SeldomUsed:
    """Finds those parts of NumPy that few scripts use, though `import numpy` runs them all: a quarter of its time."""

    NAMES = frozenset(
        f"numpy.{part}" for part in ("ctypeslib", "fft", "ma", "polynomial", "random")
    )

    @classmethod
    def find_spec(cls, name, path, target=None):
        if name in cls.NAMES:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _LaterLoader(spec.loader)
            return spec
        package = name.rpartition(".")[0]
        # A module within such a part: the part's text first, as ever. If another thread is at it, that one will want
        # this module, so it must not be waited for here.
        if package in cls.NAMES and _lock.acquire(blocking=False):
            try:
                getattr(sys.modules.get(package), "__all__", None)
            finally:
                _lock.release()
            if (module := sys.modules.get(name)) is not None:
                return importlib.util.spec_from_loader(name, _Loaded(module))
        return None


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
    if "numpy" not in sys.modules and _SeldomUsed not in sys.meta_path:
        sys.meta_path.insert(0, _SeldomUsed)
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
