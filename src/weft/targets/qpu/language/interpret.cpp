// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/language/interpret.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "weft/targets/qpu/float.h"
#include "weft/targets/qpu/vector.h"

namespace weft::qpu {

namespace {
using ast::Bool;
using ast::Expr;
using ast::Op;
using ast::Stmt;
using hw::Vec;

struct Frame {
  const std::vector<const Stmt*>* list;
  std::size_t at;
  const Stmt* loop;
};

struct Worker {
  int id = 0;
  std::vector<Vec> vars;
  std::vector<Frame> stack;
  std::deque<Vec> fifo[2];  // per TMU
  std::uint32_t read_stride = 0, write_stride = 0;
};

class Interpreter {
 public:
  Interpreter(const ast::Program& p, std::span<const std::uint32_t> params, sim::Memory& memory,
              const InterpretOptions& options)
      : p_(p), params_(params), memory_(memory), options_(options) {}

  void run() {
    std::vector<Worker> workers(static_cast<std::size_t>(options_.qpus));
    for (int q = 0; q < options_.qpus; ++q) {
      Worker& w = workers[static_cast<std::size_t>(q)];
      w.id = q;
      w.vars.assign(p_.vars, Vec{});
      w.stack.push_back({&p_.body, 0, nullptr});
    }
    while (true) {
      bool alive = false, moved = false;
      for (Worker& w : workers) {
        if (w.stack.empty()) continue;
        alive = true;
        while (!w.stack.empty() && step(w)) moved = true;
        if (std::size_t left = w.fifo[0].size() + w.fifo[1].size(); w.stack.empty() && left)
          fail("unread", cat("qpu ", w.id, " ended with ", left, " gathers not received"));
      }
      if (!alive) return;
      if (!moved) fail("deadlock", cat("all ", options_.qpus, " QPUs wait for semaphores"));
    }
  }

 private:
  [[noreturn]] void fail(const char* what, std::string message) {
    throw Error(ErrorKind::fault, cat("qpu.interpret.", what), std::move(message));
  }

  std::uint32_t load(std::uint32_t address) {
    address &= ~3u;
    return memory_.contains(address, 4) ? memory_.load<std::uint32_t>(address) : 0;
  }

  const Vec& eval(const Worker& w, const Expr* e) {
    if (e->op == Op::var) return w.vars[e->value];
    if (auto found = memo_.find(e); found != memo_.end()) return found->second;
    Vec r{};
    Vec a = e->a ? eval(w, e->a) : Vec{}, b = e->b ? eval(w, e->b) : Vec{};
    auto each = [&](auto f) {
      for (unsigned l = 0; l < 16; ++l) r[l] = f(l);
    };
    auto alu = [&](unsigned op) {
      each([&](unsigned l) { return hw::add_lane(op, a[l], b[l]).value; });
    };
    switch (e->op) {
      case Op::constant: each([&](unsigned) { return e->value; }); break;
      case Op::var: break;
      case Op::element: each([&](unsigned l) { return l; }); break;
      case Op::uniform:
        each([&](unsigned) {
          return e->value == 0   ? static_cast<std::uint32_t>(w.id)
                 : e->value == 1 ? static_cast<std::uint32_t>(options_.qpus)
                                 : params_[e->value - 2];
        });
        break;
      case Op::number: each([&](unsigned) { return static_cast<std::uint32_t>(w.id); }); break;
      case Op::bit_not: alu(hw::kNot); break;
      case Op::itof: alu(hw::kItof); break;
      case Op::ftoi: alu(hw::kFtoi); break;
      case Op::clz: alu(hw::kClz); break;
      case Op::recip:
      case Op::rsqrt:
      case Op::exp2:
      case Op::log2:
        each([&](unsigned l) {
          return hw::sfu(
              hw::kWRecip + static_cast<unsigned>(e->op) - static_cast<unsigned>(Op::recip), a[l]);
        });
        break;
      case Op::add: alu(hw::kAdd); break;
      case Op::sub: alu(hw::kSub); break;
      case Op::mul: each([&](unsigned l) { return a[l] * b[l]; }); break;
      case Op::mul24:
        each([&](unsigned l) { return hw::mul_lane(hw::kMul24, a[l], b[l]).value; });
        break;
      case Op::fadd: alu(hw::kFadd); break;
      case Op::fsub: alu(hw::kFsub); break;
      case Op::fmul: each([&](unsigned l) { return hw::fmul(a[l], b[l]); }); break;
      case Op::fmin: alu(hw::kFmin); break;
      case Op::fmax: alu(hw::kFmax); break;
      case Op::min: alu(hw::kMin); break;
      case Op::max: alu(hw::kMax); break;
      case Op::umin: each([&](unsigned l) { return std::min(a[l], b[l]); }); break;
      case Op::umax: each([&](unsigned l) { return std::max(a[l], b[l]); }); break;
      case Op::shl: alu(hw::kShl); break;
      case Op::shr: alu(hw::kShr); break;
      case Op::asr: alu(hw::kAsr); break;
      case Op::ror: alu(hw::kRor); break;
      case Op::bit_and: alu(hw::kAnd); break;
      case Op::bit_or: alu(hw::kOr); break;
      case Op::bit_xor: alu(hw::kXor); break;
      case Op::rotate: each([&](unsigned l) { return a[(l - b[0]) & 15]; }); break;
      case Op::broadcast: each([&](unsigned) { return a[e->value]; }); break;
      case Op::deref:
        each([&](unsigned l) { return load(a[0] + l * 4 * (1 + w.read_stride)); });
        break;
      case Op::fetch: each([&](unsigned l) { return load(a[l]); }); break;
      case Op::vload: {
        unsigned n = e->b ? b[0] : 16;
        each([&](unsigned l) { return l < n ? load(a[0] + l * 4) : 0; });
        break;
      }
      case Op::select: {
        auto c = truth(w, e->cond);
        each([&](unsigned l) { return c >> l & 1 ? a[l] : b[l]; });
        break;
      }
    }
    return memo_.insert_or_assign(e, r).first->second;
  }

  std::uint32_t truth(const Worker& w, const Bool* b) {
    if (b->op == Bool::Op::negate) return ~truth(w, b->l) & 0xffffu;
    if (b->op == Bool::Op::both) return truth(w, b->l) & truth(w, b->r);
    if (b->op == Bool::Op::either) return truth(w, b->l) | truth(w, b->r);
    Vec x = eval(w, b->x), y = eval(w, b->y);
    std::uint32_t out = 0;
    for (unsigned l = 0; l < 16; ++l)
      out |= static_cast<std::uint32_t>(compare(b->kind, b->compare, x[l], y[l])) << l;
    return out;
  }

  static bool compare(ast::Kind kind, ast::Compare c, std::uint32_t x, std::uint32_t y) {
    bool more, less, same = x == y;
    if (kind == ast::Kind::real) {
      more = hw::float_greater(x, y), less = hw::float_greater(y, x);
      same = hw::fsub(x, y) == 0;  // as the flags tell it
    } else if (kind == ast::Kind::uinteger) {
      more = x > y, less = x < y;
    } else {
      more = static_cast<std::int32_t>(x) > static_cast<std::int32_t>(y),
      less = static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y);
    }
    switch (c) {
      case ast::Compare::eq: return same;
      case ast::Compare::ne: return !same;
      case ast::Compare::lt: return less;
      case ast::Compare::le: return !more;
      case ast::Compare::gt: return more;
      default: return !less;
    }
  }

  bool decide(const Worker& w, const Stmt& s) {
    memo_.clear();
    std::uint32_t t = truth(w, s.cond);
    return s.all ? t == 0xffffu : t != 0;
  }

  void where(Worker& w, const Stmt& s, std::uint32_t active) {
    memo_.clear();
    std::uint32_t c = truth(w, s.cond);
    auto part = [&](const std::vector<const Stmt*>& list, std::uint32_t lanes) {
      for (const Stmt* x : list) {
        if (x->op == Stmt::Op::where) {
          where(w, *x, lanes);
          continue;
        }
        memo_.clear();
        Vec v = eval(w, x->value);
        for (unsigned l = 0; l < 16; ++l)
          if (lanes >> l & 1) w.vars[x->var][l] = v[l];
      }
    };
    part(s.body, active & c);
    part(s.other, active & ~c);
  }

  /// False: the QPU must wait.
  bool step(Worker& w) {
    if (++count_ > options_.statements)
      fail("limit", cat("more than ", options_.statements, " statements"));
    Frame& frame = w.stack.back();
    if (frame.at == frame.list->size()) {
      const Stmt* loop = frame.loop;
      if (loop && decide(w, *loop)) {
        frame.at = 0;
      } else {
        w.stack.pop_back();
      }
      return true;
    }
    const Stmt& s = *(*frame.list)[frame.at];
    memo_.clear();
    switch (s.op) {
      case Stmt::Op::assign: {
        Vec v = eval(w, s.value);
        w.vars[s.var] = v;
        break;
      }
      case Stmt::Op::gather: {
        Vec a = eval(w, s.address), r;
        for (unsigned l = 0; l < 16; ++l) r[l] = load(a[l]);
        if (w.fifo[s.all].size() >= 4)
          fail("overflow", cat("line ", s.place.line, ": a fifth gather before a receive"));
        w.fifo[s.all].push_back(r);
        break;
      }
      case Stmt::Op::receive:
        if (w.fifo[s.all].empty())
          fail("empty", cat("line ", s.place.line, ": receive without gather"));
        w.vars[s.var] = w.fifo[s.all].front();
        w.fifo[s.all].pop_front();
        break;
      case Stmt::Op::store: {
        Vec v = eval(w, s.value), a = eval(w, s.address);
        std::int32_t n = s.count ? static_cast<std::int32_t>(eval(w, s.count)[0]) : 16;
        for (int l = 0; l < std::min(n, 16); ++l)
          memory_.store<std::uint32_t>(a[0] + static_cast<unsigned>(l) * 4 * (1 + w.write_stride),
                                       v[static_cast<unsigned>(l)]);
        break;
      }
      case Stmt::Op::flush:
      case Stmt::Op::barrier:
      case Stmt::Op::host_interrupt: break;
      case Stmt::Op::if_: {
        const auto& list = decide(w, s) ? s.body : s.other;
        ++frame.at;
        w.stack.push_back({&list, 0, nullptr});
        return true;
      }
      case Stmt::Op::while_:
        ++frame.at;
        if (decide(w, s)) w.stack.push_back({&s.body, 0, &s});
        return true;
      case Stmt::Op::where: where(w, s, 0xffff); break;
      case Stmt::Op::print_text:
        if (options_.print) options_.print(s.text);
        break;
      case Stmt::Op::print_int:
        if (options_.print) options_.print(print_vector(eval(w, s.value).lane, "int"));
        break;
      case Stmt::Op::print_uint:
        if (options_.print) options_.print(print_vector(eval(w, s.value).lane, "uint"));
        break;
      case Stmt::Op::print_float:
        if (options_.print) options_.print(print_vector(eval(w, s.value).lane, "float"));
        break;
      case Stmt::Op::read_stride: w.read_stride = eval(w, s.value)[0]; break;
      case Stmt::Op::write_stride: w.write_stride = eval(w, s.value)[0]; break;
      case Stmt::Op::semaphore_up:
        if (semaphores_[s.var] == 15) return --count_, false;
        ++semaphores_[s.var];
        break;
      case Stmt::Op::semaphore_down:
        if (semaphores_[s.var] == 0) return --count_, false;
        --semaphores_[s.var];
        break;
    }
    ++w.stack.back().at;
    return true;
  }

  const ast::Program& p_;
  std::span<const std::uint32_t> params_;
  sim::Memory& memory_;
  const InterpretOptions& options_;
  std::unordered_map<const Expr*, Vec> memo_;
  int semaphores_[16] = {};
  std::int64_t count_ = 0;
};
}  // namespace

std::string print_vector(const std::uint32_t* lanes, std::string_view kind) {
  std::string out = "<";
  char buffer[64];
  for (unsigned i = 0; i < 16; ++i) {
    if (kind == "float")
      std::snprintf(buffer, sizeof buffer, "%f",
                    static_cast<double>(std::bit_cast<float>(lanes[i])));
    else if (kind == "uint") std::snprintf(buffer, sizeof buffer, "%u", lanes[i]);
    else std::snprintf(buffer, sizeof buffer, "%i", static_cast<int>(lanes[i]));
    out += cat(i ? "," : "", static_cast<const char*>(buffer));
  }
  return out + ">";
}

void interpret(const ast::Program& program, std::span<const std::uint32_t> params,
               sim::Memory& memory, const InterpretOptions& options) {
  Interpreter(program, params, memory, options).run();
}

}  // namespace weft::qpu
