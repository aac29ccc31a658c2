# SPDX-License-Identifier: Apache-2.0
"""The compiler and runtime classes that appliance scripts use, on the fabric simulator."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from weft import wse as _wse
from weft._boundary import publish_own_classes as _publish_own_classes
from weft._wse_library import value_error as _value_error
from weft.wse import Task

__all__ = ["SdkCompiler", "SdkLauncher", "SdkRuntime", "Task"]


_CODE = "codedir.json"  # in an artifact directory: the folder that the program was compiled from


def _want_simulator(artifact, simulator: bool) -> None:
    if not simulator:
        raise _value_error(
            "wse.client.system", f"{artifact} asks for a system; pass simulator=True", "device"
        )


class SdkCompiler:
    """Compiles programs; a context manager, as on the appliance."""

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def compile(
        self,
        app_path=".",
        csl_main="layout.csl",
        options="",
        out_path=".",
        *,
        codedir=None,
        layout=None,
        args=None,
        outdir=None,
    ):
        """Runs cslc on `csl_main` of the folder `app_path`; returns the artifact directory, which lies in
        `out_path` and says where the program's folder is. The reference of SDK 2.10 calls the four codedir, layout,
        args and outdir. Raises ValueError (wse.client.compile) where the program does not compile."""
        from weft.wse_tools import cslc_main

        app_path, csl_main = codedir or app_path, layout or csl_main
        options, out_path = args or options, outdir or out_path
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
        code = json.dumps({"codedir": os.path.abspath(app_path)})
        pathlib.Path(target, _CODE).write_text(code, encoding="utf-8")
        return target


class SdkRuntime(_wse.SdkRuntime):
    """The host's side of a compiled program; a context manager that loads, runs and stops it."""

    def __init__(self, artifact, *, simulator: bool = False, **options):
        _want_simulator(artifact, simulator)
        super().__init__(artifact, **options)

    def start(self) -> None:
        """Loads and runs the program; `with SdkRuntime(...)` does it by itself."""
        self.load()
        self.run()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        return False


_FOLDERS = sorted(
    {str(pathlib.Path(f).resolve().parents[k]) for f, k in ((_wse.__file__, 1), (__file__, 3))}
)
_TOOLS = {"cslc": "weft_wse.compiler", "cs_python": "weft_wse.script"}


class SdkLauncher:
    """Runs commands beside a compiled program, in a folder of their own that has the files of the program's folder,
    too; a context manager."""

    def __init__(self, artifact_path, *, simulator: bool = False, **_):
        _want_simulator(artifact_path, simulator)
        self._artifact = pathlib.Path(artifact_path).resolve()
        self._folder: tempfile.TemporaryDirectory | None = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="sdk_launcher_")
        tools = self._at(".bin")
        tools.mkdir()
        for name, module in _TOOLS.items():
            tool = tools / name
            # A command runs in another folder, where a relative PYTHONPATH names nothing.
            code = (
                f"import sys; sys.path[1:1] = {_FOLDERS!r}; "
                f"from {module} import {name}_main as m; sys.exit(m() or 0)"
            )
            start = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
            tool.write_text(f'#!/bin/sh\nexec {start} "$@"\n')
            tool.chmod(0o755)
        self._stage_code()
        self.stage(self._artifact)
        return self

    def __exit__(self, *_):
        if self._folder:
            self._folder.cleanup()
        self._folder = None
        return False

    def _at(self, name) -> pathlib.Path:
        if not self._folder:
            raise _value_error(
                "wse.client.launcher",
                "the launcher has no folder: use it as `with SdkLauncher(...) as launcher`",
            )
        return pathlib.Path(self._folder.name) / name

    def _stage_code(self) -> None:
        """What lies beside the layout file, as the host's script: hidden files and what runs have left apart."""
        try:
            code = pathlib.Path(json.loads((self._artifact / _CODE).read_text())["codedir"])
            found = sorted(code.iterdir())
        except OSError:
            return  # cslc has compiled the program, or its folder has gone
        for path in found:
            left_by_runs = path.name in ("simfab_traces", "__pycache__") or path.name[0] == "."
            if not left_by_runs and path.resolve() != self._artifact:
                self.stage(path)

    def stage(self, artifact_path) -> None:
        """Copies a file or a folder to where the commands run."""
        source = pathlib.Path(artifact_path)
        if not source.exists():
            raise _value_error("wse.client.launcher", f"there is no file {str(source)!r} to stage")
        if source.is_dir():
            shutil.copytree(source, self._at(source.name), dirs_exist_ok=True)
        else:
            shutil.copy2(source, self._at(source.name))

    def run(self, *commands: str) -> str:
        """What the shell commands print; `%CMADDR%` in them becomes the empty address, the simulator's. Raises
        ValueError (wse.client.run) where one fails."""
        path = f"{self._at('.bin')}{os.pathsep}{os.environ.get('PATH', '')}"
        printed = ""
        for command in commands:
            line = command
            for marked in ('"%CMADDR%"', "'%CMADDR%'", "%CMADDR%"):
                line = line.replace(marked, "''")
            done = subprocess.run(
                line,
                shell=True,
                cwd=self._at("."),
                env=dict(os.environ, PATH=path),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            printed += done.stdout
            if done.returncode:
                raise _value_error(
                    "wse.client.run",
                    f"{command!r} ended with status {done.returncode} and printed\n{done.stdout}",
                )
        return printed

    def download_artifact(self, artifact_name, out_path) -> str:
        """Copies a file from where the commands run, a folder as a .tar.gz; returns the name that was written."""
        source = self._at(artifact_name)
        if not source.exists():
            raise _value_error(
                "wse.client.launcher", f"the commands left no file {artifact_name!r}"
            )
        target = pathlib.Path(out_path)
        if target.is_dir():
            target = target / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            return shutil.make_archive(str(target), "gztar", source.parent, source.name)
        return str(shutil.copy2(source, target))


_publish_own_classes(__name__)
