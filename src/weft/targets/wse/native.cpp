// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/native.h"

#include <map>
#include <set>

#include "weft/base/text.h"
#include "weft/targets/wse/arith.h"

namespace weft::wse {

namespace {

// What generated code calls for the rare or difficult: the interpreter's own functions.
std::uint64_t native_float_op(std::uint32_t op, std::uint32_t ty, std::uint64_t a, std::uint64_t b,
                              std::uint64_t c) {
  return float_op(static_cast<Op>(op), static_cast<Ty>(ty), a, b, c);
}
std::uint64_t native_convert(std::uint32_t to, std::uint32_t from, std::uint64_t bits) {
  return convert(static_cast<Ty>(to), static_cast<Ty>(from), bits);
}
std::uint64_t native_math(std::uint32_t fn, std::uint32_t ty, std::uint64_t a, std::uint64_t b) {
  return math_call(static_cast<MathFn>(fn), static_cast<Ty>(ty), a, b);
}
double native_double(std::uint32_t ty, std::uint64_t bits) {
  return to_double(static_cast<Ty>(ty), bits);
}

bool is_scalar_op(Op op) {
  switch (op) {
    case Op::nop:
    case Op::ldi:
    case Op::ldc:
    case Op::mov:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::band:
    case Op::bor:
    case Op::bxor:
    case Op::shl:
    case Op::shr:
    case Op::neg:
    case Op::bnot:
    case Op::lnot:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
    case Op::fma:
    case Op::cvt:
    case Op::cast:
    case Op::math1:
    case Op::math2:
    case Op::ld:
    case Op::st:
    case Op::ldx:
    case Op::stx:
    case Op::ldg:
    case Op::stg:
    case Op::frame:
    case Op::jmp:
    case Op::jz:
    case Op::jnz:
    case Op::check:
    case Op::coord: return true;
    default: return false;
  }
}

bool ends_block(Op op) { return op == Op::jmp || op == Op::jz || op == Op::jnz; }

class Emitter {
 public:
  Emitter(const Program& program, const Timing& timing, std::int64_t quantum, bool all)
      : program_(program), timing_(timing), quantum_(quantum), all_(all) {}

  std::string text(NativeProgram& out) {
    out_ =
        "declare i64 @weft_float_op(i32, i32, i64, i64, i64)\n"
        "declare i64 @weft_convert(i32, i32, i64)\n"
        "declare i64 @weft_math(i32, i32, i64, i64)\n"
        "declare double @weft_double(i32, i64)\n"
        "declare float @llvm.fma.f32(float, float, float)\n";
    for (std::size_t k = 0; k < program_.functions.size(); ++k) {
      out.functions.emplace_back();
      if (all_ || worth(program_.functions[k])) function(k, out.functions.back());
    }
    return std::move(out_);
  }

 private:
  /// A function without a backward jump among scalar instructions gains nothing.
  static bool worth(const wse::Function& fn) {
    for (std::size_t k = 0; k < fn.code.size(); ++k) {
      const Insn& i = fn.code[k];
      if (ends_block(i.op) && i.imm() >= 0 && static_cast<std::size_t>(i.imm()) <= k) return true;
    }
    return false;
  }

  void line(std::string s) {
    out_ += "  ";
    out_ += s;
    out_ += '\n';
  }
  std::string value(std::string expression) {
    std::string v = cat("%v", next_++);
    line(cat(v, " = ", expression));
    return v;
  }
  // Small functions keep registers in SSA values (`flat_` false); in large ones that would make a
  // phi per register and block, so their registers stay in memory and only a block caches them.
  std::string reg(std::uint16_t r) {
    if (!flat_) return value(cat("load i64, ptr %r", r));
    auto it = cached_.find(r);
    if (it != cached_.end()) return it->second;
    std::string p = value(cat("getelementptr i64, ptr %regs, i64 ", r));
    return cached_[r] = value(cat("load i64, ptr ", p));
  }
  void set(std::uint16_t r, const std::string& v) {
    if (!flat_) return line(cat("store i64 ", v, ", ptr %r", r));
    cached_[r] = v;
    dirty_.insert(r);
  }
  /// Puts what the block has changed back into memory.
  void flush() {
    for (std::uint16_t r : dirty_) {
      std::string p = value(cat("getelementptr i64, ptr %regs, i64 ", r));
      line(cat("store i64 ", cached_[r], ", ptr ", p));
    }
    dirty_.clear();
  }

  std::string canonical(Ty ty, const std::string& v) {
    int bits = bits_of_type(ty);
    if (ty == Ty::b1) return value(cat("and i64 ", v, ", 1"));
    if (bits == 64) return v;
    if (!is_signed(ty)) return value(cat("and i64 ", v, ", ", (1ull << bits) - 1));
    std::string low = value(cat("trunc i64 ", v, " to i", bits));
    return value(cat("sext i", bits, " ", low, " to i64"));
  }
  std::string as_float(const std::string& v) {
    std::string low = value(cat("trunc i64 ", v, " to i32"));
    return value(cat("bitcast i32 ", low, " to float"));
  }
  std::string from_float(const std::string& v) {
    std::string bits = value(cat("bitcast float ", v, " to i32"));
    std::string number = value(cat("fcmp ord float ", v, ", ", v));
    std::string wide = value(cat("zext i32 ", bits, " to i64"));
    return value(cat("select i1 ", number, ", i64 ", wide, ", i64 ", kNan32));
  }

  void function(std::size_t index, NativeProgram::Entry& entry) {
    const wse::Function& fn = program_.functions[index];
    std::size_t n = fn.code.size();
    entry.leader.assign(n + 1, 0);
    std::vector<std::uint8_t> head(n + 1, 0);
    head[0] = 1;
    std::set<std::uint16_t> used, written;
    for (std::size_t k = 0; k < n; ++k) {
      const Insn& i = fn.code[k];
      if (ends_block(i.op)) {
        if (i.imm() >= 0 && static_cast<std::size_t>(i.imm()) < n)
          head[static_cast<std::size_t>(i.imm())] = 1;
        head[k + 1] = 1;
      } else if (!is_scalar_op(i.op)) {
        head[k + 1] = 1;
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      const Insn& i = fn.code[k];
      if (!is_scalar_op(i.op)) continue;
      collect(i, used, written);
      if (head[k]) entry.leader[k] = 1;
    }
    next_ = 0;
    out_ += cat("define void @f", index, "(ptr %s) {\nentry:\n");
    std::size_t leaders = 0;
    for (std::uint8_t l : entry.leader) leaders += l;
    flat_ = used.size() * leaders > 400;
    if (!flat_) {
      for (std::uint16_t r : used) line(cat("%r", r, " = alloca i64"));
    }
    line("%cycles = alloca i64");
    line("%budget = alloca i64");
    line("%exit_pc = alloca i64");
    line("%part_cycles = alloca i64");
    line("%part_count = alloca i64");
    exits_.clear();
    line("%regs = load ptr, ptr %s");
    field("memory", 8, "ptr");
    field("bytes", 16, "i64");
    field("start", 24, "i64");
    field("cycles0", 32, "i64");
    field("budget0", 40, "i64");
    line("store i64 %cycles0, ptr %cycles");
    line("store i64 %budget0, ptr %budget");
    line("store i64 %start, ptr %exit_pc");
    for (std::uint16_t r : used) {
      if (flat_) break;
      std::string p = value(cat("getelementptr i64, ptr %regs, i64 ", r));
      std::string v = value(cat("load i64, ptr ", p));
      line(cat("store i64 ", v, ", ptr %r", r));
    }
    std::string cases;
    for (std::size_t k = 0; k < n; ++k) {
      if (entry.leader[k]) cases += cat(" i64 ", k, ", label %b", k);
    }
    line(cat("switch i64 %start, label %leave [", cases, " ]"));
    for (std::size_t k = 0; k < n;) {
      if (!entry.leader[k]) {
        ++k;
        continue;
      }
      std::size_t end = k;
      while (end < n && is_scalar_op(fn.code[end].op)) {
        bool last = ends_block(fn.code[end].op);
        ++end;
        if (last || (end < n && head[end])) break;
      }
      block(fn, k, end, entry);
      k = end;
    }
    out_ += exits_;
    out_ += "partly:\n";
    {
      std::string c = value("load i64, ptr %cycles"), d = value("load i64, ptr %part_cycles");
      line(cat("store i64 ", value(cat("add i64 ", c, ", ", d)), ", ptr %cycles"));
      std::string b = value("load i64, ptr %budget"), part = value("load i64, ptr %part_count");
      line(cat("store i64 ", value(cat("sub i64 ", b, ", ", part)), ", ptr %budget"));
    }
    line("br label %leave");
    out_ += "leave:\n";
    for (std::uint16_t r : written) {
      if (flat_) break;
      std::string v = reg(r);
      std::string p = value(cat("getelementptr i64, ptr %regs, i64 ", r));
      line(cat("store i64 ", v, ", ptr ", p));
    }
    for (auto [name, offset] :
         {std::pair{"exit_pc", 24}, std::pair{"cycles", 32}, std::pair{"budget", 40}}) {
      std::string v = value(cat("load i64, ptr %", name));
      std::string p = value(cat("getelementptr i8, ptr %s, i64 ", offset));
      line(cat("store i64 ", v, ", ptr ", p));
    }
    line("ret void");
    out_ += "}\n";
    entry.run = reinterpret_cast<NativeProgram::Run*>(1);  // found once the code is loaded
  }

  void field(std::string_view name, int offset, std::string_view type) {
    line(cat("%p_", name, " = getelementptr i8, ptr %s, i64 ", offset));
    line(cat("%", name, " = load ", type, ", ptr %p_", name));
  }

  static void collect(const Insn& i, std::set<std::uint16_t>& used,
                      std::set<std::uint16_t>& written) {
    auto in = [&](int r) { used.insert(static_cast<std::uint16_t>(r)); };
    auto to = [&](int r) {
      used.insert(static_cast<std::uint16_t>(r));
      written.insert(static_cast<std::uint16_t>(r));
    };
    switch (i.op) {
      case Op::nop:
      case Op::jmp: break;
      case Op::jz:
      case Op::jnz:
      case Op::check:
      case Op::stg: in(i.a); break;
      case Op::ldi:
      case Op::ldc:
      case Op::ldg:
      case Op::frame:
      case Op::coord: to(i.a); break;
      case Op::st:
        in(i.a);
        in(i.b);
        break;
      case Op::stx:
        in(i.a);
        in(i.b);
        in(i.c);
        break;
      case Op::mov:
      case Op::neg:
      case Op::bnot:
      case Op::lnot:
      case Op::cvt:
      case Op::cast:
      case Op::math1:
      case Op::ld:
        in(i.b);
        to(i.a);
        break;
      case Op::math2:
        in(i.b);
        in(i.b + 1);
        to(i.a);
        break;
      default:
        in(i.b);
        in(i.c);
        to(i.a);
        break;
    }
  }

  std::int64_t cost(const Insn& i, bool taken) const {
    Ty ty = static_cast<Ty>(i.ty);
    switch (i.op) {
      case Op::nop: return 0;
      case Op::ldi:
      case Op::ldc:
      case Op::mov: return timing_.folded;
      case Op::add:
      case Op::sub:
      case Op::mul: return is_float(ty) ? timing_.fp_dependent : timing_.alu;
      case Op::fma: return timing_.fp_dependent;
      case Op::div:
      case Op::rem: return timing_.div;
      case Op::math1:
      case Op::math2: return timing_.math;
      case Op::ld:
      case Op::st:
      case Op::ldx:
      case Op::stx:
      case Op::ldg:
      case Op::stg: return timing_.mem;
      case Op::jmp: return timing_.branch_taken;
      case Op::jz:
      case Op::jnz: return taken ? timing_.branch_taken : timing_.branch_not;
      default: return timing_.alu;
    }
  }

  /// Books what lies between the block's head and instruction `k`.
  void book(std::int64_t cycles, std::size_t instructions) {
    std::string c = value("load i64, ptr %cycles");
    line(cat("store i64 ", value(cat("add i64 ", c, ", ", cycles)), ", ptr %cycles"));
    std::string b = value("load i64, ptr %budget");
    line(cat("store i64 ", value(cat("sub i64 ", b, ", ", instructions)), ", ptr %budget"));
  }
  void leave(std::size_t pc) {
    line(cat("store i64 ", pc, ", ptr %exit_pc"));
    line("br label %leave");
  }
  void go(const NativeProgram::Entry& entry, std::size_t pc) {
    if (pc < entry.leader.size() && entry.leader[pc]) line(cat("br label %b", pc));
    else leave(pc);
  }
  /// Leaves to the interpreter at instruction `k` unless `ok`.
  void guard(const std::string& ok, std::size_t k) {
    flush();
    std::string tag = cat(guards_++);
    line(cat("br i1 ", ok, ", label %g", tag, ", label %x", tag));
    exits_ += cat("x", tag, ":\n  store i64 ", k, ", ptr %exit_pc\n  store i64 ", spent_,
                  ", ptr %part_cycles\n  store i64 ", k - head_,
                  ", ptr %part_count\n  br label %partly\n");
    out_ += cat("g", tag, ":\n");
  }

  void block(const wse::Function& fn, std::size_t from, std::size_t to,
             const NativeProgram::Entry& entry) {
    std::size_t n = to - from;
    std::int64_t before_last = 0;
    for (std::size_t k = from; k + 1 < to; ++k) before_last += cost(fn.code[k], false);
    out_ += cat("b", from, ":\n");
    // The interpreter would cut the run before instruction k when its cycles exceed the quantum or
    // the budget is used up.
    std::string c = value("load i64, ptr %cycles"), b = value("load i64, ptr %budget");
    std::string c_ok = value(cat("icmp sle i64 ", c, ", ", quantum_ - before_last));
    std::string b_ok = value(cat("icmp sge i64 ", b, ", ", n));
    std::string ok = value(cat("and i1 ", c_ok, ", ", b_ok));
    head_ = from;
    spent_ = 0;
    cached_.clear();
    guard(ok, from);
    for (std::size_t k = from; k < to; ++k) {
      const Insn& i = fn.code[k];
      if (i.op == Op::jmp) {
        flush();
        book(spent_ + cost(i, true), n);
        go(entry, static_cast<std::size_t>(i.imm()));
        return;
      }
      if (i.op == Op::jz || i.op == Op::jnz) {
        std::string zero = value(cat("icmp eq i64 ", reg(i.a), ", 0"));
        flush();
        std::string branch = cat(guards_++);
        bool on_zero = i.op == Op::jz;
        line(cat("br i1 ", zero, ", label %", on_zero ? "t" : "n", branch, ", label %",
                 on_zero ? "n" : "t", branch));
        out_ += cat("t", branch, ":\n");
        book(spent_ + cost(i, true), n);
        go(entry, static_cast<std::size_t>(i.imm()));
        out_ += cat("n", branch, ":\n");
        book(spent_ + cost(i, false), n);
        go(entry, k + 1);
        return;
      }
      instruction(i, k);
      spent_ += cost(i, false);
    }
    flush();
    book(spent_, n);
    go(entry, to);
  }

  /// Address of `bytes` bytes of memory at `at` (64 bits wide), guarded.
  std::string address(std::string at, int bytes, std::size_t k) {
    std::string low = value(cat("and i64 ", at, ", 65535"));
    std::string end = value(cat("add i64 ", low, ", ", bytes));
    guard(value(cat("icmp ule i64 ", end, ", %bytes")), k);
    return value(cat("getelementptr i8, ptr %memory, i64 ", low));
  }
  void load(std::uint16_t to, Ty ty, const std::string& p) {
    int bits = bits_of_type(ty);
    std::string v = value(cat("load i", bits, ", ptr ", p, ", align 1"));
    if (bits < 64) v = value(cat(is_signed(ty) ? "sext" : "zext", " i", bits, " ", v, " to i64"));
    if (ty == Ty::b1) v = value(cat("and i64 ", v, ", 1"));
    set(to, v);
  }
  void store(std::uint16_t from, Ty ty, const std::string& p) {
    int bits = bits_of_type(ty);
    std::string v = reg(from);
    if (bits < 64) v = value(cat("trunc i64 ", v, " to i", bits));
    line(cat("store i", bits, " ", v, ", ptr ", p, ", align 1"));
  }

  void instruction(const Insn& i, std::size_t k) {
    Ty ty = static_cast<Ty>(i.ty);
    auto integer = [&](std::string_view op) {
      std::string b = reg(i.b), c = reg(i.c);
      set(i.a, canonical(ty, value(cat(op, " i64 ", b, ", ", c))));
    };
    auto slow = [&](bool three) {
      std::string a = three ? reg(i.a) : reg(i.b), b = three ? reg(i.b) : reg(i.c);
      std::string c = three ? reg(i.c) : "0";
      set(i.a, value(cat("call i64 @weft_float_op(i32 ", static_cast<int>(i.op), ", i32 ", i.ty,
                         ", i64 ", a, ", i64 ", b, ", i64 ", c, ")")));
    };
    auto real = [&](std::string_view op) {
      if (ty != Ty::f32) return slow(false);
      std::string b = as_float(reg(i.b)), c = as_float(reg(i.c));
      set(i.a, from_float(value(cat(op, " float ", b, ", ", c))));
    };
    switch (i.op) {
      case Op::ldi: set(i.a, cat(static_cast<std::int64_t>(i.imm()))); break;
      case Op::ldc:
        set(i.a,
            cat(static_cast<std::int64_t>(program_.constants[static_cast<std::size_t>(i.imm())])));
        break;
      case Op::mov: set(i.a, reg(i.b)); break;
      case Op::add: is_float(ty) ? real("fadd") : integer("add"); break;
      case Op::sub: is_float(ty) ? real("fsub") : integer("sub"); break;
      case Op::mul: is_float(ty) ? real("fmul") : integer("mul"); break;
      case Op::div:
      case Op::rem: {
        if (is_float(ty)) {
          i.op == Op::div ? real("fdiv") : slow(false);
          break;
        }
        std::string b = reg(i.b), c = reg(i.c);
        guard(value(cat("icmp ne i64 ", c, ", 0")), k);
        if (is_signed(ty)) guard(value(cat("icmp ne i64 ", c, ", -1")), k);
        std::string_view op =
            i.op == Op::div ? (is_signed(ty) ? "sdiv" : "udiv") : (is_signed(ty) ? "srem" : "urem");
        std::string v = value(cat(op, " i64 ", b, ", ", c));
        set(i.a, is_signed(ty) ? canonical(ty, v) : v);
        break;
      }
      case Op::band:
      case Op::bor: {
        std::string b = reg(i.b), c = reg(i.c);
        set(i.a, value(cat(i.op == Op::band ? "and" : "or", " i64 ", b, ", ", c)));
        break;
      }
      case Op::bxor: integer("xor"); break;
      case Op::shl:
      case Op::shr: {
        std::string b = reg(i.b), c = reg(i.c);
        bool keep_sign = i.op == Op::shr && is_signed(ty);
        int limit = keep_sign ? 64 : bits_of_type(ty);
        std::string fits = value(cat("icmp ult i64 ", c, ", ", limit));
        std::string count =
            value(cat("select i1 ", fits, ", i64 ", c, ", i64 ", keep_sign ? 63 : 0));
        std::string v = value(cat(i.op == Op::shl ? "shl"
                                  : keep_sign     ? "ashr"
                                                  : "lshr",
                                  " i64 ", b, ", ", count));
        if (i.op == Op::shl) v = canonical(ty, v);
        set(i.a, keep_sign ? v : value(cat("select i1 ", fits, ", i64 ", v, ", i64 0")));
        break;
      }
      case Op::neg:
        if (is_float(ty)) {
          set(i.a, value(cat("xor i64 ", reg(i.b), ", ", ty == Ty::f32 ? 0x80000000ll : 0x8000ll)));
        } else {
          set(i.a, canonical(ty, value(cat("sub i64 0, ", reg(i.b)))));
        }
        break;
      case Op::bnot: set(i.a, canonical(ty, value(cat("xor i64 ", reg(i.b), ", -1")))); break;
      case Op::lnot: {
        std::string zero = value(cat("icmp eq i64 ", reg(i.b), ", 0"));
        set(i.a, value(cat("zext i1 ", zero, " to i64")));
        break;
      }
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge: set(i.a, value(cat("zext i1 ", comparison(i, ty), " to i64"))); break;
      case Op::fma:
        if (ty == Ty::f32) {
          std::string a = as_float(reg(i.a)), b = as_float(reg(i.b)), c = as_float(reg(i.c));
          set(i.a, from_float(value(cat("call float @llvm.fma.f32(float ", b, ", float ", c,
                                        ", float ", a, ")"))));
        } else {
          slow(true);
        }
        break;
      case Op::cvt: {
        Ty from = static_cast<Ty>(i.c);
        std::string b = reg(i.b);
        if (!is_float(ty) && !is_float(from) && ty != Ty::b1) {
          set(i.a, canonical(ty, b));
        } else {
          set(i.a,
              value(cat("call i64 @weft_convert(i32 ", i.ty, ", i32 ", i.c, ", i64 ", b, ")")));
        }
        break;
      }
      case Op::cast: set(i.a, canonical(ty, reg(i.b))); break;
      case Op::math1:
      case Op::math2: {
        std::string b = reg(i.b),
                    c = i.op == Op::math2 ? reg(static_cast<std::uint16_t>(i.b + 1)) : "0";
        set(i.a, value(cat("call i64 @weft_math(i32 ", i.c, ", i32 ", i.ty, ", i64 ", b, ", i64 ",
                           c, ")")));
        break;
      }
      case Op::ld:
        load(i.a, ty, address(value(cat("add i64 ", reg(i.b), ", ", i.c)), size_of(ty), k));
        break;
      case Op::st:
        store(i.a, ty, address(value(cat("add i64 ", reg(i.b), ", ", i.c)), size_of(ty), k));
        break;
      case Op::ldx:
      case Op::stx: {
        std::string b = reg(i.b);
        std::string scaled = value(cat("mul i64 ", reg(i.c), ", ", size_of(ty)));
        std::string p = address(value(cat("add i64 ", b, ", ", scaled)), size_of(ty), k);
        i.op == Op::ldx ? load(i.a, ty, p) : store(i.a, ty, p);
        break;
      }
      case Op::ldg: load(i.a, ty, address(cat(i.imm()), size_of(ty), k)); break;
      case Op::stg: store(i.a, ty, address(cat(i.imm()), size_of(ty), k)); break;
      case Op::frame: {
        line(cat("%q", next_, " = getelementptr i8, ptr %s, i64 48"));
        std::string p = cat("%q", next_++);
        std::string sp = value(cat("load i64, ptr ", p));
        set(i.a, value(cat("and i64 ", value(cat("add i64 ", sp, ", ", i.imm())), ", 65535")));
        break;
      }
      case Op::check: guard(value(cat("icmp ne i64 ", reg(i.a), ", 0")), k); break;
      case Op::coord: {
        int which = i.imm() >= 0 && i.imm() < 3 ? i.imm() : 3;
        line(cat("%q", next_, " = getelementptr i8, ptr %s, i64 ", 56 + 8 * which));
        std::string p = cat("%q", next_++);
        set(i.a, value(cat("load i64, ptr ", p)));
        break;
      }
      default: break;
    }
  }

  std::string comparison(const Insn& i, Ty ty) {
    std::string b = reg(i.b), c = reg(i.c);
    int which = static_cast<int>(i.op) - static_cast<int>(Op::eq);
    if (is_float(ty)) {
      static constexpr const char* kNames[] = {"oeq", "une", "olt", "ole", "ogt", "oge"};
      std::string type = "float", x, y;
      if (ty == Ty::f32) {
        x = as_float(b);
        y = as_float(c);
      } else {
        type = "double";
        x = value(cat("call double @weft_double(i32 ", i.ty, ", i64 ", b, ")"));
        y = value(cat("call double @weft_double(i32 ", i.ty, ", i64 ", c, ")"));
      }
      return value(cat("fcmp ", kNames[which], " ", type, " ", x, ", ", y));
    }
    static constexpr const char* kSigned[] = {"eq", "ne", "slt", "sle", "sgt", "sge"};
    static constexpr const char* kUnsigned[] = {"eq", "ne", "ult", "ule", "ugt", "uge"};
    return value(cat("icmp ", (is_signed(ty) ? kSigned : kUnsigned)[which], " i64 ", b, ", ", c));
  }

  const Program& program_;
  const Timing& timing_;
  std::int64_t quantum_;
  bool all_;
  std::string out_;
  std::string exits_;  // of the function: where guards go
  int next_ = 0, guards_ = 0;
  bool flat_ = false;
  std::map<std::uint16_t, std::string> cached_;
  std::set<std::uint16_t> dirty_;
  std::size_t head_ = 0;
  std::int64_t spent_ = 0;
};

}  // namespace

std::string native_text(const Program& program, const Timing& timing, std::int64_t quantum,
                        bool all, NativeProgram& out) {
  return Emitter(program, timing, quantum, all).text(out);
}

NativeProgram compile_native(const Program& program, const Timing& timing, std::int64_t quantum,
                             bool all) {
  NativeProgram out;
  std::string text = native_text(program, timing, quantum, all, out);
  bool any = false;
  for (const auto& entry : out.functions) any = any || entry.run;
  if (!any) return out;
  jit::CompileOptions options;
  // Long text is translated quickly rather than well: most of it runs seldom.
  bool is_long = text.size() > 60'000;
  options.passes = is_long ? "function(sroa)" : "function(sroa,early-cse,simplifycfg)";
  options.codegen_level = is_long ? 0 : 1;
  out.code = jit::compile(text, options, [](std::string_view name) -> void* {
    if (name == "weft_float_op") return reinterpret_cast<void*>(&native_float_op);
    if (name == "weft_convert") return reinterpret_cast<void*>(&native_convert);
    if (name == "weft_math") return reinterpret_cast<void*>(&native_math);
    if (name == "weft_double") return reinterpret_cast<void*>(&native_double);
    return nullptr;
  });
  for (std::size_t k = 0; k < out.functions.size(); ++k) {
    if (out.functions[k].run)
      out.functions[k].run = out.code->function<NativeProgram::Run>(cat("f", k));
  }
  return out;
}

}  // namespace weft::wse
