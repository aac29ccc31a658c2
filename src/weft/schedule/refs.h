// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a schedule's user holds: stable names of blocks, loops and sampled integers, and `Value`,
// the dynamic form of every argument and result (what bindings, traces and documentation speak). A
// BlockRef is a block's id, a LoopRef a loop's variable; both survive every rewrite that keeps the
// thing they name.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/json.h"
#include "weft/ir/node.h"

namespace weft::schedule {

struct BlockRef {
  std::uint64_t id = 0;
  bool operator==(const BlockRef&) const = default;
};

struct LoopRef {
  ir::Var var;
  bool operator==(const LoopRef& other) const { return var.get() == other.var.get(); }
};

/// An integer argument: a literal (id 0), or the result of a sampling step.
struct IntRef {
  std::int64_t value = 0;
  std::int64_t id = 0;
  IntRef() = default;
  IntRef(int literal) : value(literal) {}
  IntRef(std::int64_t literal) : value(literal) {}
  IntRef(std::int64_t sampled, std::int64_t name) : value(sampled), id(name) {}
  bool operator==(const IntRef&) const = default;
};

/// One factor of a split; absent: inferred.
using Factor = std::optional<IntRef>;
using Factors = std::vector<Factor>;

/// Steps that take either.
using BlockOrLoop = std::variant<BlockRef, LoopRef>;
/// blockize: a nest, or blocks that stand one after the other.
using LoopOrBlocks = std::variant<LoopRef, std::vector<BlockRef>>;

/// inputs -> outputs, as in `lambda i, j: (i // 16, j, i % 16)`.
struct IndexMap {
  std::vector<ir::Var> inputs;
  ir::Exprs outputs;
  /// "lambda i, j: (i // 16, j, i % 16)".
  std::string text() const;
  /// Inverse of text(). Throws Error(parse, "schedule.index_map.syntax").
  static IndexMap parse(std::string_view text);
};

/// Any argument or result.
struct Value {
  using List = std::vector<Value>;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, BlockRef, LoopRef, IntRef,
               List, Json, IndexMap>
      data;

  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool v) : data(v) {}
  Value(int v) : data(static_cast<std::int64_t>(v)) {}
  Value(std::int64_t v) : data(v) {}
  Value(double v) : data(v) {}
  Value(const char* v) : data(std::string(v)) {}
  Value(std::string v) : data(std::move(v)) {}
  Value(BlockRef v) : data(v) {}
  Value(LoopRef v) : data(std::move(v)) {}
  Value(IntRef v) : data(v) {}
  Value(List v) : data(std::move(v)) {}
  Value(Json v) : data(std::move(v)) {}
  Value(IndexMap v) : data(std::move(v)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(data); }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
};

}  // namespace weft::schedule
