// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a primitive's `fields` to everything generic: dynamic arguments, their checks,
// documentation. A primitive is a plain struct:
//
//   struct Split {
//     static constexpr std::string_view kName = "split", kDoc = "...";
//     using Result = std::vector<LoopRef>;
//     LoopRef loop; ...                            // members, defaults = default arguments
//     static void fields(auto&& f) { f("loop", &Split::loop, "the loop to divide"); ... }
//     Verdict transform(const State&, Outcome<Result>&) const;   // check and rewrite, changing
//     nothing
//   };

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/schedule/refs.h"
#include "weft/schedule/state.h"

namespace weft::schedule {

enum class Field : std::uint8_t { required, optional, variadic };

struct FieldInfo {
  std::string_view name, type, doc;
  Field mode = Field::required;
  Value otherwise;  // the default of an optional field
};

/// Buffer of a block: ("read", i), ("write", i) or a buffer's name.
struct BufferChoice {
  std::string kind;  // "read", "write" or "name"
  std::int64_t index = 0;
  std::string name;
};

// One conversion per type a field may have. from_value answers false when the value does not fit.
#define WEFT_FIELD_TYPE(T, spelling)                               \
  inline std::string_view type_name(const T*) { return spelling; } \
  Value to_value(const T& v);                                      \
  bool from_value(const Value& v, T& out);

WEFT_FIELD_TYPE(BlockRef, "block")
WEFT_FIELD_TYPE(LoopRef, "loop")
WEFT_FIELD_TYPE(BlockOrLoop, "block or loop")
WEFT_FIELD_TYPE(LoopOrBlocks, "loop or list of block")
WEFT_FIELD_TYPE(IntRef, "int")
WEFT_FIELD_TYPE(std::int64_t, "int")
WEFT_FIELD_TYPE(bool, "bool")
WEFT_FIELD_TYPE(std::string, "str")
WEFT_FIELD_TYPE(Json, "value")
WEFT_FIELD_TYPE(IndexMap, "index map")
WEFT_FIELD_TYPE(BufferChoice, "(\"read\" | \"write\", int) or buffer name")
WEFT_FIELD_TYPE(Factor, "int or None")
WEFT_FIELD_TYPE(Factors, "list of int or None")
WEFT_FIELD_TYPE(std::vector<BlockRef>, "list of block")
WEFT_FIELD_TYPE(std::vector<LoopRef>, "list of loop")
WEFT_FIELD_TYPE(std::vector<IntRef>, "list of int")
WEFT_FIELD_TYPE(std::vector<std::int64_t>, "list of int")
WEFT_FIELD_TYPE(std::vector<double>, "list of float")
WEFT_FIELD_TYPE(Done, "None")
#undef WEFT_FIELD_TYPE

/// Arguments by field, in the order of `fields`; absent: default.
using Arguments = std::vector<std::optional<Value>>;

void add_field(std::vector<FieldInfo>& to, std::string_view name, std::string_view type,
               std::string_view doc, Field mode, Value otherwise);

template <typename S>
const std::vector<FieldInfo>& fields_of() {
  static const std::vector<FieldInfo> info = [] {
    std::vector<FieldInfo> out;
    const S defaults{};
    S::fields([&](std::string_view name, auto member, std::string_view doc,
                  Field mode = Field::required) {
      add_field(out, name, type_name(&(defaults.*member)), doc, mode,
                mode == Field::optional ? to_value(defaults.*member) : Value());
    });
    return out;
  }();
  return info;
}

template <typename S>
Value::List values_of(const S& step) {
  Value::List out;
  S::fields([&](std::string_view, auto member, std::string_view, Field = Field::required) {
    out.push_back(to_value(step.*member));
  });
  return out;
}

// Errors are Error(schedule, "schedule.argument.*").
/// The argument of a field; null: the default is taken. Throws where a required one is missing.
const Value* given_argument(std::string_view step, const std::vector<FieldInfo>& fields,
                            const Arguments& args, std::size_t index);
[[noreturn]] void wrong_argument(std::string_view step, const FieldInfo& field, const Value& value);

template <typename S>
S step_from(const Arguments& args) {
  S step{};
  const std::vector<FieldInfo>& fields = fields_of<S>();
  std::size_t i = 0;
  S::fields([&](std::string_view, auto member, std::string_view, Field = Field::required) {
    const std::size_t index = i++;
    const Value* value = given_argument(S::kName, fields, args, index);
    if (value && !from_value(*value, step.*member)) wrong_argument(S::kName, fields[index], *value);
  });
  return step;
}

}  // namespace weft::schedule
