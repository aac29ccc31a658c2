// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/fft.h"

#include "weft/base/text.h"
#include "weft/operators/fft_butterfly.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

std::vector<int> fft_radices(std::int64_t n) {
  std::vector<int> out;
  if (n < 1) return out;
  for (const int radix : kFftRadices) {
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  }
  if (n > 1) out.clear();
  return out;
}

ir::PrimFunc fft_pass(const FftSpec& spec) {
  const std::string indent(16, ' ');
  Butterfly b(spec.real, spec.inverse, indent);
  std::vector<Butterfly::Number> x;
  for (int k = 0; k < spec.radix; ++k) {
    const std::string at = cat("2 * (row * n + u + ", k, " * m * stride)");
    x.push_back(b.named(cat("x[", at, "]"), cat("x[", at, " + 1]")));
  }
  x = b.transform(x);
  std::string stores;
  for (int j = 0; j < spec.radix; ++j) {
    Butterfly::Number y = x[static_cast<std::size_t>(j)];
    if (j > 0) {
      const std::string at = cat("2 * (p * ", j, " * stride)");
      const Butterfly::Number w = b.named(
          cat("table[", at, "]"), spec.inverse ? cat("T.", spec.real, "(-1) * table[", at, " + 1]")
                                               : cat("table[", at, " + 1]"));
      y = b.named(cat(y.re, " * ", w.re, " - ", y.im, " * ", w.im),
                  cat(y.re, " * ", w.im, " + ", y.im, " * ", w.re));
    }
    stores += cat(indent, "Y[", 2 * j, "] = ", y.re, " * scale\n", indent, "Y[", 2 * j + 1,
                  "] = ", y.im, " * scale\n");
  }
  return ProgramText("fft.pass")
      .buffer("x", spec.real)
      .buffer("table", spec.real)
      .buffer("out", spec.real)
      .scalar("blocks", "int64")
      .scalar("count", "int64")
      .scalar("n", "int64")
      .scalar("stride", "int64")
      .scalar("scale", spec.real)
      .distinct()
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            Y = T.allocate(({parts},), "{real}", scope="local")
            at: T.int64 = b * {threads} + t
            if at < count // {radix}:
                part: T.int64 = n // {radix}
                m: T.int64 = part // stride
                row: T.int64 = at // part
                u: T.int64 = at % part
                q: T.int64 = u % stride
                p: T.int64 = u // stride
{body}{stores}                for k in T.serial({parts}):
                    out[2 * (row * n + q + stride * ({radix} * p + k // 2)) + k % 2] = Y[k]
)",
             {{"threads", cat(kFftThreads)},
              {"radix", cat(spec.radix)},
              {"parts", cat(2 * spec.radix)},
              {"real", spec.real},
              {"body", b.text},
              {"stores", stores}});
}

}  // namespace weft::operators
