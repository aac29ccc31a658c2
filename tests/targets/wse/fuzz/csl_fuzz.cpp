// SPDX-License-Identifier: Apache-2.0
// libFuzzer entry: any bytes are the code of a PE (or a layout of their own). Build with clang:
//   tools of the folder: tests/targets/wse/fuzz/run.sh 1000000
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../csl/mutate.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// Half of the inputs are mutated programs, which get past the parser; half are mutated bytes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  std::mt19937 rng(seed);
  if (rng() % 2) return LLVMFuzzerMutate(data, size, max_size);
  std::string text = weft::wse::testing::mutate(rng);
  std::size_t n = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), n);
  return rng() % 4 ? n : LLVMFuzzerMutate(data, n, max_size);
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
