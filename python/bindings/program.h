// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs, schedules and compiled modules in Python: what the program_*.cpp files share.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <initializer_list>

#include <vector>

#include "errors.h"
#include "weft/ir/node.h"
#include "weft/runtime/module.h"

namespace weft::schedule {
class Schedule;
}

namespace weft::py {

struct PyExpr {
  ir::Expr expr;
  int levels = 1;  // at least those of expr; see grown()
};
struct PyBuffer {
  ir::Buffer buffer;
};
struct PyFunc {
  ir::PrimFunc func;
};
struct PyModule {
  ir::IRModule mod;
};

/// What an operator made of `from`, one level deeper. Refuses ("python.expression.depth") more
/// levels than what walks and frees expressions can take, so that no loop in Python grows one too
/// deep.
PyExpr grown(ir::Expr e, std::initializer_list<nb::handle> from);
PyExpr grown(ir::Expr e, const PyExpr& a, nb::handle b);

/// Expr, Buffer element, int, float or bool as an expression; `like` types plain numbers.
ir::Expr expr_from_python(nb::handle o, DType like = dtypes::int64);
/// PrimFunc, IRModule or Schedule as a module. Throws Error(value, "python.program").
ir::IRModule module_from_python(nb::handle o);
Json json_from_python(nb::handle o);
nb::object json_to_python(const Json& json);

void bind_program(nb::module_& m);   // Expr, PrimFunc, IRModule, parse
void bind_te(nb::module_& m);        // tensor expressions
void bind_schedule(nb::module_& m);  // Schedule, BlockRef, LoopRef
void bind_build(nb::module_& m);     // build, Module, devices
/// A block or loop of a schedule as plain values.
nb::object schedule_view(const schedule::Schedule& s, nb::handle ref);
void bind_tuned(nb::module_& m);   // schedules of array operations
void bind_bridge(nb::module_& m);  // what weft._rpc needs of this module

/// Arguments of a call as the runtime wants them; the Python objects keep the storage alive.
std::vector<runtime::CallArg> call_args(const nb::args& args);

}  // namespace weft::py
