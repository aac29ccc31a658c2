// SPDX-License-Identifier: Apache-2.0
// libFuzzer entry: any bytes are the code of a PE (or a layout of their own). Built and run by
// tools/fuzz_csl.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../csl/mutate.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// An eighth of the inputs are mutated programs of our own, five eighths the corpus' edited as
/// programs, which get past the parser, the rest mutated bytes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace weft::wse::testing;
  std::mt19937 rng(seed);
  unsigned kind = rng() % 8;
  if (kind >= 6) return LLVMFuzzerMutate(data, size, max_size);
  std::string text = kind == 0 || size < 8
                         ? mutate(rng)
                         : mutate_text(std::string(reinterpret_cast<char*>(data), size), rng);
  std::size_t n = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), n);
  return n;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  try {
    wse::csl::compile(
        wse::testing::fuzz_options(std::string(reinterpret_cast<const char*>(data), size)));
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
