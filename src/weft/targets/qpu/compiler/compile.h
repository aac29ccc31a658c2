// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernel tree in, binary out: lower, optimise, allocate, schedule, encode. Every program passes the
// rule book.

#include "weft/runtime/binary.h"
#include "weft/targets/qpu/language/ast.h"

namespace weft::qpu {

struct Compiled {
  runtime::Binary binary;  // format "qpu", one kernel; see targets/qpu/emulator.h for the metadata
  std::size_t instructions = 0;
};

Compiled compile_program(const ast::Program& program);

}  // namespace weft::qpu
