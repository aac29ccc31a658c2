// SPDX-License-Identifier: Apache-2.0
// The long mutation run: csl_mutate SEED COUNT [FILE...]. Prints what it did; any crash is a
// finding, and the text that caused it is in the file "csl_mutate.last". With files, these are what
// is changed, instead of the library and the texts of mutate.h.
#include <cstdio>
#include <cstdlib>

#include "../csl/mutate.h"
#include "weft/base/file.h"

int main(int argc, char** argv) {
  using namespace weft;
  unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  long count = argc > 2 ? std::atol(argv[2]) : 10000;
  std::mt19937 rng(seed);
  std::vector<std::string> texts;
  for (int k = 3; k < argc; ++k) texts.push_back(read_file(argv[k]));
  if (texts.empty()) texts = wse::testing::corpus();
  long compiled = 0, refused = 0;
  for (long k = 0; k < count; ++k) {
    std::string text = wse::testing::mutate(rng, texts);
    if (k > 0 && k % 5000 == 0) {
      std::printf("%ld inputs, %ld compiled, %ld refused\n", k, compiled, refused);
      std::fflush(stdout);
    }
    if (std::FILE* f = std::fopen("csl_mutate.last", "wb")) {
      std::fwrite(text.data(), 1, text.size(), f);
      std::fclose(f);
    }
    try {
      wse::csl::compile(wse::testing::fuzz_options(text));
      ++compiled;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::internal) {
        std::printf("internal error after %ld inputs: %s\n", k, e.what());
        return 1;
      }
      ++refused;
    }
  }
  std::printf("seed %u: %ld inputs, %ld compiled, %ld refused, no crash\n", seed, count, compiled,
              refused);
  return 0;
}
