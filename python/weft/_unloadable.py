# SPDX-License-Identifier: Apache-2.0
"""Why weft's compiled part does not load, and what to do. Nothing of weft exists then, its errors included."""

import pathlib
import platform
import re
import sys


def _builds():
    """The Pythons for which the package's folder holds a compiled part, such as "3.11"."""
    here = pathlib.Path(__file__).parent
    tags = (re.search(r"cpython-(\d)(\d+)", p.name) for p in sorted(here.glob("_core.*.so")))
    return [f"{tag[1]}.{tag[2]}" for tag in tags if tag]


def refusal(raised):
    """An ImportError with a way out for an ImportError of weft._core."""
    this = "{}.{}".format(*sys.version_info[:2])
    build = "build weft here: ./demo in a source tree, or pip install ."
    if asked := re.search(r"version `((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found", str(raised)):
        libc = " ".join(platform.libc_ver()).strip() or "another C library"
        text = (
            f"this weft was built for a newer system: it asks for {asked[1]}, and here is {libc}\n"
            "  rule: wheels need glibc 2.34 or newer (Debian 12, Ubuntu 22.04, RHEL 9)\n"
            f"  help: use a newer system, or {build}"
        )
    elif isinstance(raised, ModuleNotFoundError) and raised.name == "weft._core":
        others = _builds()
        if others and this not in others:
            text = (
                f"this weft was built for Python {' and '.join(others)}, and this is Python {this}\n"
                f"  help: start it with python{others[0]}, or {build}"
            )
        elif others:  # for this version, but another processor or system
            text = f"this weft was built for another machine than {platform.machine()}\n  help: {build}"
        else:
            text = (
                f"weft's compiled part is not in {pathlib.Path(__file__).parent}\n  help: {build}"
            )
    else:
        return raised
    return ImportError(f"weft cannot be loaded: {text}\n  found: {raised}", name="weft._core")
