// SPDX-License-Identifier: Apache-2.0
// The long mutation run: csl_mutate SEED COUNT [FILE...]; with files, these are what is changed,
// instead of the library and the texts of mutate.h. Exit status 1 after an internal error, another
// exception, or an input of more than ten seconds; each is printed with its text. What ends the
// process leaves its text in "csl_mutate.last": csl_mutate --last compiles that again.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "../../../unit/last_input.h"
#include "../csl/mutate.h"
#include "weft/base/file.h"
#include "weft/base/json.h"

namespace {

using namespace weft;

struct Counts {
  long compiled = 0, refused = 0, bad = 0;
  double longest = 0;
};

void attempt(const std::string& text, Counts& counts) {
  auto complain = [&](const std::string& what) {
    std::printf("%s\n  for: %s\n", what.c_str(), json_quote(text).c_str());
    ++counts.bad;
  };
  const std::clock_t begin = std::clock();  // of the processor: others may be busy with it
  try {
    wse::csl::compile(wse::testing::fuzz_options(text));
    ++counts.compiled;
  } catch (const Error& e) {
    ++counts.refused;
    if (e.kind() == ErrorKind::internal) complain(cat("internal error: ", e.what()));
  } catch (const std::exception& e) {
    complain(cat("foreign exception: ", e.what()));
  }
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  counts.longest = std::max(counts.longest, took);
  if (took > 10) complain(cat("took ", took, " s"));
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = "csl_mutate.last";
  Counts counts;
  if (argc == 2 && std::strcmp(argv[1], "--last") == 0) {
    attempt(testing::LastInput::read(path), counts);
    return counts.bad ? 1 : 0;
  }
  unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  long count = argc > 2 ? std::atol(argv[2]) : 10000;
  std::mt19937 rng(seed);
  std::vector<std::string> texts;
  for (int k = 3; k < argc; ++k) texts.push_back(read_file(argv[k]));
  if (texts.empty()) texts = wse::testing::corpus();
  testing::LastInput last(path);
  for (long k = 0; k < count && counts.bad < 20; ++k) {
    const std::string text = wse::testing::mutate(rng, texts);
    last.keep(text);
    attempt(text, counts);
    if (k % 5000 == 4999) {
      std::printf("%ld inputs, %ld compiled, %ld refused\n", k + 1, counts.compiled,
                  counts.refused);
      std::fflush(stdout);
    }
  }
  std::printf("seed %u: %ld compiled, %ld refused, longest %.3f s, %ld bad\n", seed,
              counts.compiled, counts.refused, counts.longest, counts.bad);
  return counts.bad ? 1 : 0;
}
