# SPDX-License-Identifier: Apache-2.0
"""Where the compiled extension is, and how it is compiled."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys

import torch

NAME = "weft_torch_device"
SOURCES = sorted((pathlib.Path(__file__).parent / "csrc").glob("*.cpp"))


def folder():
    """The folder of the extension for this torch, this Python and these sources."""
    base = os.environ.get("WEFT_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "weft"
    )
    digest = hashlib.sha256()
    for source in [*SOURCES, SOURCES[0].parent / "weft_device.h"]:
        digest.update(source.read_bytes())
    tag = f"torch-{torch.__version__}-{sys.implementation.cache_tag}-{digest.hexdigest()[:12]}"
    return pathlib.Path(base) / "torch" / tag


def library():
    return folder() / f"{NAME}.so"


def open_library():
    """The compiled module."""
    path = str(library())
    loader = importlib.machinery.ExtensionFileLoader(NAME, path)
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def build(verbose=False):
    """Compiles the extension with torch.utils.cpp_extension; gives the file. Raises weft.Error with the compiler's words."""
    import weft

    from ..._errors import error as _error

    where = folder()
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        from torch.utils import cpp_extension

        cpp_extension.load(
            NAME,
            [str(s) for s in SOURCES],
            extra_cflags=["-O1", "-fvisibility=hidden"],
            build_directory=str(where),
            verbose=verbose,
            is_python_module=False,
        )
    except (RuntimeError, ImportError, OSError) as refusal:
        lines = str(refusal).strip().splitlines()
        raise _error(
            weft.Error,
            "torch.device.build",
            f"the extension for torch {torch.__version__} does not compile: {lines[0] if lines else type(refusal).__name__}",
            [line for line in lines[1:] if "error" in line][:4],
            help="it needs g++, ninja and the headers of Python; python -m weft.torch.build --verbose shows the commands",
        ) from None
    return library()
