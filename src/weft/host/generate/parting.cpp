// SPDX-License-Identifier: Apache-2.0
// A row of keys in three parts about two bounds, as C text: the instruction that moves chosen lanes
// together is none of the IR's.

#include "weft/base/text.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"
#include "weft/host/sort_kernels.h"

namespace weft::generate {

std::string parting_text() {
  const auto of = [](const std::string& bits, const std::string& lanes) {
    std::string text = R"(
WEFT_FUNCTION int32_t weft_part_BITS(const uintBITS_t* x, const uintBITS_t* bounds, uintBITS_t* left,
                                     uintBITS_t* middle, uintBITS_t* right, int64_t* counts,
                                     int64_t n) {
  const uintBITS_t low = bounds[0], high = bounds[1];
  const int64_t all = counts[0] != 0; /* or the middle alone */
  int64_t i = 0, l = 0, m = 0, r = 0;
#if defined(__AVX512F__)
  const __m512i lows = _mm512_set1_epiBITSX(low), highs = _mm512_set1_epiBITSX(high);
  for (; i + LANES <= n; i += LANES) {
    const __m512i v = _mm512_loadu_si512(x + i);
    const uint32_t a = _mm512_cmplt_epuBITS_mask(v, lows), b = _mm512_cmpgt_epuBITS_mask(v, highs);
    const uint32_t c = ~(a | b) & ((1u << LANES) - 1);
    _mm512_storeu_si512(middle + m, _mm512_maskz_compress_epiBITS((__mmaskLANES)c, v));
    if (all) {
      _mm512_storeu_si512(left + l, _mm512_maskz_compress_epiBITS((__mmaskLANES)a, v));
      _mm512_storeu_si512(right + r, _mm512_maskz_compress_epiBITS((__mmaskLANES)b, v));
      r += __builtin_popcount(b);
    }
    l += __builtin_popcount(a);
    m += __builtin_popcount(c);
  }
#endif
  for (; i < n; ++i) {
    const uintBITS_t v = x[i];
    const int64_t less = v < low, more = high < v;
    middle[m] = v;
    if (all) {
      left[l] = v;
      right[r] = v;
      r += more;
    }
    l += less;
    m += 1 - (less | more);
  }
  counts[0] = l, counts[1] = m;
  return 0;
}
)";
    const std::pair<std::string, std::string> words[] = {
        {"epiBITSX", bits == "64" ? "epi64" : "epi32"}, {"BITS", bits}, {"LANES", lanes}};
    for (const auto& [word, instead] : words) {
      for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
        text.replace(at, word.size(), instead);
    }
    return text;
  };
  return of("32", "16") + of("64", "8");
}

std::vector<Kernel> parting_kernels() {
  std::vector<Kernel> out;
  for (Elem e : {Elem::uint32, Elem::uint64}) {
    Program p;
    ir::Exprs arguments = {ir::make_string(cat("weft_part_", std::to_string(8 * elem_bytes(e))))};
    for (const char* name : {"A", "B", "L", "M", "R"})
      arguments.push_back(ir::call("address_of", {ir::load(p.buffer(name, e), {number(0)})}));
    arguments.push_back(
        ir::call("address_of", {ir::load(p.buffer("C", dtypes::int64), {number(0)})}));
    arguments.push_back(p.n);
    Kernel k{entry(KernelEntry::sorting, static_cast<int>(SortKernel::part), e),
             cat("d_part_", name_of(e)),
             p.finish(ir::evaluate(ir::call_typed(dtypes::int32, "call_extern", arguments)))};
    k.parameters = "const void* A, const void* B, void* L, void* M, void* R, int64_t* C, int64_t n";
    out.push_back(std::move(k));
  }
  return out;
}

}  // namespace weft::generate
