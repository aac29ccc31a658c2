// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel language's programs as trees. Every value is a vector of 16 lanes of 32 bits;
// operations say how they read the bits. Expressions have no side effects; nodes live as long as
// their Program.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace weft::qpu::ast {

enum class Op : std::uint8_t {
  constant,
  var,
  element,
  uniform,
  number,  // leaves; uniform: 0 me, 1 count, 2.. parameters
  bit_not,
  itof,
  ftoi,
  clz,
  recip,
  rsqrt,
  exp2,
  log2,  // one operand
  add,
  sub,
  mul,
  mul24,
  fadd,
  fsub,
  fmul,
  fmin,
  fmax,
  min,
  max,
  umin,
  umax,
  shl,
  shr,
  asr,
  ror,
  bit_and,
  bit_or,
  bit_xor,
  rotate,     // b: amount, lane 0
  broadcast,  // value: the lane of a that all lanes get
  deref,      // 16 words from lane 0's address on, through the TMU, with the read stride
  fetch,      // per lane, through the TMU
  vload,      // 16 words from lane 0's address on, through the VPM: sees stores of this launch; b:
              // how many words (lane 0, 1 to 16; null: 16), the lanes beyond are undefined
  select      // cond ? a : b per lane
};

enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge };
enum class Kind : std::uint8_t { integer, uinteger, real };

struct Bool;

struct Expr {
  Op op;
  const Expr* a = nullptr;
  const Expr* b = nullptr;
  std::uint32_t value = 0;     // constant's bits, variable, uniform
  const Bool* cond = nullptr;  // select
};

struct Bool {
  enum class Op : std::uint8_t { compare, both, either, negate } op;
  Compare compare = Compare::eq;
  Kind kind = Kind::integer;
  const Expr* x = nullptr;
  const Expr* y = nullptr;
  const Bool* l = nullptr;
  const Bool* r = nullptr;
};

struct Place {
  const char* file = "";
  int line = 0;
};

struct Stmt {
  enum class Op : std::uint8_t {
    assign,
    gather,
    receive,
    store,
    flush,
    if_,
    while_,
    where,
    print_text,
    print_int,
    print_uint,
    print_float,
    read_stride,
    write_stride,
    semaphore_up,
    semaphore_down,
    host_interrupt,
    barrier
  } op;
  std::uint32_t var = 0;          // assign, receive; semaphores: the number
  const Expr* value = nullptr;    // assign, store, print, strides
  const Expr* address = nullptr;  // gather, store
  const Expr* count = nullptr;    // store: how many elements (null: 16)
  const Bool* cond = nullptr;     // if, while, where
  bool all = false;               // if, while: all lanes instead of any; gather, receive: TMU1
  std::vector<const Stmt*> body, other;
  std::string text;
  Place place;
};

struct Param {
  enum class Kind : std::uint8_t { integer, uinteger, real, pointer } kind;
};

struct Program {
  std::string name = "kernel";
  std::vector<Param> params;
  std::vector<const Stmt*> body;
  std::uint32_t vars = 0;
  std::deque<Expr> exprs;
  std::deque<Bool> bools;
  std::deque<Stmt> stmts;
  std::size_t nodes() const { return exprs.size() + bools.size() + stmts.size(); }
};

}  // namespace weft::qpu::ast
