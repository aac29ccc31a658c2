// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/validate.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kLargest = 1 << 16;  // elements of one array

// Between these two a function that runs points side by side has memory of points that is shared by
// several loops, or stores that no barrier orders yet: it has no meaning that could be interpreted.
constexpr std::string_view kFirstUnordered = "compact_buffers", kLastUnordered = "insert_barriers";

thread_local std::int64_t scope_steps = -1;

bool runs_points(const PrimFunc& f) {
  bool found = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    found |= loop && loop->for_kind == ForKind::bound;
  });
  return found;
}

/// Small whole numbers, so that sums are exact in every order; integers are no index far outside.
template <typename T>
void draw(std::mt19937_64& rng, std::string& bytes, T (*number)(std::uint64_t)) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const T value = number(rng());
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

bool draw(std::mt19937_64& rng, DType t, std::string& bytes) {
  // 0, 1, 2, -1 of the two formats of 16 bits
  static constexpr std::uint16_t kHalf[] = {0, 0x3c00, 0x4000, 0xbc00};
  static constexpr std::uint16_t kBrain[] = {0, 0x3f80, 0x4000, 0xbf80};
  static constexpr std::uint8_t kE4M3[] = {0, 0x38, 0x40, 0xb8}, kE5M2[] = {0, 0x3c, 0x40, 0xbc};
  if (t.is_bool())
    draw<std::uint8_t>(rng, bytes, [](std::uint64_t r) { return std::uint8_t(r & 1); });
  else if (t.is_integral() && t.bits == 8)
    draw<std::uint8_t>(rng, bytes, [](std::uint64_t r) { return std::uint8_t(r % 4); });
  else if (t.is_integral() && t.bits == 16)
    draw<std::uint16_t>(rng, bytes, [](std::uint64_t r) { return std::uint16_t(r % 4); });
  else if (t.is_integral() && t.bits == 32)
    draw<std::uint32_t>(rng, bytes, [](std::uint64_t r) { return std::uint32_t(r % 4); });
  else if (t.is_integral() && t.bits == 64)
    draw<std::uint64_t>(rng, bytes, [](std::uint64_t r) { return r % 4; });
  else if (t.is_float() && t.bits == 32)
    draw<float>(rng, bytes, [](std::uint64_t r) { return float(r % 9) - 4; });
  else if (t.is_float() && t.bits == 64)
    draw<double>(rng, bytes, [](std::uint64_t r) { return double(r % 9) - 4; });
  else if (t == dtypes::float8_e4m3fn)
    draw<std::uint8_t>(rng, bytes, [](std::uint64_t r) { return kE4M3[r % 4]; });
  else if (t == dtypes::float8_e5m2)
    draw<std::uint8_t>(rng, bytes, [](std::uint64_t r) { return kE5M2[r % 4]; });
  else if (t.is_bfloat())
    draw<std::uint16_t>(rng, bytes, [](std::uint64_t r) { return kBrain[r % 4]; });
  else if (t.is_float() && t.bits == 16)
    draw<std::uint16_t>(rng, bytes, [](std::uint64_t r) { return kHalf[r % 4]; });
  else return false;
  return true;
}

double real_at(DType t, const char* bytes) {
  if (t.bits == 64) {
    double v;
    std::memcpy(&v, bytes, sizeof v);
    return v;
  }
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, static_cast<std::size_t>(t.bytes()));
  if (t.is_float8()) return float8_to_float(t, static_cast<std::uint8_t>(word));
  if (t.bits == 16 && !t.is_bfloat()) return half_to_float(static_cast<std::uint16_t>(word));
  if (t.is_bfloat()) word <<= 16;
  float v;
  std::memcpy(&v, &word, sizeof v);
  return v;
}

/// Whether two results are the same, but for the order of sums.
bool same(DType t, const char* a, const char* b) {
  if (!t.is_float()) return std::memcmp(a, b, static_cast<std::size_t>(t.bytes())) == 0;
  const double x = real_at(t, a), y = real_at(t, b);
  if (x == y || (std::isnan(x) && std::isnan(y))) return true;
  const double tolerance = t.bits == 64 ? 1e-9 : t.bits == 32 ? 1e-4 : t.bits == 16 ? 5e-2 : 0.3;
  return std::abs(x - y) <= tolerance * std::max({1.0, std::abs(x), std::abs(y)});
}

std::string shown(DType t, const char* bytes) {
  if (t.is_float()) return cat(real_at(t, bytes));
  std::int64_t v = 0;
  std::memcpy(&v, bytes, static_cast<std::size_t>(t.bytes()));
  return cat(v);
}

}  // namespace

std::int64_t validation_steps() {
  if (scope_steps >= 0) return scope_steps;
  const char* text = std::getenv("WEFT_VALIDATE");
  return text ? std::max<std::int64_t>(0, std::strtoll(text, nullptr, 10)) : 0;
}

ValidationScope::ValidationScope(std::int64_t steps) : outer_(scope_steps) { scope_steps = steps; }
ValidationScope::~ValidationScope() { scope_steps = outer_; }

bool Validator::fill(const PrimFunc& f) {
  std::mt19937_64 rng(20260131);
  VarMap extents;  // of symbolic shapes
  auto extent = [&](const Expr& e, std::int64_t* out) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* v = as<VarNode>(x); v && !extents.count(v))
        extents[v] = make_int(static_cast<std::int64_t>(5 + 2 * extents.size()), x->dtype);
    });
    return try_evaluate_int(substitute(e, extents), out) && *out >= 0 && *out <= kLargest;
  };
  for (const Param& p : f->params) {
    Value v;
    if (p.buffer) {
      const BufferNode& b = *p.buffer;
      v.name = b.name, v.type = b.dtype;
      std::int64_t count = 1, size = 0;
      for (const Expr& e : b.shape) {
        if (!extent(e, &size)) return false;
        v.shape.push_back(size), count *= size;
        if (count > kLargest) return false;
      }
      if (!b.strides.empty() || b.elem_offset || !b.layout_exprs.empty()) return false;
      v.bytes.resize(static_cast<std::size_t>(count * b.dtype.bytes()));
      if (!draw(rng, b.dtype, v.bytes)) return false;
    } else {
      v.name = p.var->name, v.type = p.var->dtype;
      if (v.type.is_handle() || !extent(p.var, &v.number)) return false;
    }
    inputs_.push_back(std::move(v));
  }
  return true;
}

void Validator::run(const PrimFunc& f, std::vector<Value>& values, std::int64_t steps) {
  std::vector<InterpretArg> args;
  for (Value& v : values) {
    InterpretArg a;
    a.shape = v.shape;
    a.data = v.bytes.data();
    a.int_value = v.number, a.float_value = static_cast<double>(v.number);
    args.push_back(std::move(a));
  }
  interpret(f, args, steps);
}

Validator::Validator(const PrimFunc& f, std::int64_t steps) : steps_(steps) {
  if (steps <= 0 || !fill(f)) return;
  wanted_ = inputs_;
  try {
    run(f, wanted_, steps);
    active_ = true;
  } catch (const Error& e) {
    // Random arrays may be no input that the function has a meaning for.
    if (e.code().rfind("interpret.", 0) != 0) throw;
  }
}

void Validator::check(std::string_view pass, const PrimFunc& f) {
  if (!active_ || f->params.size() != inputs_.size()) return;
  if (pass == kFirstUnordered) unordered_ = runs_points(f);
  if (unordered_ && pass != kLastUnordered) return;
  const std::string name =
      unordered_ ? cat(kFirstUnordered, " to ", kLastUnordered) : std::string(pass);
  unordered_ = false;
  std::vector<Value> found = inputs_;
  try {
    run(f, found, 16 * steps_);
  } catch (const Error& e) {
    static const std::set<std::string_view> open = {"interpret.steps", "interpret.unsupported",
                                                    "interpret.function"};
    if (open.count(e.code())) return;
    throw Error(ErrorKind::internal, "pass.changed",
                cat("after pass ", name, " the function ", f->name, " faults: ", e.message()))
        .note(cat("before it, it computed on the same arrays; ", e.code()))
        .help("this is a mistake in weft; report it with the program");
  }
  ++checked_;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Value &got = found[i], &want = wanted_[i];
    const auto size = static_cast<std::size_t>(got.type.bytes());
    for (std::size_t at = 0; at < got.bytes.size(); at += size) {
      if (same(got.type, got.bytes.data() + at, want.bytes.data() + at)) continue;
      throw Error(
          ErrorKind::internal, "pass.changed",
          cat("pass ", name, " changed what the function ", f->name, " computes: element ",
              at / size, " of \"", got.name, "\" is ", shown(got.type, got.bytes.data() + at),
              ", before it ", shown(got.type, want.bytes.data() + at)))
          .help("this is a mistake in weft; report it with the program");
    }
  }
}

}  // namespace weft::pass
