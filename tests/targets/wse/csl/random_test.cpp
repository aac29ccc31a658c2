// SPDX-License-Identifier: Apache-2.0
// Random programs whose expected results come from an evaluator that shares nothing with the
// compiler: it walks the generator's own trees with its own arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "csl_run.h"
#include "engines.h"
#include "weft/base/dtype.h"
#include "weft/base/text.h"

namespace weft::wse::testing {
namespace {

enum Type { I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, BOOL, kTypeCount };
const char* kNames[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "bool"};
const int kBits[] = {8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 8};
bool is_float(Type t) { return t == F16 || t == F32; }
bool is_signed(Type t) { return t == I8 || t == I16 || t == I32 || t == I64; }

struct Val {
  long long i = 0;  // integers: canonical (U64 as bits)
  double f = 0;
};

long long wrap(Type t, unsigned long long v) {
  switch (t) {
    case I8: return static_cast<signed char>(v);
    case U8: return static_cast<unsigned char>(v);
    case I16: return static_cast<short>(v);
    case U16: return static_cast<unsigned short>(v);
    case I32: return static_cast<int>(v);
    case U32: return static_cast<unsigned>(v);
    case BOOL: return v != 0;
    default: return static_cast<long long>(v);
  }
}
double rounded(Type t, double v) {
  return t == F32 ? static_cast<double>(static_cast<float>(v)) : half_to_float(double_to_half(v));
}

struct Expr {
  enum Kind { constant, variable, element, unary, binary, convert, choose, call } kind = constant;
  Type type = I16;
  Val value;
  int index = 0;  // variable, function
  std::string op;
  std::vector<std::unique_ptr<Expr>> kids;
};
using E = std::unique_ptr<Expr>;

struct Stmt {
  enum Kind { assign, store, branch, loop, range, bulk } kind = assign;
  int target = 0, count = 0;
  std::string op;
  E a, b;
  std::vector<std::unique_ptr<Stmt>> body, other;
};

constexpr int kVars = 12, kArrayLength = 8;

struct Generator {
  explicit Generator(unsigned seed) : rng(seed) {
    for (int k = 0; k < kVars; ++k) {
      types.push_back(static_cast<Type>(k % kTypeCount));
      start.push_back(literal(types.back()));
      local.push_back(rng() % 2);
    }
    for (int k = 0; k < kArrayLength; ++k) {
      array.push_back(wrap(I32, rng()));
      reals.push_back(rounded(F32, std::uniform_real_distribution<double>(-8, 8)(rng)));
      shorts.push_back(wrap(U16, rng()));
    }
    for (int k = 0; k < 3; ++k) {
      in_function = true;
      Type t = static_cast<Type>(rng() % F32);
      if (is_float(t)) t = I32;
      parameter = t;
      functions.push_back(expression(t, 2));
      in_function = false;
    }
    for (int k = 0; k < 10; ++k) body.push_back(statement(2));
  }

  Val literal(Type t) {
    Val v;
    if (is_float(t)) v.f = rounded(t, std::uniform_int_distribution<int>(-64, 64)(rng) / 8.0);
    else if (t == BOOL) v.i = rng() % 2;
    else
      v.i = rng() % 3 ? wrap(t, rng() % 40)
                      : wrap(t, (static_cast<unsigned long long>(rng()) << 32) | rng());
    return v;
  }

  E make(Expr::Kind kind, Type t) {
    E e = std::make_unique<Expr>();
    e->kind = kind;
    e->type = t;
    return e;
  }

  E leaf(Type t) {
    if (in_function) {
      if (rng() % 2 && t == parameter) {
        E e = make(Expr::variable, t);
        e->index = -1;
        return e;
      }
    } else if (rng() % 4) {
      std::vector<int> fit;
      for (int k = 0; k < kVars; ++k) {
        if (types[static_cast<std::size_t>(k)] == t) fit.push_back(k);
      }
      if (!fit.empty()) {
        E e = make(Expr::variable, t);
        e->index = fit[rng() % fit.size()];
        return e;
      }
    }
    E e = make(Expr::constant, t);
    e->value = literal(t);
    return e;
  }

  E expression(Type t, int depth) {
    if (depth == 0) return leaf(t);
    switch (rng() % 10) {
      case 0: return leaf(t);
      case 1: {  // conversion
        Type from = static_cast<Type>(rng() % kTypeCount);
        if (is_float(from) && !is_float(t))
          from = I16;  // out of range conversions have no agreed value
        E e = make(Expr::convert, t);
        e->kids.push_back(expression(from, depth - 1));
        return e;
      }
      case 2: {
        E e = make(Expr::choose, t);
        e->kids.push_back(expression(BOOL, depth - 1));
        e->kids.push_back(expression(t, depth - 1));
        e->kids.push_back(expression(t, depth - 1));
        return e;
      }
      case 3:
        if (t == I32 && !in_function) {
          E e = make(Expr::element, t);
          e->kids.push_back(expression(U16, depth - 1));
          return e;
        }
        break;
      case 4:
        if (!in_function) {
          for (std::size_t k = 0; k < functions.size(); ++k) {
            if (functions[k]->type == t) {
              E e = make(Expr::call, t);
              e->index = static_cast<int>(k);
              e->kids.push_back(expression(t, depth - 1));
              return e;
            }
          }
        }
        break;
      default: break;
    }
    if (t == BOOL) {
      E e = make(Expr::binary, t);
      if (rng() % 3 == 0) {
        e->op = rng() % 2 ? "and" : "or";
        e->kids.push_back(expression(BOOL, depth - 1));
        e->kids.push_back(expression(BOOL, depth - 1));
        return e;
      }
      const char* ops[] = {"==", "!=", "<", "<=", ">", ">="};
      e->op = ops[rng() % 6];
      Type of = static_cast<Type>(rng() % BOOL);
      e->kids.push_back(expression(of, depth - 1));
      e->kids.push_back(expression(of, depth - 1));
      return e;
    }
    if (rng() % 8 == 0) {
      E e = make(Expr::unary, t);
      e->op = is_float(t) || rng() % 2 ? "-" : "~";
      e->kids.push_back(expression(t, depth - 1));
      return e;
    }
    E e = make(Expr::binary, t);
    if (is_float(t)) {
      const char* ops[] = {"+", "-", "*", "/"};
      e->op = ops[rng() % 4];
    } else {
      const char* ops[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
      e->op = ops[rng() % 10];
    }
    e->kids.push_back(expression(t, depth - 1));
    e->kids.push_back(expression(e->op == "<<" || e->op == ">>" ? U16 : t, depth - 1));
    return e;
  }

  std::unique_ptr<Stmt> statement(int depth) {
    auto s = std::make_unique<Stmt>();
    unsigned choice = rng() % (depth > 0 ? 9 : 5);
    if (choice < 3) {
      s->target = static_cast<int>(rng() % kVars);
      s->a = expression(types[static_cast<std::size_t>(s->target)], 3);
    } else if (choice == 3) {
      s->kind = Stmt::store;
      s->a = expression(U16, 2);
      s->b = expression(I32, 2);
    } else if (choice == 4) {
      s->kind = Stmt::bulk;
      const char* ops[] = {"fadds", "fsubs", "fmuls", "fmacs", "fnegs", "add16", "xor16", "sub16"};
      s->op = ops[rng() % 8];
      s->target = static_cast<int>(rng() % 4);  // offset of the second source
      s->a = make(Expr::constant, F32);
      s->a->value = literal(F32);
    } else if (choice < 7) {
      s->kind = Stmt::branch;
      s->a = expression(BOOL, 2);
      for (int k = 0; k < 2; ++k) s->body.push_back(statement(depth - 1));
      if (rng() % 2) s->other.push_back(statement(depth - 1));
    } else {
      s->kind = choice == 7 ? Stmt::loop : Stmt::range;
      s->count = static_cast<int>(rng() % 4);
      if (rng() % 3 == 0) s->a = expression(BOOL, 1);  // break condition
      s->target = loops++;
      for (int k = 0; k < 2; ++k) s->body.push_back(statement(depth - 1));
    }
    return s;
  }

  std::mt19937 rng;
  std::vector<Type> types;
  std::vector<Val> start;
  std::vector<bool> local;
  std::vector<long long> array, shorts;
  std::vector<double> reals;
  std::vector<E> functions;
  std::vector<std::unique_ptr<Stmt>> body;
  Type parameter = I16;
  bool in_function = false;
  int loops = 0;
};

// ---- as text ----

std::string text(Type t, const Val& v) {
  if (t == BOOL) return v.i ? "true" : "false";
  if (is_float(t)) {
    std::string s = shortest(std::fabs(v.f));
    if (s.find('.') == std::string::npos && s.find('e') == std::string::npos) s += ".0";
    return cat("@as(", kNames[t], ", ", v.f < 0 ? "-" : "", s, ")");
  }
  std::string digits =
      t == U64 ? std::to_string(static_cast<unsigned long long>(v.i)) : std::to_string(v.i);
  return cat("@as(", kNames[t], ", ", digits, ")");
}

std::string name_of(const Generator& g, int k) {
  return cat(g.local[static_cast<std::size_t>(k)] ? "l" : "g", k);
}

std::string text(const Generator& g, const Expr& e) {
  auto kid = [&](std::size_t k) { return text(g, *e.kids[k]); };
  switch (e.kind) {
    case Expr::constant: return text(e.type, e.value);
    case Expr::variable: return e.index < 0 ? "p" : name_of(g, e.index);
    case Expr::element: return cat("array[", kid(0), " % 8]");
    case Expr::unary: return cat("(", e.op, kid(0), ")");
    case Expr::convert: return cat("@as(", kNames[e.type], ", ", kid(0), ")");
    case Expr::choose: return cat("(if (", kid(0), ") ", kid(1), " else ", kid(2), ")");
    case Expr::call: return cat("f", e.index, "(", kid(0), ")");
    case Expr::binary:
      if (e.op == "/" || e.op == "%") {
        if (!is_float(e.type)) return cat("(", kid(0), " ", e.op, " (", kid(1), " | 1))");
      }
      if (e.op == "<<" || e.op == ">>") return cat("(", kid(0), " ", e.op, " (", kid(1), " % 70))");
      return cat("(", kid(0), " ", e.op, " ", kid(1), ")");
  }
  return {};
}

void text(const Generator& g, const Stmt& s, std::string& out) {
  auto block = [&](const std::vector<std::unique_ptr<Stmt>>& list) {
    for (const auto& k : list) text(g, *k, out);
  };
  switch (s.kind) {
    case Stmt::assign: out += cat(name_of(g, s.target), " = ", text(g, *s.a), ";\n"); break;
    case Stmt::store: out += cat("array[", text(g, *s.a), " % 8] = ", text(g, *s.b), ";\n"); break;
    case Stmt::bulk: {
      bool words = s.op.ends_with("16");
      std::string d = words ? "ds" : "dr", second = cat("@increment_dsd_offset(", d, ", ", s.target,
                                                        ", ", words ? "u16" : "f32", ")");
      if (s.op == "fnegs") out += cat("@fnegs(", d, ", ", second, ");\n");
      else if (s.op == "fmacs")
        out += cat("@fmacs(", d, ", ", d, ", ", second, ", ", text(F32, s.a->value), ");\n");
      else out += cat("@", s.op, "(", d, ", ", d, ", ", second, ");\n");
      break;
    }
    case Stmt::branch:
      out += cat("if (", text(g, *s.a), ") {\n");
      block(s.body);
      out += "}";
      if (!s.other.empty()) {
        out += " else {\n";
        block(s.other);
        out += "}";
      }
      out += "\n";
      break;
    case Stmt::loop:
      out += cat("var n", s.target, ": u16 = 0;\nwhile (n", s.target, " < ", s.count, ") : (n",
                 s.target, " += 1) {\n");
      block(s.body);
      if (s.a) out += cat("if (", text(g, *s.a), ") break;\n");
      out += "}\n";
      break;
    case Stmt::range:
      out += cat("for (@range(i16, ", s.count, ")) |n", s.target, "| {\n");
      if (s.a) out += cat("if (", text(g, *s.a), ") continue;\n");
      block(s.body);
      out += cat("g2 += n", s.target, ";\n}\n");
      break;
  }
}

// ---- as values ----

struct Machine {
  const Generator& g;
  std::vector<Val> vars;
  std::vector<long long> array, shorts;
  std::vector<double> reals;
  Val parameter;

  explicit Machine(const Generator& gen)
      : g(gen), vars(gen.start), array(gen.array), shorts(gen.shorts), reals(gen.reals) {}

  Val eval(const Expr& e) {
    Val out;
    switch (e.kind) {
      case Expr::constant: return e.value;
      case Expr::variable: return e.index < 0 ? parameter : vars[static_cast<std::size_t>(e.index)];
      case Expr::element:
        out.i = array[static_cast<std::size_t>(eval(*e.kids[0]).i % 8)];
        return out;
      case Expr::choose: return eval(*e.kids[0]).i ? eval(*e.kids[1]) : eval(*e.kids[2]);
      case Expr::call: {
        Val p = eval(*e.kids[0]), saved = parameter;
        parameter = p;
        out = eval(*g.functions[static_cast<std::size_t>(e.index)]);
        parameter = saved;
        return out;
      }
      case Expr::unary: {
        Val v = eval(*e.kids[0]);
        if (is_float(e.type)) out.f = -v.f;
        else
          out.i = wrap(e.type, e.op == "-" ? 0ull - static_cast<unsigned long long>(v.i)
                                           : ~static_cast<unsigned long long>(v.i));
        return out;
      }
      case Expr::convert: {
        Type from = e.kids[0]->type;
        Val v = eval(*e.kids[0]);
        if (is_float(e.type)) {
          double d = is_float(from) ? v.f
                     : from == U64  ? static_cast<double>(static_cast<unsigned long long>(v.i))
                                    : static_cast<double>(v.i);
          if (!is_float(from) && e.type == F32) {
            // One rounding, not two.
            out.f = from == U64 ? static_cast<float>(static_cast<unsigned long long>(v.i))
                                : static_cast<float>(v.i);
          } else {
            out.f = rounded(e.type, d);
          }
        } else if (e.type == BOOL) {
          out.i = is_float(from) ? v.f != 0 : v.i != 0;
        } else {
          out.i = wrap(e.type, static_cast<unsigned long long>(v.i));
        }
        return out;
      }
      case Expr::binary: return binary(e);
    }
    return out;
  }

  Val binary(const Expr& e) {
    Val out;
    if (e.op == "and" || e.op == "or") {
      bool a = eval(*e.kids[0]).i != 0;
      out.i = e.op == "and" ? a && eval(*e.kids[1]).i : a || eval(*e.kids[1]).i;
      return out;
    }
    Val a = eval(*e.kids[0]), b = eval(*e.kids[1]);
    Type of = e.kids[0]->type;
    if (e.type == BOOL && e.op.find_first_of("=<>!") != std::string::npos) {
      auto compare = [&](auto x, auto y) {
        if (e.op == "==") return x == y;
        if (e.op == "!=") return x != y;
        if (e.op == "<") return x < y;
        if (e.op == "<=") return x <= y;
        if (e.op == ">") return x > y;
        return x >= y;
      };
      out.i = is_float(of) ? compare(a.f, b.f)
              : of == U64  ? compare(static_cast<unsigned long long>(a.i),
                                     static_cast<unsigned long long>(b.i))
                           : compare(a.i, b.i);
      return out;
    }
    if (is_float(e.type)) {
      double r = e.op == "+"   ? a.f + b.f
                 : e.op == "-" ? a.f - b.f
                 : e.op == "*" ? a.f * b.f
                               : a.f / b.f;
      out.f = rounded(e.type, r);
      return out;
    }
    auto ua = static_cast<unsigned long long>(a.i), ub = static_cast<unsigned long long>(b.i);
    if (e.op == "+") out.i = wrap(e.type, ua + ub);
    else if (e.op == "-") out.i = wrap(e.type, ua - ub);
    else if (e.op == "*") out.i = wrap(e.type, ua * ub);
    else if (e.op == "&") out.i = wrap(e.type, ua & ub);
    else if (e.op == "|") out.i = wrap(e.type, ua | ub);
    else if (e.op == "^") out.i = wrap(e.type, ua ^ ub);
    else if (e.op == "<<" || e.op == ">>") {
      unsigned n = static_cast<unsigned>(b.i % 70);
      unsigned width = static_cast<unsigned>(kBits[e.type]);
      if (e.op == "<<") out.i = n >= width ? 0 : wrap(e.type, ua << n);
      else if (is_signed(e.type)) out.i = n >= width ? (a.i < 0 ? -1 : 0) : a.i >> n;
      else out.i = n >= width ? 0 : wrap(e.type, ua >> n);
    } else {
      long long d = wrap(e.type, ub | 1);
      if (e.type == U64) {
        auto ud = static_cast<unsigned long long>(d);
        out.i = static_cast<long long>(e.op == "/" ? ua / ud : ua % ud);
      } else if (d == -1) {
        out.i = e.op == "/" ? wrap(e.type, 0ull - ua) : 0;
      } else {
        out.i = wrap(e.type, static_cast<unsigned long long>(e.op == "/" ? a.i / d : a.i % d));
      }
    }
    return out;
  }

  void bulk(const Stmt& s) {
    int n = kArrayLength - 4;
    for (int k = 0; k < n; ++k) {
      auto at = static_cast<std::size_t>(k), other = static_cast<std::size_t>(k + s.target);
      if (s.op == "add16")
        shorts[at] = wrap(U16, static_cast<unsigned long long>(shorts[at] + shorts[other]));
      else if (s.op == "sub16")
        shorts[at] = wrap(U16, static_cast<unsigned long long>(shorts[at] - shorts[other]));
      else if (s.op == "xor16") shorts[at] ^= shorts[other];
      else if (s.op == "fadds") reals[at] = rounded(F32, reals[at] + reals[other]);
      else if (s.op == "fsubs") reals[at] = rounded(F32, reals[at] - reals[other]);
      else if (s.op == "fmuls") reals[at] = rounded(F32, reals[at] * reals[other]);
      else if (s.op == "fnegs") reals[at] = -reals[other];
      else reals[at] = rounded(F32, reals[at] + rounded(F32, reals[other] * s.a->value.f));
    }
  }

  void run(const std::vector<std::unique_ptr<Stmt>>& list) {
    for (const auto& s : list) {
      switch (s->kind) {
        case Stmt::assign: vars[static_cast<std::size_t>(s->target)] = eval(*s->a); break;
        case Stmt::store: {
          Val v = eval(*s->b);
          array[static_cast<std::size_t>(eval(*s->a).i % 8)] = v.i;
          break;
        }
        case Stmt::bulk: bulk(*s); break;
        case Stmt::branch: run(eval(*s->a).i ? s->body : s->other); break;
        case Stmt::loop:
          for (int k = 0; k < s->count; ++k) {
            run(s->body);
            if (s->a && eval(*s->a).i) break;
          }
          break;
        case Stmt::range:
          for (int k = 0; k < s->count; ++k) {
            if (s->a && eval(*s->a).i) continue;
            run(s->body);
            vars[2].i = wrap(I16, static_cast<unsigned long long>(vars[2].i + k));
          }
          break;
      }
    }
  }
};

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

TEST(RandomPrograms, MatchTheIndependentEvaluator) {
  constexpr unsigned kFirstSeed = 1, kPrograms = 2000;
  bool llvm = jit::llvm().available;
  std::printf("seeds %u..%u, %s\n", kFirstSeed, kFirstSeed + kPrograms - 1,
              llvm ? "bytecode and native code" : jit::llvm().reason.c_str());
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kPrograms; ++seed) {
    Generator g(seed);
    g.local[2] = false;
    std::string globals, body;
    for (int k = 0; k < kVars; ++k) {
      auto i = static_cast<std::size_t>(k);
      globals += cat("export var g", k, ": ", kNames[g.types[i]], " = ",
                     text(g.types[i], g.start[i]), ";\n");
      if (g.local[i]) body += cat("var l", k, ": ", kNames[g.types[i]], " = g", k, ";\n");
    }
    auto values = [&](const char* n, const char* t, auto&& item) {
      globals += cat("export var ", n, " = [8]", t, " { ");
      for (std::size_t k = 0; k < kArrayLength; ++k) globals += cat(k ? ", " : "", item(k));
      globals += " };\n";
    };
    values("array", "i32", [&](std::size_t k) { return std::to_string(g.array[k]); });
    values("shorts", "u16", [&](std::size_t k) { return std::to_string(g.shorts[k]); });
    values("reals", "f32", [&](std::size_t k) {
      Val v;
      v.f = g.reals[k];
      return text(F32, v);
    });
    globals +=
        "const dr = @get_dsd(mem1d_dsd, .{ .base_address = &reals, .extent = 4 });\nconst ds = "
        "@get_dsd(mem1d_dsd, .{ .base_address = &shorts, .extent = 4 });\n";
    for (std::size_t k = 0; k < g.functions.size(); ++k) {
      const char* t = kNames[g.functions[k]->type];
      globals += cat(k == 1 ? "inline " : "", "fn f", k, "(p: ", t, ") ", t, " { return ",
                     text(g, *g.functions[k]), "; }\n");
    }
    for (const auto& s : g.body) text(g, *s, body);
    for (int k = 0; k < kVars; ++k) {
      if (g.local[static_cast<std::size_t>(k)]) body += cat("g", k, " = l", k, ";\n");
    }
    std::string program = as_task(globals, body);
    Machine m(g);
    m.run(g.body);
    try {
      Ran ran(single(program), 0, 0, {.engine = Engine::bytecode});
      for (int k = 0; k < kVars; ++k) {
        auto i = static_cast<std::size_t>(k);
        std::string n = cat("g", k);
        Val want = m.vars[i];
        bool ok = true;
        switch (g.types[i]) {
          case I8: ok = ran.read<signed char>(n)[0] == want.i; break;
          case U8:
          case BOOL: ok = ran.read<unsigned char>(n)[0] == want.i; break;
          case I16: ok = ran.read<short>(n)[0] == want.i; break;
          case U16: ok = ran.read<unsigned short>(n)[0] == want.i; break;
          case I32: ok = ran.read<int>(n)[0] == want.i; break;
          case U32: ok = ran.read<unsigned>(n)[0] == want.i; break;
          case I64:
          case U64: ok = ran.read<long long>(n)[0] == want.i; break;
          case F16: ok = same(half_to_float(ran.read<unsigned short>(n)[0]), want.f); break;
          case F32: ok = same(ran.read<float>(n)[0], want.f); break;
          default: break;
        }
        ASSERT_TRUE(ok) << "seed " << seed << ", variable " << n << ", expected " << want.i << " / "
                        << want.f << "\n"
                        << program;
      }
      auto array = ran.read<int>("array");
      auto reals = ran.read<float>("reals");
      auto shorts = ran.read<unsigned short>("shorts");
      for (std::size_t k = 0; k < kArrayLength; ++k) {
        ASSERT_EQ(array[k], m.array[k]) << "seed " << seed << "\n" << program;
        ASSERT_TRUE(same(reals[k], m.reals[k]))
            << "seed " << seed << " reals[" << k << "]: " << reals[k] << " " << m.reals[k] << "\n"
            << program;
        ASSERT_EQ(shorts[k], m.shorts[k]) << "seed " << seed << "\n" << program;
      }
      if (llvm) {
        expect_same_on_native(ran, cat("seed ", seed));
        ASSERT_FALSE(::testing::Test::HasFailure()) << program;
      }
    } catch (const Error& e) {
      FAIL() << "seed " << seed << "\n" << e.what() << "\n" << program;
    }
  }
}

}  // namespace
}  // namespace weft::wse::testing
