// SPDX-License-Identifier: Apache-2.0
// The debugger on kernels of the kernel language: source lines of the C++ file, steps, watches.

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "weft/base/text.h"
#include "weft/sim/debug/debugger.h"

#include <weft/qpu.h>  // last: its statements are macros

using namespace weft::qpu;

namespace {

/// Commands from a list; what was written is kept.
class Script final : public weft::sim::Console {
 public:
  Script(std::deque<std::string> lines, std::string& out) : lines_(std::move(lines)), out_(out) {}
  std::optional<std::string> read() override {
    if (lines_.empty()) return std::nullopt;
    std::string line = lines_.front();
    lines_.pop_front();
    out_ += "> " + line + "\n";
    return line;
  }
  void write(std::string_view text) override { out_ += text; }

 private:
  std::deque<std::string> lines_;
  std::string& out_;
};

constexpr int kTripleLine = __LINE__ + 3;
void triple(Ptr<Int> p) {
  Int x = *p;
  x = x * 3;
  *p = x;
}

TEST(QpuDebug, stops_at_lines_of_the_kernel) {
  auto k = compile(triple);
  SharedArray<int> a(16);
  for (int i = 0; i < 16; i++) a[i] = i;
  std::string out;
  weft::sim::attach_debugger(std::make_unique<Script>(
      std::deque<std::string>{weft::cat("break debug_test.cpp:", kTripleLine), "continue", "list",
                              "step", "registers", "break debug_test.cpp:1", "delete", "continue"},
      out));
  k(&a);
  for (int i = 0; i < 16; i++) EXPECT_EQ(a[i], 3 * i);
  EXPECT_NE(out.find("stopped: breakpoint 1"), out.npos) << out;
  EXPECT_NE(out.find(weft::cat("debug_test.cpp:", kTripleLine + 1, " in kernel")), out.npos) << out;
  EXPECT_NE(out.find(weft::cat("debug_test.cpp:", kTripleLine)), out.npos) << out;
  EXPECT_NE(out.find("error[debug.place]: line \"debug_test.cpp:1\" has no code"), out.npos) << out;
  EXPECT_NE(out.find("lines with code nearby"), out.npos) << out;
}

void wait_for_nobody(Ptr<Int> p) {
  semaDec(3);
  *p = 1;
}

TEST(QpuDebug, a_deadlock_stops_and_says_who_waits) {
  auto k = compile(wait_for_nobody);
  SharedArray<int> a(16);
  std::string out;
  weft::sim::attach_debugger(std::make_unique<Script>(
      std::deque<std::string>{"continue", "waiting all", "semaphores", "continue"}, out));
  EXPECT_ANY_THROW(k(&a));
  EXPECT_NE(out.find("error[qpu.deadlock]"), out.npos) << out;
  EXPECT_NE(out.find("qpu 0  waits for semaphore 3"), out.npos) << out;
}

TEST(QpuDebug, the_end_of_the_commands_ends_the_program) {
  auto k = compile(triple);
  SharedArray<int> a(16);
  std::string out;
  weft::sim::attach_debugger(std::make_unique<Script>(std::deque<std::string>{}, out));
  for (int again = 0; again < 2; ++again) {
    try {
      k(&a);
      FAIL() << out;
    } catch (const weft::Error& error) {
      EXPECT_EQ(error.code(), "debug.quit");
    }
  }
}

}  // namespace
