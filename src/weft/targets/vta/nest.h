// SPDX-License-Identifier: Apache-2.0
#pragma once
// A loop nest around one statement, with index expressions as affine functions of its loops.

#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/ir/node.h"

namespace weft::vta {

struct NestLoop {
  const ir::VarNode* var;
  std::int64_t min, extent;
};

/// base + sum of coeff[i] * (loop i counted from 0).
struct Affine {
  std::int64_t base = 0;
  std::vector<std::int64_t> coeff;
  bool constant() const;
  bool operator==(const Affine&) const = default;
};

/// Values of the variables that are fixed while recording.
using Environment = std::unordered_map<const ir::VarNode*, std::int64_t>;

/// Nothing when `e` is not affine in the loops, or uses other variables.
std::optional<Affine> affine(const ir::Expr& e, const std::vector<NestLoop>& loops,
                             const Environment& env);
/// Nothing when `e` is no constant under `env`.
std::optional<std::int64_t> constant(const ir::Expr& e, const Environment& env);

/// The nest of one unit: loops, and at the bottom an update, perhaps after a guarded
/// initialisation.
struct Nest {
  std::vector<NestLoop> loops;
  const ir::StoreNode* init = nullptr;
  ir::Expr init_guard;  // null: always
  const ir::StoreNode* update = nullptr;
  ir::Expr guard;      // of the update; null: always
  bool never = false;  // the guard is known not to hold
};

/// Whether a statement has the shape of a nest: loops around one update.
bool is_nest(const ir::Stmt& s);
/// The nest at `s` when it contains one update and nothing else.
std::optional<Nest> nest_of(const ir::Stmt& s, const Environment& env);

/// Without any casts.
ir::Expr strip_casts(ir::Expr e);
/// Without the casts that change no value.
ir::Expr strip_widening(ir::Expr e);
/// The read of `condition ? read : 0`, casts that change no value aside; the conditions are
/// collected. Null: none.
const ir::LoadNode* guarded_load(ir::Expr e, std::vector<ir::Expr>& conditions);

}  // namespace weft::vta
