// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel means, executed on its tree: the reference for compiled code. QPUs take turns at
// statements that may wait.

#include <functional>
#include <span>
#include <string_view>

#include "weft/sim/memory.h"
#include "weft/targets/qpu/language/ast.h"

namespace weft::qpu {

struct InterpretOptions {
  int qpus = 1;
  std::int64_t statements = 100'000'000;  // limit over all QPUs
  std::function<void(std::string_view)> print;
};

/// `params`: one word per parameter (pointers are addresses in `memory`). Throws Error(fault,
/// "qpu.interpret.*").
void interpret(const ast::Program& program, std::span<const std::uint32_t> params,
               sim::Memory& memory, const InterpretOptions& options);

/// "<1,2,...>" as Print shows a vector; kind: "int", "uint" or "float".
std::string print_vector(const std::uint32_t* lanes, std::string_view kind);

}  // namespace weft::qpu
