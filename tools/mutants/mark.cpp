// SPDX-License-Identifier: Apache-2.0
// The switches of planted faults: one byte each in a file that processes share (WEFT_MUTANTS). Bit
// 0: the place was reached; bit 1: the fault is turned on. Linked into test programs and the Python
// module by tools/mutate.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace {

constexpr int kMost = 1 << 16;
unsigned char unused[kMost];

unsigned char* open_page() {
  const char* path = std::getenv("WEFT_MUTANTS");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return unused;
  void* page = mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return page == MAP_FAILED ? unused : static_cast<unsigned char*>(page);
}

unsigned char* page() {
  static unsigned char* const found = open_page();
  return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bool weft_mutant(int number) noexcept {
  unsigned char& state = page()[number];
  if (!(state & 1)) state |= 1;
  return state & 2;
}

#ifdef WEFT_MUTANT_TESTS
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

namespace {

/// One line for each test: name, seconds, whether it passed, numbers of the places it reached.
struct Reached : testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    std::FILE* out = std::fopen(std::getenv("WEFT_MUTANT_LOG"), "a");
    if (!out) return;
    std::fprintf(out, "%s.%s %g %d", test.test_suite_name(), test.name(),
                 test.result()->elapsed_time() / 1e3,
                 !test.result()->Failed() && !test.result()->Skipped());
    for (int i = 0; i < kMost; ++i)
      if (page()[i] & 1) {
        std::fprintf(out, " %d", i);
        page()[i] = 0;
      }
    std::fprintf(out, "\n");
    std::fclose(out);
  }
};

const bool listening = [] {
  if (std::getenv("WEFT_MUTANT_LOG"))
    testing::UnitTest::GetInstance()->listeners().Append(new Reached);
  return true;
}();

}  // namespace
#endif
