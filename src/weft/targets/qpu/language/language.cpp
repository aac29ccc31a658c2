// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/language/language.h"

#include <utility>

#include "weft/base/error.h"

namespace weft::qpu {

using ast::Stmt;

namespace detail {
void assign(std::uint32_t var, const ast::Expr* value) {
  Stmt& s = b("an assignment").append(Stmt::Op::assign);
  s.var = var;
  s.value = value;
}

void store_to(const ast::Expr* address, const ast::Expr* value, const ast::Expr* count,
              const Here& here) {
  Builder& builder = b("store");
  builder.at(here);
  Stmt& s = builder.append(Stmt::Op::store);
  s.address = address;
  s.value = value;
  s.count = count;
}

void gather_from(const ast::Expr* address, const Here& here) {
  b("gather").at(here);
  b("gather").append(Stmt::Op::gather).address = address;
}

void receive_into(std::uint32_t var, const Here& here) {
  b("receive").at(here);
  b("receive").append(Stmt::Op::receive).var = var;
}

namespace {
void semaphore(Stmt::Op op, int number, const Here& here) {
  b("a semaphore").at(here);
  if (number < 0 || number > 15) {
    throw Error(ErrorKind::value, "qpu.language.semaphore", cat("there is no semaphore ", number))
        .note("legal: 0 to 15");
  }
  b("a semaphore").append(op).var = static_cast<std::uint32_t>(number);
}
}  // namespace
}  // namespace detail

void flush(Here here) {
  detail::b("flush").at(here);
  detail::b("flush").append(Stmt::Op::flush);
}
void setReadStride(IntExpr n, Here here) {
  detail::b("setReadStride").at(here);
  detail::b("setReadStride").append(Stmt::Op::read_stride).value = n.expr;
}
void setWriteStride(IntExpr n, Here here) {
  detail::b("setWriteStride").at(here);
  detail::b("setWriteStride").append(Stmt::Op::write_stride).value = n.expr;
}
void semaInc(int number, Here here) { detail::semaphore(Stmt::Op::semaphore_up, number, here); }
void semaDec(int number, Here here) { detail::semaphore(Stmt::Op::semaphore_down, number, here); }
void hostIRQ(Here here) {
  detail::b("hostIRQ").at(here);
  detail::b("hostIRQ").append(Stmt::Op::host_interrupt);
}
void Print(const char* text, Here here) {
  detail::b("Print").at(here);
  detail::b("Print").append(Stmt::Op::print_text).text = text;
}
void Print(IntExpr x, Here here) {
  detail::b("Print").at(here);
  detail::b("Print").append(Stmt::Op::print_int).value = x.expr;
}
void Print(UintExpr x, Here here) {
  detail::b("Print").at(here);
  detail::b("Print").append(Stmt::Op::print_uint).value = x.expr;
}
void Print(FloatExpr x, Here here) {
  detail::b("Print").at(here);
  detail::b("Print").append(Stmt::Op::print_float).value = x.expr;
}

void barrier(Here here) {
  // Two phases, each: QPU 0 takes one arrival of every other QPU, then lets each go. The second
  // phase keeps a fast QPU from taking, in the next barrier, a departure meant for a slow one in
  // this.
  flush(here);
  for (auto [arrive, leave] : {std::pair{12, 13}, std::pair{14, 11}}) {
    If_(any(me() == 0), here);
    Int i = 1;
    While_(any(i < numQPUs()), here);
    semaDec(arrive, here);
    i = i + 1;
    End_(here);
    i = 1;
    While_(any(i < numQPUs()), here);
    semaInc(leave, here);
    i = i + 1;
    End_(here);
    Else_(here);
    semaInc(arrive, here);
    semaDec(leave, here);
    End_(here);
  }
}

void If_(Cond c, Here here) {
  detail::b("If").at(here);
  detail::b("If").open(Stmt::Op::if_, c.cond, c.all);
}
void While_(Cond c, Here here) {
  detail::b("While").at(here);
  detail::b("While").open(Stmt::Op::while_, c.cond, c.all);
}
void For_(Cond c, Here here) {
  detail::b("For").at(here);
  detail::b("For").open_for(c.cond, c.all);
}
void ForBody_() { detail::b("For").for_body(); }
void Where_(BoolExpr b, Here here) {
  detail::b("Where").at(here);
  detail::b("Where").open(Stmt::Op::where, b.cond, false);
}
void Else_(Here here) {
  detail::b("Else").at(here);
  detail::b("Else").otherwise();
}
void End_(Here here) {
  detail::b("End").at(here);
  detail::b("End").close();
}

// Division. The SFU gives about 12 bits; each Newton step r * (2 - x * r) doubles them.
FloatExpr recipFull(FloatExpr x) {
  FloatExpr r = recip(x);
  r = r * (FloatExpr(2) - x * r);
  return r * (FloatExpr(2) - x * r);
}

FloatExpr operator/(FloatExpr x, FloatExpr y) {
  FloatExpr r = recipFull(y), q = x * r;
  return q + r * (x - q * y);
}

namespace {
FloatExpr unsigned_to_float(UintExpr x) {
  // itof reads a sign: halves are exact enough, both below 2^16.
  return toFloat(toInt(x >> UintExpr(16))) * FloatExpr(65536) +
         toFloat(toInt(x & UintExpr(0xffff)));
}
}  // namespace

UintExpr operator/(UintExpr x, UintExpr y) {
  // A float estimate that is never too high, what it leaves out divided again, twice; then at most
  // one step.
  FloatExpr r = recipFull(unsigned_to_float(y)) * FloatExpr(1.0 - 1.0 / (1 << 20));
  auto estimate = [&](UintExpr n) {
    FloatExpr f = unsigned_to_float(n) * r;
    FloatExpr high = f * FloatExpr(1.0 / 65536);  // ftoi is signed: split at 2^16
    IntExpr h = toInt(high);
    return toUint((h << IntExpr(16)) + toInt(f - toFloat(h) * FloatExpr(65536)));
  };
  UintExpr q = estimate(x);
  for (int step = 0; step < 2; ++step) {
    UintExpr left = x - q * y;
    q = q + estimate(left);
  }
  UintExpr left = x - q * y;
  q = select(left >= y, q + UintExpr(1), q);
  left = x - q * y;
  return select(left >= y, q + UintExpr(1), q);
}

UintExpr operator%(UintExpr x, UintExpr y) { return x - (x / y) * y; }

IntExpr operator/(IntExpr x, IntExpr y) {
  IntExpr sx = x >> IntExpr(31), sy = y >> IntExpr(31), s = sx ^ sy;
  UintExpr q = toUint((x ^ sx) - sx) / toUint((y ^ sy) - sy);
  return (toInt(q) ^ s) - s;
}

IntExpr operator%(IntExpr x, IntExpr y) { return x - (x / y) * y; }

}  // namespace weft::qpu
