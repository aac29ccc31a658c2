// SPDX-License-Identifier: Apache-2.0
// What the source interpreter refuses: kernels that the machine would hang on or read nonsense
// from.
#include "weft/targets/qpu/language/interpret.h"

#include <gtest/gtest.h>

#include "../../expect_error.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/language/builder.h"

namespace weft::qpu {
namespace {

using ast::Op;
using ast::Stmt;
using weft::testing::expect_error;

void gather(Builder& b) {
  b.append(Stmt::Op::gather).address = b.expr(Op::uniform, nullptr, nullptr, 0);
}
void receive(Builder& b) { b.append(Stmt::Op::receive).var = b.fresh(); }

/// Runs what `body` appends as a kernel of one pointer.
template <typename F>
void run(F&& body, InterpretOptions options = {}) {
  hw::Emulator machine;
  Builder b;
  b.parameter(ast::Param::Kind::pointer);
  body(b);
  const std::unique_ptr<ast::Program> program = b.finish("kernel");
  const std::uint32_t params[] = {static_cast<std::uint32_t>(machine.memory().allocate(256))};
  interpret(*program, params, machine.memory(), options);
}

TEST(QpuInterpret, gathers_and_receives_match) {
  run([](Builder& b) {
    for (int k = 0; k < 4; ++k) gather(b);
    for (int k = 0; k < 4; ++k) receive(b);
  });
  expect_error(ErrorKind::fault, "qpu.interpret.empty", {"receive without gather"},
               [] { run([](Builder& b) { gather(b), receive(b), receive(b); }); });
  expect_error(ErrorKind::fault, "qpu.interpret.overflow", {"a fifth gather before a receive"}, [] {
    run([](Builder& b) {
      for (int k = 0; k < 5; ++k) gather(b);
    });
  });
  expect_error(ErrorKind::fault, "qpu.interpret.unread",
               {"qpu 0 ended with 2 gathers not received"},
               [] { run([](Builder& b) { gather(b), gather(b), gather(b), receive(b); }); });
}

TEST(QpuInterpret, semaphores_that_nobody_raises) {
  auto down = [](Builder& b) { b.append(Stmt::Op::semaphore_down).var = 3; };
  run([&](Builder& b) {
    b.append(Stmt::Op::semaphore_up).var = 3;
    down(b);
  });
  InterpretOptions three;
  three.qpus = 3;
  expect_error(ErrorKind::fault, "qpu.interpret.deadlock", {"all 3 QPUs wait for semaphores"},
               [&] { run(down, three); });
}

TEST(QpuInterpret, a_limit_of_statements) {
  InterpretOptions short_run;
  short_run.statements = 3;
  auto four = [](Builder& b) { gather(b), gather(b), receive(b), receive(b); };
  run(four);
  expect_error(ErrorKind::fault, "qpu.interpret.limit", {"more than 3 statements"},
               [&] { run(four, short_run); });
}

}  // namespace
}  // namespace weft::qpu
