// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compile-time values. Small things lie in the value itself; aggregates are shared and copied on
// write, and an array of equal elements is stored once (`splat`), because the arrays of a PE
// program are mostly zeros.

#include <memory>

#include "weft/base/ref.h"
#include "weft/targets/wse/csl/types.h"

namespace weft::wse::csl {

struct Global;
struct Module;
struct Decl;

struct Value;
struct Cell;
struct Aggregate;

struct Value {
  TypeRef type = nullptr;
  const void* p =
      nullptr;   // type: TypeRef; module: Module*; function: Decl*; pointer to a global: Global*
  Int128 i = 0;  // integers, bool, enum, ids, string symbol; pointer: byte offset
  double f = 0;  // floats, rounded to their type
  Ref<RefCounted> obj;  // Aggregate, CellPointer, DsdValue, FifoValue

  bool defined() const { return type != nullptr; }
};

struct Aggregate : RefCounted {
  std::vector<Value> items;  // one item when `splat`
  std::int64_t count = 0;
  bool splat = false;

  const Value& at(std::int64_t k) const { return items[splat ? 0 : static_cast<std::size_t>(k)]; }
  void expand() {
    if (!splat) return;
    splat = false;
    Value v = count > 0 ? items[0] : Value();
    items.assign(static_cast<std::size_t>(count), v);
  }
};

/// A compile-time variable.
struct Cell : RefCounted {
  Value value;
  Global* global = nullptr;  // its copy in the PE's memory, once a run-time address was needed
};

/// A pointer into a compile-time variable.
struct CellPointer : RefCounted {
  Ref<Cell> cell;
  std::vector<std::int64_t> path;
};

/// A descriptor known at compile time; `global` is what `dsd.base` is relative to.
struct DsdValue : RefCounted {
  Dsd dsd;
  Global* global = nullptr;
  TypeRef element = nullptr;  // of the array a memory descriptor was made over
};

/// A compile-time range.
struct RangeValue : RefCounted {
  TypeRef element = nullptr;
  Int128 start = 0, stop = 0, step = 1;
};

inline const Aggregate& aggregate(const Value& v) {
  return *static_cast<const Aggregate*>(v.obj.get());
}
/// Unshares and returns the aggregate of `v` for writing.
Aggregate& mutable_aggregate(Value& v);

double round_to(TypeRef type, double value);
/// Wraps to the width of an integer type.
Int128 wrap_to(TypeRef type, Int128 value);
bool fits(TypeRef type, Int128 value);
/// The 16 or 32 bits of a float value of `type`.
std::uint32_t float_bits(TypeRef type, double value);
double float_from_bits(TypeRef type, std::uint32_t bits);

}  // namespace weft::wse::csl
