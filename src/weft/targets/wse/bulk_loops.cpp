// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/bulk_loops.h"

#include "weft/targets/wse/arith.h"

// One machine-independent and one AVX2 version of the 32-bit float loops, chosen when the program
// is loaded. Neither has fused instructions: the compiler would make them of a product and a sum,
// and results would depend on the machine.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define WEFT_WSE_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define WEFT_WSE_CLONES
#endif

namespace weft::wse {

namespace {

float load_f(const std::uint8_t* p) {
  float v;
  std::memcpy(&v, p, 4);
  return v;
}
void store_f(std::uint8_t* p, float v) { std::memcpy(p, &v, 4); }

// Contiguous, and the destination is either a source itself or apart from it: order does not
// matter.
WEFT_WSE_CLONES void fmacs_flat(float* d, const float* a, const float* b, float s,
                                std::uint32_t n) {
#pragma GCC ivdep
  for (std::uint32_t i = 0; i < n; ++i) d[i] = a[i] + b[i] * s;
}
WEFT_WSE_CLONES void fadds_flat(float* d, const float* a, const float* b, std::uint32_t n) {
#pragma GCC ivdep
  for (std::uint32_t i = 0; i < n; ++i) d[i] = a[i] + b[i];
}
WEFT_WSE_CLONES void fmuls_flat(float* d, const float* a, const float* b, std::uint32_t n) {
#pragma GCC ivdep
  for (std::uint32_t i = 0; i < n; ++i) d[i] = a[i] * b[i];
}
WEFT_WSE_CLONES void fmacs_strided(LoopSide d, LoopSide a, LoopSide b, float s, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i, d.at += d.stride, a.at += a.stride, b.at += b.stride) {
    store_f(d.at, load_f(a.at) + load_f(b.at) * s);
  }
}

// `b` may be any stretch of memory; the flat loops need it aligned for float access to be sound.
bool flat(const LoopSide& d, const LoopSide& s, std::uint32_t n) {
  if (!s.at || d.stride != 4 || s.stride != 4) return false;
  if ((reinterpret_cast<std::uintptr_t>(d.at) | reinterpret_cast<std::uintptr_t>(s.at)) & 3u)
    return false;
  return d.at == s.at || d.at + 4u * n <= s.at || s.at + 4u * n <= d.at;
}

}  // namespace

void bulk_loop(Bulk code, Ty half, LoopSide d, LoopSide a, LoopSide b, std::uint32_t scalar,
               std::uint32_t n, bool running) {
  const BulkInfo& info = bulk_info(code);
  if (!running && d.at) {
    if (code == Bulk::fmacs && a.at && b.at) {
      float s = std::bit_cast<float>(scalar);
      if (flat(d, a, n) && flat(d, b, n)) {
        fmacs_flat(reinterpret_cast<float*>(d.at), reinterpret_cast<const float*>(a.at),
                   reinterpret_cast<const float*>(b.at), s, n);
      } else {
        fmacs_strided(d, a, b, s, n);
      }
      return;
    }
    if ((code == Bulk::fadds || code == Bulk::fmuls) && flat(d, a, n) && flat(d, b, n)) {
      (code == Bulk::fadds ? fadds_flat : fmuls_flat)(reinterpret_cast<float*>(d.at),
                                                      reinterpret_cast<const float*>(a.at),
                                                      reinterpret_cast<const float*>(b.at), n);
      return;
    }
  }
  int wa = code == Bulk::faddhs || code == Bulk::fmachs ? 4 : info.src_bytes;
  int wb = code == Bulk::fscales ? 2 : info.src_bytes;
  std::uint32_t va = a.constant, vb = b.constant;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (a.at) va = load_bits(a.at, wa);
    if (b.at) vb = load_bits(b.at, wb);
    std::uint32_t v = bulk_element(code, half, va, vb, scalar);
    store_bits(d.at, info.dst_bytes, v);
    if (running) va = v;
    d.at += d.stride;
    if (a.at) a.at += a.stride;
    if (b.at) b.at += b.stride;
  }
}

}  // namespace weft::wse
