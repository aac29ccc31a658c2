// SPDX-License-Identifier: Apache-2.0
// libFuzzer entry: any bytes are the code of a PE (or a layout of their own). Build with clang:
//   cmake -S . -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DWEFT_FUZZ=ON -DWEFT_PYTHON=OFF && ninja
//   -C build-fuzz wse_csl_fuzz build-fuzz/tests/targets/wse/wse_csl_fuzz -runs=1000000
//   -max_len=4096 -timeout=10 corpus/
#include <cstdint>

#include "../csl/mutate.h"

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
