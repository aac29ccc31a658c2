// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bulk operations on host memory: the loops behind DSD operations whose operands are all in memory.
// The elements are done in order, so that overlapping and zero-stride operands mean what they mean
// on a PE.

#include <cstdint>
#include <cstring>

#include "weft/targets/wse/state.h"

namespace weft::wse {

struct LoopSide {
  std::uint8_t* at = nullptr;  // null: the constant
  std::int32_t stride = 0;     // bytes
  std::uint32_t constant = 0;
};

/// `running`: the first source is the constant and then each result in turn (a reduction).
void bulk_loop(Bulk code, Ty half, LoopSide dst, LoopSide a, LoopSide b, std::uint32_t scalar,
               std::uint32_t n, bool running);

/// The 16-bit float format of an operation.
inline Ty half_type(const Program& program, const BulkOp& op) {
  return op.fp_bf16 ? Ty::bf16 : op.fp_cb16 ? Ty::cb16 : static_cast<Ty>(program.fp16);
}

inline std::uint32_t load_bits(const std::uint8_t* p, int bytes) {
  if (bytes == 4) {
    std::uint32_t v;
    std::memcpy(&v, p, 4);
    return v;
  }
  if (bytes == 2) {
    std::uint16_t v;
    std::memcpy(&v, p, 2);
    return v;
  }
  return *p;
}
inline void store_bits(std::uint8_t* p, int bytes, std::uint32_t v) {
  if (bytes == 4) {
    std::memcpy(p, &v, 4);
  } else if (bytes == 2) {
    auto h = static_cast<std::uint16_t>(v);
    std::memcpy(p, &h, 2);
  } else {
    *p = static_cast<std::uint8_t>(v);
  }
}

inline std::uint16_t mem4_address(const Cursor& c) {
  std::int32_t at = c.address;
  for (std::size_t i = 0; i < 4; ++i) at += c.walk->at[i] * c.walk->strides[i];
  return static_cast<std::uint16_t>(at);
}
/// A DSR loaded with `save_address` goes on where the operation has ended.
inline void keep_place(Dsr& r, const Cursor& c) {
  if (!r.settings.save_address) return;
  if (c.kind == Cursor::mem) r.dsd.base = c.address;
  if (r.dsd.kind == DsdKind::mem4d) {  // one place further along the outermost dimension
    for (std::size_t k = 0; k < 4; ++k) {
      if (c.walk->extent[k] < 2 && c.walk->strides[k] == 0) continue;
      r.dsd.base = static_cast<std::uint16_t>(c.address + c.walk->extent[k] * c.walk->strides[k]);
      break;
    }
  }
  if (r.dsd.kind == DsdKind::circbuf) r.dsd.stride[2] = static_cast<std::int16_t>(c.walk->at[3]);
}
inline void mem4_step(Cursor& c) {
  for (std::size_t i = 4; i-- > 0;) {
    if (++c.walk->at[i] < c.walk->extent[i]) return;
    c.walk->at[i] = 0;
  }
}

}  // namespace weft::wse
