// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only judge of index facts. An Analyzer knows ranges of variables and constraints, and
// answers: what are an expression's bounds, what is it modulo n, what is its simplest form, is this
// condition always true. All answers are conservative: "unknown" is allowed, "wrong" is not.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/ir/node.h"
#include "weft/ir/visit.h"

namespace weft::arith {

/// Inclusive constant bounds; the ends of int64 stand for unknown.
struct Bounds {
  static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t min = kMin, max = kMax;
  bool is_point() const { return min == max; }
  bool bounded() const { return min != kMin && max != kMax; }
  bool operator==(const Bounds&) const = default;
};

/// value = base (mod coeff), 0 <= base < coeff; coeff 1: nothing known; coeff 0: the constant
/// `base`.
struct Modular {
  std::int64_t coeff = 1, base = 0;
};

class Analyzer {
 public:
  struct Impl;

  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;

  /// min <= var < min + extent. A variable has a value only where its loop runs, so that from here
  /// on a symbolic extent is at least 1; what is outside the loop must not see that: bind it within
  /// a Scope.
  void bind(const ir::Var& var, const ir::Range& range);
  /// var is exactly value.
  void bind(const ir::Var& var, const ir::Expr& value);
  /// Assumes `condition` until the returned scope ends.
  class Constraint {
   public:
    Constraint(Analyzer& analyzer, const ir::Expr& condition);
    ~Constraint();
    Constraint(const Constraint&) = delete;

   private:
    Analyzer& analyzer_;
    std::unique_ptr<Impl> saved_;
  };

  /// A loop's inside: what bindings say of other variables than their own (a loop of n iterations
  /// that runs has 1 <= n) is forgotten when the scope ends. Scopes and constraints nest.
  class Scope {
   public:
    explicit Scope(Analyzer& analyzer);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    Analyzer& analyzer_;
    std::size_t known_;
  };

  Bounds bounds(const ir::Expr& e) const;
  Modular modular(const ir::Expr& e) const;
  /// Canonical form: equal index expressions over bound variables mostly become the same
  /// expression; (i0*8 + i1)//8 -> i0 and (..)%8 -> i1 when 0 <= i1 < 8; conditions fold.
  ir::Expr simplify(const ir::Expr& e) const;
  /// The same for a value that is stored or decides a branch. Arithmetic on data wraps, so it is
  /// opened only where no intermediate can leave its type; indices and extents never do. Arithmetic
  /// of variables alone counts as index arithmetic, except of those that hold_data names.
  ir::Expr simplify_value(const ir::Expr& e) const;
  /// A variable whose value comes from memory.
  void hold_data(const ir::Var& var);
  /// Constant bounds of such a value, within its type.
  Bounds value_bounds(const ir::Expr& e) const;
  /// True only if `condition` holds for all values of the bound variables under the constraints.
  bool prove(const ir::Expr& condition) const;
  bool prove_equal(const ir::Expr& a, const ir::Expr& b) const;
  bool prove_less(const ir::Expr& a, std::int64_t b) const { return bounds(a).max < b; }
  bool prove_at_least(const ir::Expr& a, std::int64_t b) const { return bounds(a).min >= b; }

 private:
  friend class Constraint;
  friend class Scope;
  std::unique_ptr<Impl> impl_;
};

/// simplify with a throw-away analyzer.
ir::Expr simplify(const ir::Expr& e);
/// Simplifies every expression of a statement, using loop ranges, iter domains and guards on the
/// way. Guards that are decided go; loops that run zero times go; loops of one trip stay.
ir::Stmt simplify(const ir::Stmt& s);

/// base + sum of coeff * var, constant coefficients; absent when e is not linear over `vars`
/// (other variables end up in base).
struct Linear {
  ir::Expr base;
  std::vector<std::int64_t> coeffs;  // one per var
};
std::optional<Linear> detect_linear(const ir::Expr& e, const std::vector<ir::Var>& vars);

/// Per-dimension [min, extent] of values e takes when `vars` run over `ranges` (others are fixed
/// symbols). Exact for affine expressions with constant ranges, an upper bound otherwise; null
/// extent when unbounded.
struct SymbolicInterval {
  ir::Expr min, max;
};  // inclusive; null: unbounded
using DomainMap = std::unordered_map<const ir::VarNode*, ir::Range>;
SymbolicInterval symbolic_interval(const ir::Expr& e, const DomainMap& domain,
                                   const Analyzer& analyzer);
/// The box that covers `region` when the domain's variables run; clipped to nothing else.
std::vector<ir::Range> relax_region(const std::vector<ir::Range>& region, const DomainMap& domain,
                                    const Analyzer& analyzer);
/// The smallest box covering both; dims compared symbolically.
std::vector<ir::Range> union_regions(const std::vector<ir::Range>& a,
                                     const std::vector<ir::Range>& b, const Analyzer& analyzer);
/// Whether box `outer` provably contains box `inner`.
bool covers(const std::vector<ir::Range>& outer, const std::vector<ir::Range>& inner,
            const Analyzer& analyzer);

}  // namespace weft::arith
