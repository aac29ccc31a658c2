// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the generator's programs are built with: flat buffers of run-time length, loops, blocks.

#include <functional>
#include <string>
#include <vector>

#include "weft/elements/elem.h"
#include "weft/ir/build.h"
#include "weft/ir/share.h"

namespace weft::generate {

using ir::Expr;
using ir::Stmt;
using ir::Var;
using Body = std::function<Stmt(const Expr&)>;

inline Expr number(std::int64_t v) { return ir::make_int(v); }

class Program {
 public:
  Program() : n(ir::make_var("n")) {}
  /// Elements of every buffer: n unless said otherwise.
  Var n;

  ir::Buffer buffer(const std::string& name, DType type, Expr extent = nullptr);
  ir::Buffer buffer(const std::string& name, Elem e, Expr extent = nullptr) {
    return buffer(name, dtype_of(e), std::move(extent));
  }
  Expr scalar(const std::string& name, DType type);
  /// Pointers may be equal: that is no obstacle to vectors, since elements meet themselves only.
  ir::PrimFunc finish(const Stmt& body) const;

 private:
  std::vector<ir::Param> buffers_, scalars_;
};

Stmt loop(const std::string& name, const Expr& extent, const Body& body,
          ir::ForKind kind = ir::ForKind::serial);
inline Stmt vectors(const std::string& name, const Expr& extent, const Body& body) {
  return loop(name, extent, body, ir::ForKind::vectorized);
}
ir::Buffer local(const std::string& name, DType type, std::int64_t extent);
/// The statement with `value` in a variable.
Stmt with_value(const std::string& name, const Expr& value, const Body& body);
using ir::with_shared;
using ir::with_values;
/// Truth values are both there anyway: combining their bytes needs no branch.
Expr no_branches(const Expr& e);

}  // namespace weft::generate
