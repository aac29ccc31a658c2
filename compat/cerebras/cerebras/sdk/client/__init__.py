# SPDX-License-Identifier: Apache-2.0
"""The compiler and runtime classes that appliance scripts use, on the fabric simulator."""

from __future__ import annotations

import os
import shlex

from weft import wse as _wse
from weft._wse_library import value_error as _value_error

__all__ = ["SdkCompiler", "SdkRuntime"]


class SdkCompiler:
    """Compiles programs; a context manager, as on the appliance."""

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def compile(self, app_path, csl_main, options="", out_path="."):
        """Runs cslc on `csl_main` of the folder `app_path`; returns the artifact directory, which lies in
        `out_path`. Raises ValueError (wse.client.compile) where the program does not compile."""
        from weft.wse_tools import cslc_main

        arguments = shlex.split(options)
        out = "out"
        for k, a in enumerate(arguments):
            if a == "-o" and k + 1 < len(arguments):
                out = arguments[k + 1]
            elif a.startswith("-o"):
                out = a[2:].lstrip("=")
        target = os.path.abspath(os.path.join(out_path, out))
        main = os.path.join(os.fspath(app_path), os.fspath(csl_main))
        if cslc_main([*arguments, main, "-o", target]) != 0:
            raise _value_error("wse.client.compile", f"{main} does not compile with {options!r}")
        return target


class SdkRuntime(_wse.SdkRuntime):
    """The host's side of a compiled program; a context manager that loads, runs and stops it."""

    def __init__(self, artifact, *, simulator: bool = False, **options):
        if not simulator:
            raise _value_error(
                "wse.client.system", f"{artifact} asks for a system; pass simulator=True", "device"
            )
        super().__init__(artifact, **options)

    def __enter__(self):
        self.load()
        self.run()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        return False
