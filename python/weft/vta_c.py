# SPDX-License-Identifier: Apache-2.0
"""A module as C: the host plan, its copies and the instruction streams, for boards whose host has a C compiler and
nothing else.

``weft.vta.c.source(module)`` is one self-contained file of C99 without allocation of its own. It reaches the board
through five functions of ``weft_vta_host``; everything else is data.
"""

import json
import struct

_HEADER = """/* Written by weft.vta.c: do not edit. Configuration: {config} */
#include <stdint.h>
#include <string.h>

/* What the program needs of its host. Memory is contiguous, aligned to 4096 bytes and seen by the chip. */
typedef struct weft_vta_host {{
  void* user;
  void* (*allocate)(void* user, uint64_t bytes);            /* 0: no memory */
  void (*release)(void* user, void* memory);
  uint64_t (*physical)(void* user, const void* memory);     /* address as the chip's DMA sees it */
  int (*run)(void* user, uint64_t physical, uint32_t count); /* instructions there; 0 when finished */
}} weft_vta_host;

enum {{ WEFT_VTA_OK = 0, WEFT_VTA_MEMORY = 1, WEFT_VTA_ALIGN = 2, WEFT_VTA_RUN = 3 }};

/* Instructions with DRAM addresses relative to arrays: each word pair's address field (bits 26..57 of the first)
   counts elements of (1 << shift) bytes from the start of array `base`; 255: as it is. */
static int weft_vta_launch(const weft_vta_host* host, const uint64_t* words, const uint8_t* base, const uint8_t* shift,
                           uint32_t count, const uint64_t* arrays) {{
  uint64_t* stream = (uint64_t*)host->allocate(host->user, 16 * (uint64_t)count);
  int result;
  uint32_t i;
  if (!stream) return WEFT_VTA_MEMORY;
  for (i = 0; i < count; ++i) {{
    uint64_t word = words[2 * i];
    if (base[i] != 255) {{
      uint64_t start = arrays[base[i]];
      if (start & ((UINT64_C(1) << shift[i]) - 1)) {{
        host->release(host->user, stream);
        return WEFT_VTA_ALIGN;
      }}
      uint64_t at = ((word >> 26) & UINT64_C(0xffffffff)) + (start >> shift[i]);
      word = (word & ~(UINT64_C(0xffffffff) << 26)) | ((at & UINT64_C(0xffffffff)) << 26);
    }}
    stream[2 * i] = word;
    stream[2 * i + 1] = words[2 * i + 1];
  }}
  result = host->run(host->user, host->physical(host->user, stream), count) ? WEFT_VTA_RUN : WEFT_VTA_OK;
  host->release(host->user, stream);
  return result;
}}
"""


class Binary:
    """The parts of a compiled module's bytes (format "vta", version 2)."""

    def __init__(self, data):
        magic, version, size = struct.unpack_from("<4sII", data, 0)
        if magic != b"WVTA" or version != 2:
            raise ValueError(f"this is no VTA program of version 2: {magic!r} {version}")
        at = 12
        self.config = json.loads(data[at : at + size])
        at += size
        uops, kernels = struct.unpack_from("<II", data, at)
        at += 8
        self.uops = struct.unpack_from(f"<{uops}I", data, at)
        at += 4 * uops
        self.kernels = []  # (words, bases, host copies)
        for _ in range(kernels):
            (count,) = struct.unpack_from("<I", data, at)
            words = struct.unpack_from(f"<{2 * count}Q", data, at + 4)
            at += 4 + 16 * count
            bases = struct.unpack_from(f"<{count}H", data, at)
            at += 2 * count
            (size,) = struct.unpack_from("<I", data, at)
            copies = json.loads(data[at + 4 : at + 4 + size]) if size else []
            at += 4 + size
            self.kernels.append((words, bases, copies))

    def shift(self, memory):
        """log2 of the bytes of one element in DRAM, by the memory type's number."""
        c = self.config
        batch, block = c.get("LOG_BATCH", 0), c.get("LOG_BLOCK", 4)
        acc = batch + block + c["LOG_ACC_WIDTH"] - 3
        return {
            0: 2,
            1: 2 * block + c["LOG_WGT_WIDTH"] - 3,
            2: batch + block + c["LOG_INP_WIDTH"] - 3,
            3: acc,
            4: batch + block + c["LOG_INP_WIDTH"] - 3,
            5: acc - 2,
        }[memory]


def _index(row):
    text = [str(row[0])] if row[0] or not any(row[1:]) else []
    for i, step in enumerate(row[1:]):
        if step:
            text.append(f"i{i}" if step == 1 else f"INT64_C({step}) * i{i}")
    return " + ".join(text)


def _copy(c):
    lines, pad = [], "  "
    for i, extent in enumerate(c["extents"]):
        lines.append(f"{pad}for (int64_t i{i} = 0; i{i} < {extent}; ++i{i})")
        pad += "  "
    chosen, skipped = [], []
    for row, low, high, skip in c["guards"]:
        into = skipped if skip or not c["fill"] else chosen
        if low > -(1 << 61):
            into.append(f"{_index(row)} >= {low}")
        if high < 1 << 61:
            into.append(f"{_index(row)} < {high}")
    if skipped:
        lines.append(f"{pad}if ({' && '.join(skipped)})")
        pad += "  "
    to = f"int{8 * c['dst_bytes']}_t"
    if len(c["from"]) == 1:
        kind = f"{'' if c['signed'] else 'u'}int{8 * c['src_bytes']}_t"
        value = f"((const {kind}*)a[{c['src'][0]}])[{_index(c['from'][0])}]"
    else:
        value = " | ".join(
            f"(uint32_t)((const uint8_t*)a[{src}])[{_index(row)}] << {8 * k}"
            for k, (src, row) in enumerate(zip(c["src"], c["from"]))
        )
    if chosen:
        value = f"({' && '.join(chosen)}) ? ({to})({value}) : ({to}){c['otherwise']}"
    lines.append(f"{pad}(({to}*)a[{c['dst']}])[{_index(c['to'])}] = ({to})({value});")
    return "\n".join(lines)


def _array(kind, name, values, form, per_line=8):
    rows = [
        "  " + ", ".join(form(v) for v in values[i : i + per_line])
        for i in range(0, len(values), per_line)
    ]
    return (
        f"static const {kind} {name}[{max(len(values), 1)}] = {{\n"
        + ",\n".join(rows or ["  0"])
        + "\n};\n"
    )


def _constant(expression):
    """Plans for this machine have constant sizes: postfix codes over numbers."""
    stack = []
    for item in expression:
        if isinstance(item, int):
            stack.append(item)
            continue
        if isinstance(item, str) and item.startswith("s") and item[1:].isdigit():
            raise ValueError(f"the plan depends on slot {item[1:]}, which is no constant")
        b, a = stack.pop(), stack.pop()
        stack.append(
            {"+": a + b, "-": a - b, "*": a * b, "min": min(a, b), "max": max(a, b)}[item]
            if item in ("+", "-", "*", "min", "max")
            else a // b
            if item == "//"
            else a % b
        )
    return stack[0]


def source(module):
    """C text of a compiled module: for each function ``int weft_vta_<name>(const weft_vta_host*, void* ...)``."""
    binary = Binary(module.bytes())
    out = [_HEADER.format(config=json.dumps(binary.config, sort_keys=True))]
    out.append(_array("uint32_t", "weft_vta_uops", binary.uops, lambda v: f"0x{v:08x}u"))
    plans = [module._core.plan(name) for name in module.functions]
    number = {}  # kernels stand in the order of their launches
    for plan in plans:
        for step in plan["steps"]:
            if step["kind"] == "launch":
                number.setdefault(step["text"], len(number))
    for name, k in number.items():
        words, bases, copies = binary.kernels[k]
        if copies:
            body = "\n".join(_copy(c) for c in copies)
            out.append(f"static void {name}(void* const* a) {{\n{body}\n}}\n")
            continue
        where, shifts = [], []
        for i, base in enumerate(bases):
            word = words[2 * i]
            moves = (word & 7) in (0, 1) and base != 0xFFFF  # LOAD and STORE
            where.append(255 if not moves else 254 if base == 0xFFFE else base)
            shifts.append(binary.shift((word >> 7) & 7) if moves else 0)
        arrays = max([w for w in where if w < 254], default=-1) + 1
        where = [arrays if w == 254 else w for w in where]  # micro-operations come last
        out.append(_array("uint64_t", f"{name}_words", words, lambda v: f"UINT64_C(0x{v:016x})", 4))
        out.append(_array("uint8_t", f"{name}_base", where, str, 24))
        out.append(_array("uint8_t", f"{name}_shift", shifts, str, 24))
        number[name] = (k, len(bases), arrays)
    for plan in plans:
        out.append(_function(plan, number, len(binary.uops)))
    return "\n".join(out)


def _function(plan, number, uops):
    tensors = [p for p in plan["params"] if p["tensor"]]
    if len(tensors) != len(plan["params"]):
        raise ValueError(f"{plan['name']} has scalar parameters")
    names = ", ".join(f"void* array_{p['name']}" for p in tensors)
    lines = [
        f"/* {plan['name']}: "
        + ", ".join(f"{p['dtype']} {p['name']}{[e[0] for e in p['shape']]}" for p in tensors)
        + " */",
        f"int weft_vta_{plan['name']}(const weft_vta_host* host, {names}) {{",
        f"  void* buffer[{plan['buffers'] + 1}] = {{0}};",
        "  void* a[64];",
        "  uint64_t at[64];",
        "  void* uops;",
        "  int result = WEFT_VTA_OK, i;",
        "  (void)a; (void)at; (void)i;",
    ]
    lines += [f"  buffer[{i}] = array_{p['name']};" for i, p in enumerate(tensors)]
    lines += [
        f"  uops = host->allocate(host->user, {max(4 * uops, 4)});",
        "  if (!uops) return WEFT_VTA_MEMORY;",
        f"  memcpy(uops, weft_vta_uops, {4 * uops});",
    ]
    for step in plan["steps"]:
        if step["kind"] == "allocate":
            lines.append(
                f"  buffer[{step['target']}] = host->allocate(host->user, {_constant(step['value'])});"
            )
            lines.append(
                f"  if (!buffer[{step['target']}]) {{ result = WEFT_VTA_MEMORY; goto done; }}"
            )
        elif step["kind"] == "release":
            t = step["target"]
            lines.append(f"  host->release(host->user, buffer[{t}]); buffer[{t}] = 0;")
        elif step["kind"] == "launch":
            info = number[step["text"]]
            for k, arg in enumerate(step["args"]):
                offset = _constant(arg["offset"]) if arg.get("offset") else 0
                lines.append(f"  a[{k}] = (char*)buffer[{arg['buffer']}] + {offset};")
            if isinstance(info, tuple):
                _, count, arrays = info
                lines.append(
                    f"  for (i = 0; i < {arrays}; ++i) at[i] = host->physical(host->user, a[i]);"
                )
                lines.append(f"  at[{arrays}] = host->physical(host->user, uops);")
                name = step["text"]
                lines.append(
                    f"  result = weft_vta_launch(host, {name}_words, {name}_base, {name}_shift, {count}, at);"
                )
                lines.append("  if (result) goto done;")
            else:
                lines.append(f"  {step['text']}(a);")
        else:
            raise ValueError(f"a plan step of kind {step['kind']} has no C form")
    lines.append("  goto done;\ndone:")
    for t in range(len(tensors), plan["buffers"]):
        lines.append(f"  if (buffer[{t}]) host->release(host->user, buffer[{t}]);")
    lines += ["  host->release(host->user, uops);", "  return result;", "}", ""]
    return "\n".join(lines)
