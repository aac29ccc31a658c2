# SPDX-License-Identifier: Apache-2.0
"""VTA from Python: the machine's numbers, operators to build, listings.

>>> env = weft.vta.env()                    # or "4x8x8", "pynq", "my/vta_config.json", a dict
>>> env.BATCH, env.BLOCK_IN, env.BLOCK_OUT, env.acc_dtype
(1, 16, 16, 'int32')

Operators (``weft.vta.op``) are plain tensor expressions over row-major arrays; ``weft.build(f, target=env.target)``
packs, tiles and schedules them.
"""

from __future__ import annotations


import atexit as _atexit
import json as _json
import os as _os
from typing import Any as _Any

from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from . import _core
from . import vta_c as c  # noqa: F401
from . import vta_net as net  # noqa: F401
from . import vta_op as op  # noqa: F401
from . import vta_picture as picture  # noqa: F401
from .vta_quantize import quantize  # noqa: F401
from .vta_schedule import default_schedule, pack  # noqa: F401

_KEYS = {
    "BATCH": "batch",
    "BLOCK_IN": "block_in",
    "BLOCK_OUT": "block_out",
    "INP_WIDTH": "inp_width",
    "WGT_WIDTH": "wgt_width",
    "ACC_WIDTH": "acc_width",
    "OUT_WIDTH": "out_width",
    "UOP_BUFF_SIZE": "uop_bytes",
    "INP_BUFF_SIZE": "inp_bytes",
    "WGT_BUFF_SIZE": "wgt_bytes",
    "ACC_BUFF_SIZE": "acc_bytes",
}

SAMPLES = ("pynq", "ultra96", "de10", "sim", "4x8x8", "1x32x32")


def _temporary(name, values):
    """The path of a JSON file that lives as long as this process: a device's name names files."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="weft-vta-")
    _atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = _os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        _json.dump(values, file, sort_keys=True)
    return path


class Environment:
    """One configuration: BATCH, BLOCK_IN, BLOCK_OUT, *_WIDTH (bits), *_BUFF_SIZE (bytes), *_ELEM_BYTES,
    *_dtype, *_scope, gemm (the intrinsic for tensorize), target (for weft.build and weft.device), TARGET, clock_hz."""

    BATCH: int
    BLOCK_IN: int
    BLOCK_OUT: int
    INP_WIDTH: int
    WGT_WIDTH: int
    ACC_WIDTH: int
    OUT_WIDTH: int
    UOP_BUFF_SIZE: int
    INP_BUFF_SIZE: int
    WGT_BUFF_SIZE: int
    ACC_BUFF_SIZE: int
    target: str
    clock_hz: float
    inp_scope, wgt_scope, acc_scope = "vta.inp", "vta.wgt", "vta.acc"
    dma_copy, alu = "dma_copy", "vta.alu"

    def __init__(self, target: _Any, name: str) -> None:
        limits = _core.target_limits(target)
        self.target, self.TARGET = target, name
        for ours, theirs in _KEYS.items():
            setattr(self, ours, limits[theirs])
        self.clock_hz = limits["clock_hz"]
        shape = (self.BATCH, self.BLOCK_OUT, self.BLOCK_IN)  # the intrinsic for sch.tensorize
        self.gemm = "vta.gemm" if shape == (1, 16, 16) else "vta.gemm.{}x{}x{}".format(*shape)
        self.inp_dtype = f"int{self.INP_WIDTH}"
        self.wgt_dtype = f"int{self.WGT_WIDTH}"
        self.acc_dtype = f"int{self.ACC_WIDTH}"
        self.out_dtype = f"int{self.OUT_WIDTH}"
        self.INP_ELEM_BYTES = self.BATCH * self.BLOCK_IN * self.INP_WIDTH // 8
        self.WGT_ELEM_BYTES = self.BLOCK_OUT * self.BLOCK_IN * self.WGT_WIDTH // 8
        self.ACC_ELEM_BYTES = self.BATCH * self.BLOCK_OUT * self.ACC_WIDTH // 8
        self.OUT_ELEM_BYTES = self.BATCH * self.BLOCK_OUT * self.OUT_WIDTH // 8

    @property
    def peak_ops(self) -> float:
        """Operations a second of the matrix unit: 2 x BATCH x BLOCK_IN x BLOCK_OUT x clock."""
        return 2 * self.BATCH * self.BLOCK_IN * self.BLOCK_OUT * self.clock_hz

    def device(self, **options: _Any) -> "_core.Device":
        """The simulator of this configuration; options as in a device name (engine, strict, mode, memory, timing).
        `timing`: parameters of the cycle model, {"latency": 100}, or the path of a JSON file of them.
        Raises weft.Error (vta.option.*, vta.timing.*)."""
        text = self.target
        if isinstance(options.get("timing"), dict):
            options["timing"] = _temporary("timing.json", options["timing"])
        for key, value in options.items():
            text += ("," if ":" in text else ":") + f"{key}={value}"
        return _core.open_device(text)

    def describe(self) -> str:
        """Three lines of dimensions and three of throughput."""
        return (
            f"Weights are {self.BLOCK_OUT} by {self.BLOCK_IN}, of type {self.wgt_dtype}\n"
            f"Input activations are {self.BATCH} by {self.BLOCK_IN}, of type {self.inp_dtype}\n"
            f"Output activations are {self.BATCH} by {self.BLOCK_OUT}, of type {self.acc_dtype}\n"
            "Weight buffer requires "
            f"{self.BLOCK_OUT * self.BLOCK_IN * self.WGT_WIDTH} bits per cycle of read xput\n"
            "Input buffer requires "
            f"{self.BATCH * self.BLOCK_IN * self.INP_WIDTH} bits per cycle of read xput\n"
            "Register file requires "
            f"{self.BATCH * self.BLOCK_OUT * self.ACC_WIDTH} bits per cycle of read & write xput"
        )

    def __repr__(self):
        return f"weft.vta.env({self.TARGET!r}: {self.BATCH}x{self.BLOCK_IN}x{self.BLOCK_OUT})"


def env(config: "str | _os.PathLike[str] | dict[str, _Any] | None" = None) -> Environment:
    """The numbers of a configuration: None (the default machine), a sample's name, a path to a vta_config.json in
    upstream's format, or its contents as a dict. Raises weft.Error (vta.config.*) when they contradict themselves."""
    if config is None:
        return Environment("vta", "sim")
    if isinstance(config, dict):
        path = _temporary("vta_config.json", config)
        return Environment(f"vta:{path}", config.get("TARGET", "sim"))
    text = str(config)
    if text in SAMPLES:
        return Environment(f"vta:{text}", text)
    target = f"vta:{_os.path.abspath(text)}" if _os.sep in text or "." in text else f"vta:{text}"
    out = Environment(target, text)
    with open(text, encoding="utf-8") as file:
        out.TARGET = _json.load(file).get("TARGET", "sim")
    return out


_publish(__name__)
_publish_classes(__name__)
