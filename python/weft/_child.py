# SPDX-License-Identifier: Apache-2.0
"""Python processes that import this same package, wherever they are started."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import sys


def environment(**more):
    """This process's variables with the folder of this package first on PYTHONPATH, and `more`.

    A relative PYTHONPATH would mean another folder in a process that starts elsewhere.
    """
    own = str(pathlib.Path(__file__).resolve().parents[1])
    rest = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([own, *rest]), **more}


def end_with_parent(parent: int) -> None:
    """Linux: this process is killed when process `parent`, which started it, ends in whatever way."""
    if sys.platform != "linux":
        return
    death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)
