// SPDX-License-Identifier: Apache-2.0
#pragma once
// The syntax tree. One node type for everything, because the analyser is one walk that dispatches
// on `kind`. The grammar, with the fields each rule fills:
//
//   file       list = items
//   var_decl   name, a = type or null, b = initialiser or null, c = align, d = linkname; flags
//   param_decl name, a = type or null, b = default or null
//   fn_decl    name, list = fn_param, a = result type, b = body, d = linkname; flags task, inline
//   fn_param   name, a = type or null (anytype); flag comptime
//   layout_block, comptime_block   a = block
//   block      list = statements, name = label
//   assign     op (Tok::assign or the compound operator), a = place, b = value
//   if_        a = condition, b = then, c = else or null
//   while_     a = condition, b = continuation or null, c = body, name = label; flag inline
//   for_       a = iterable, name2 = element, name3 = index, c = body, name = label; flag inline
//   switch_    a = subject, list = switch_arm (list = values, a = body; flag is_else)
//   return_    a or null        break_ name = label, a = value       continue_ name = label
//   ident, integer, floating, string, boolean (value in integer)
//   binary op a b   unary op a   address_of a   deref a   index a list   field a name   call a list
//   builtin    name, list       struct_lit list = field_init (name or 0, a)
//   typed_init a = type, list = field_init
//   array_type list = extents, a = element        pointer_type a; flags many, is_const
//   fn_type    list = types, a = result; flag task
//   struct_type list = field_init (name, a = type, b = default); flags union, packed  enum_type a =
//   underlying, list = field_init tensor_access list = names (ident), list2 = extents, a = index
//   expression comptime_expr a

#include <deque>
#include <vector>

#include "weft/targets/wse/csl/lexer.h"

namespace weft::wse::csl {

enum class Kind : std::uint8_t {
  file,
  var_decl,
  param_decl,
  fn_decl,
  fn_param,
  layout_block,
  comptime_block,
  block,
  assign,
  if_,
  while_,
  for_,
  switch_,
  switch_arm,
  return_,
  break_,
  continue_,
  ident,
  integer,
  floating,
  string,
  boolean,
  binary,
  unary,
  address_of,
  deref,
  index,
  field,
  call,
  builtin,
  struct_lit,
  field_init,
  typed_init,
  array_type,
  pointer_type,
  fn_type,
  struct_type,
  enum_type,
  tensor_access,
  comptime_expr,
  bad,
};

enum NodeFlag : std::uint16_t {
  kConst = 1,
  kVar = 2,
  kExport = 4,
  kExtern = 8,
  kComptime = 16,
  kInline = 32,
  kTask = 64,
  kMany = 128,
  kElse = 256,
  kAnytype = 512,
  kParenthesised = 1024,
  kGlobal = 2048,
  kUnion = 4096,
  kPacked = 8192,
};

struct Node {
  Kind kind = Kind::bad;
  Tok op = Tok::end;
  std::uint16_t flags = 0;
  Pos pos;
  Symbol name = 0, name2 = 0, name3 = 0;
  Node* a = nullptr;
  Node* b = nullptr;
  Node* c = nullptr;
  Node* d = nullptr;
  std::vector<Node*> list;
  std::vector<Node*> list2;
  Int128 integer = 0;
  double floating = 0;
  std::int32_t cache = -1;  // analyser: number of the built-in, once looked up

  bool has(NodeFlag flag) const { return (flags & flag) != 0; }
};

/// Owns the nodes of one file.
struct Ast {
  std::deque<Node> nodes;
  Node* root = nullptr;
};

}  // namespace weft::wse::csl
