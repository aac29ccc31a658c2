# SPDX-License-Identifier: Apache-2.0
"""For tests with whole CSL programs: a layout of W x H PEs, and a machine with copies by the names of exported pointers."""

import numpy as np
import pytest
from test_wse_programs import wse

ROW = wse.MemcpyOrder.ROW_MAJOR
COLUMN = wse.MemcpyOrder.COL_MAJOR
ARCHS = ["wse2", "wse3"]
both = pytest.mark.parametrize("arch", ARCHS)


def layout(exports, config="", params="", binding=""):
    """A layout of W x H PEs of one program; `exports` as (name, type, mutable) or (name, function type)."""
    names = "".join(
        f'@export_name("{e[0]}", {e[1]}{", " + str(e[2]).lower() if len(e) > 2 else ""});\n'
        for e in exports
    )
    return f"""
param W: u16; param H: u16; {params}
const memcpy = @import_module("<memcpy/get_params>", .{{ .width = W, .height = H }});
layout {{
  @set_rectangle(W, H);
  for (@range(u16, W)) |x| {{ for (@range(u16, H)) |y| {{
    @set_tile_code(x, y, "pe.csl", .{{ .memcpy_params = memcpy.get_params(x), {binding} }});
    {config}
  }} }}
  {names}
}}"""


def _how(data_type):
    return dict(streaming=False, order=ROW, data_type=data_type, nonblock=False)


class Machine:
    """A program that was compiled and loaded on W x H PEs; copies by names of exported pointers."""

    def __init__(self, folder, arch, files, w=1, h=1, params=None, sdk="detect", **options):
        for name, text in files.items():
            (folder / name).write_text(text)
        self.out = str(folder / "out")
        self.built = wse.compile_csl(
            str(folder / "layout.csl"),
            self.out,
            arch=arch,
            fabric_dims=(w + 7, h + 2),
            fabric_offsets=(4, 1),
            params={"W": w, "H": h, **(params or {})},
            memcpy=True,
            sdk_version=sdk,
        )
        assert not self.built["warnings"], self.built["warnings"]
        self.w, self.h = w, h
        self.start(**options)

    def start(self, **options):
        """Loads the program anew."""
        self.runner = wse.SdkRuntime(self.out, **options)
        self.runner.load()
        self.runner.run()

    def put(self, name, values, order=ROW):
        """`values` [h, w, n] of 32 bits."""
        data = np.ascontiguousarray(values)
        assert data.dtype.itemsize == 4
        n = data.size // (self.w * self.h)
        self.runner.memcpy_h2d(
            self.runner.get_id(name),
            data.ravel(),
            0,
            0,
            self.w,
            self.h,
            n,
            streaming=False,
            order=order,
            data_type=wse.MemcpyDataType.MEMCPY_32BIT,
            nonblock=False,
        )

    def get(self, name, n, dtype=np.float32):
        out = np.zeros(self.h * self.w * n, np.dtype(dtype))
        assert out.itemsize == 4
        self.runner.memcpy_d2h(
            out,
            self.runner.get_id(name),
            0,
            0,
            self.w,
            self.h,
            n,
            **_how(wse.MemcpyDataType.MEMCPY_32BIT),
        )
        return out.reshape(self.h, self.w, n)

    def put16(self, name, values):
        """`values` [h, w, n] of 16 bits."""
        data = np.ascontiguousarray(values)
        assert data.dtype.itemsize == 2
        self.runner.memcpy_h2d(
            self.runner.get_id(name),
            data.view(np.uint16).ravel().astype(np.uint32),
            0,
            0,
            self.w,
            self.h,
            data.size // (self.w * self.h),
            **_how(wse.MemcpyDataType.MEMCPY_16BIT),
        )

    def get16(self, name, n, dtype):
        out = np.zeros(self.h * self.w * n, np.uint32)
        self.runner.memcpy_d2h(
            out,
            self.runner.get_id(name),
            0,
            0,
            self.w,
            self.h,
            n,
            **_how(wse.MemcpyDataType.MEMCPY_16BIT),
        )
        return out.astype(np.uint16).view(dtype).reshape(self.h, self.w, n)

    def launch(self, name, *args):
        self.runner.launch(name, *args, nonblock=False)

    def stop(self):
        self.runner.stop()


# What no document decides: programs must not depend on it (`cslc --perturb` tries more of it).
CHOICES = [
    {},
    {"engine": "native"},
    {"task_order": "random", "seed": 7, "router_depth": 1},
    {"task_order": "highest-first", "router_depth": 12},
    {"task_order": "lowest-first", "router_depth": 2, "engine": "bytecode"},
]


def everywhere(folder, arch, files, host, w=1, h=1, params=None):
    """`host(machine)` with the program as one of SDK 1.4, whose structs are `comptime_struct`, and as one of SDK 2.10,
    under several of the choices that no document decides. STRUCT in the text stands for the type of a struct."""
    for sdk in ("1.4", "2.10"):
        text = {
            k: v.replace("STRUCT", ": comptime_struct" if sdk == "1.4" else "")
            for k, v in files.items()
        }
        m = Machine(folder, arch, text, w, h, params, sdk=sdk)
        for choice in CHOICES:
            m.start(**choice)
            host(m)
            m.stop()


SYS = 'param memcpy_params; const sys = @import_module("<memcpy/memcpy>", memcpy_params);\n'
