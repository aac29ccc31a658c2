// SPDX-License-Identifier: Apache-2.0
#pragma once
// The types of the language, interned: equal types are one object (named structs and enums are
// nominal).

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/targets/wse/csl/source.h"
#include "weft/targets/wse/csl/value_int.h"
#include "weft/targets/wse/program.h"

namespace weft::wse::csl {

enum class T : std::uint8_t {
  void_,
  bool_,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  cb16,
  f32,
  comptime_int,
  comptime_float,
  comptime_string,
  type,
  imported_module,
  function,
  comptime_struct,
  range,
  noreturn,
  color,
  input_queue,
  output_queue,
  ut_id,
  local_task_id,
  data_task_id,
  control_task_id,
  direction,
  mem1d_dsd,
  mem4d_dsd,
  circbuf_dsd,
  fabin_dsd,
  fabout_dsd,
  fifo,
  dsr_dest,
  dsr_src0,
  dsr_src1,
  xdsr,
  sr,
  anyopaque,
  access,
  struct_,
  enum_,
  array,
  pointer,
  fn,
  error_,
};

struct Type;
using TypeRef = const Type*;

struct FieldType {
  Symbol name = 0;  // 0: tuple element
  TypeRef type = nullptr;
};

struct Type {
  T kind = T::void_;
  // array: extents and element. pointer: element.
  TypeRef elem = nullptr;
  std::vector<std::int64_t> dims;
  bool is_const = false, many = false;                   // pointer
  bool is_task = false;                                  // fn
  bool named = false;                                    // struct
  bool is_union = false, packed = false;                 // struct
  std::vector<FieldType> fields;                         // struct; fn: parameters
  std::vector<std::pair<Symbol, std::int64_t>> members;  // enum
  std::string name;                                      // named struct or enum
  std::uint32_t size = 0, align = 1;                     // in PE memory; 0: not a run-time type
  bool runtime = false;                                  // may exist at run time
  std::vector<std::uint32_t> offsets;                    // struct; of a packed one in bits
  int width = -1;  // bits where they are not those of `size`: iN, uN, their enums, packed types

  bool is_int() const { return kind >= T::i8 && kind <= T::u64; }
  bool is_signed() const { return kind >= T::i8 && kind <= T::i64; }
  bool is_float() const { return kind >= T::f16 && kind <= T::f32; }
  bool is_any_int() const { return is_int() || kind == T::comptime_int; }
  bool is_any_float() const { return is_float() || kind == T::comptime_float; }
  bool is_number() const { return is_any_int() || is_any_float(); }
  bool is_id() const { return kind >= T::color && kind <= T::control_task_id; }
  bool is_dsd() const { return kind >= T::mem1d_dsd && kind <= T::fabout_dsd; }
  bool is_memory_dsd() const { return kind >= T::mem1d_dsd && kind <= T::circbuf_dsd; }
  bool is_dsr() const { return kind >= T::dsr_dest && kind <= T::xdsr; }
  /// Lives in one scalar register at run time.
  bool is_scalar() const {
    return kind == T::bool_ || is_int() || is_float() || is_id() || kind == T::direction ||
           kind == T::enum_ || kind == T::pointer;
  }
  bool is_aggregate() const { return kind == T::struct_ || kind == T::array; }
  int bits() const { return width >= 0 ? width : static_cast<int>(size) * 8; }
  /// As a field of a packed type.
  std::uint32_t packed_bits() const {
    return kind == T::bool_ ? 1u : static_cast<std::uint32_t>(bits());
  }
  bool is_packed() const { return kind == T::struct_ && packed; }
  std::int64_t count() const;  // array elements
};

class Types {
 public:
  explicit Types(Names& names);
  TypeRef get(T kind) const { return basic_[static_cast<int>(kind)]; }
  TypeRef array(TypeRef elem, std::vector<std::int64_t> dims);
  TypeRef pointer(TypeRef elem, bool is_const, bool many);
  TypeRef structure(std::vector<FieldType> fields);  // anonymous
  TypeRef named_structure(std::string name, std::vector<FieldType> fields, bool is_union,
                          bool packed);
  /// A struct, union or enum without a name is called so in texts.
  void give_name(TypeRef type, const std::string& name);
  TypeRef enumeration(std::string name, TypeRef underlying,
                      std::vector<std::pair<Symbol, std::int64_t>> members);
  TypeRef function(std::vector<TypeRef> params, TypeRef result, bool task);
  std::string text(TypeRef type) const;
  /// The built-in type of this name, or null.
  TypeRef find(std::string_view name) const;
  /// The integer of this many bits (0 to 64), stored in the smallest of 8, 16, 32 and 64 that holds
  /// it.
  TypeRef integer(int bits, bool is_signed);

  TypeRef void_, bool_, i16, i32, u16, u32, f16, f32, comptime_int, comptime_float, comptime_string,
      type, u8, i8, noreturn, direction;

 private:
  TypeRef intern(Type type, std::string key);
  void lay_out(Type& type) const;
  Names& names_;
  std::deque<Type> storage_;
  std::vector<TypeRef> basic_;
  std::unordered_map<std::string, TypeRef> interned_;
  struct FieldsHash {
    std::size_t operator()(const std::vector<FieldType>& fields) const;
  };
  struct FieldsEqual {
    bool operator()(const std::vector<FieldType>& a, const std::vector<FieldType>& b) const;
  };
  std::unordered_map<std::vector<FieldType>, TypeRef, FieldsHash, FieldsEqual> structures_;
};

std::string_view basic_name(T kind);
/// The bytecode type of a scalar.
Ty bytecode_type(TypeRef type);

}  // namespace weft::wse::csl
