// SPDX-License-Identifier: Apache-2.0
// The ALUs' operations as LLVM text; what each means is in float.h.

#include <utility>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

namespace {
constexpr std::string_view kSignMask =
    "<i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 "
    "2147483647, i32 2147483647, i32 2147483647>";
}  // namespace

Halves Emitter::shift(std::string_view op, std::int32_t a, std::int32_t b) {
  Halves x = ints(a);
  const Value& count = values_[static_cast<std::size_t>(b)];
  Halves n;
  if (count.constant) {
    n.lo = n.hi = splat_text(count.word & 31);
  } else {
    std::string low = splat_text(31);
    n = each2("and", kInt8, ints(b), {low, low});
  }
  return each2(op, kInt8, x, n);
}

/// Order of bit patterns as floats: -NaN < ... < NaN; zeros of either sign equal.
Halves Emitter::keys(std::int32_t a) {
  Halves x = ints(a);
  std::string s31 = splat_text(31), s1 = splat_text(1);
  Halves sign = each2("ashr", kInt8, x, {s31, s31});
  Halves flip = each2("lshr", kInt8, sign, {s1, s1});
  Halves k = each2("xor", kInt8, x, flip);
  return each2("sub", kInt8, k, sign);
}

std::int32_t Emitter::bytes_op(std::string_view intrinsic, std::int32_t a, std::int32_t b) {
  constexpr std::string_view kBytes = "<32 x i8>";
  Halves x = cast(kInt8, ints(a), kBytes), y = cast(kInt8, ints(b), kBytes), r;
  r.lo = t_.def("call <32 x i8> @llvm.", intrinsic, ".v32i8(", kBytes, " ", x.lo, ", ", kBytes, " ",
                y.lo, ")");
  r.hi = t_.def("call <32 x i8> @llvm.", intrinsic, ".v32i8(", kBytes, " ", x.hi, ", ", kBytes, " ",
                y.hi, ")");
  Value v;
  v.as_int = cast(kBytes, r, kInt8);
  return add(std::move(v));
}

std::int32_t Emitter::convert_to_int(std::int32_t a) {
  resolve();
  Halves f = floats(a), r;
  for (unsigned half = 0; half < 2; ++half) {
    (half ? r.hi : r.lo) =
        t_.def("call <8 x i32> @llvm.x86.avx.cvtt.ps2dq.256(<8 x float> ", half ? f.hi : f.lo, ")");
  }
  // What does not fit comes out as 0x80000000, whatever the QPU makes of it.
  std::string odd = splat_text(0x80000000u);
  std::string bits = any(each2("icmp eq", kInt8, r, {odd, odd}));
  std::string good = t_.def("icmp eq i8 ", bits, ", 0");
  unsigned id = t_.fresh();
  t_.usually(good, cat("g", id), cat("r", id));
  std::string from = label_;
  t_.label("r", id);
  Halves fixed;
  for (unsigned half = 0; half < 2; ++half) {
    std::string p = t_.def("getelementptr i8, ptr %scratch, i64 ", half * 32);
    t_.line("store ", kFloat8, " ", half ? f.hi : f.lo, ", ptr ", p, ", align 32");
  }
  t_.line("call preserve_allcc i32 @weft_qpu_rare_repair(ptr %scratch, ptr @recipe",
          recipes_.size(), ", i32 1)");
  recipes_.push_back({1, 1, kFtoi, 0, 0});
  for (unsigned half = 0; half < 2; ++half) {
    std::string p = t_.def("getelementptr i8, ptr %scratch, i64 ", 64 + half * 32);
    (half ? fixed.hi : fixed.lo) = t_.def("load ", kInt8, ", ptr ", p, ", align 32");
  }
  t_.line("br label %g", id);
  label_ = cat("g", id);
  t_.label(label_);
  Value v;
  v.as_int.lo =
      t_.def("phi ", kInt8, " [ ", r.lo, ", %", from, " ], [ ", fixed.lo, ", %r", id, " ]");
  v.as_int.hi =
      t_.def("phi ", kInt8, " [ ", r.hi, ", %", from, " ], [ ", fixed.hi, ", %r", id, " ]");
  return add(std::move(v));
}

bool Emitter::scalar_op(unsigned op, std::int32_t a, std::int32_t b, Value* out) {
  const Value &x = at(a), &y = at(b);
  if (!x.affine() || !y.affine() || (x.constant && y.constant)) return false;
  const bool same = x.uniform() && y.uniform();
  auto binary = [&](std::string_view name) {
    out->scalar = t_.def(name, " i32 ", x.scalar, ", ", y.scalar);
    return true;
  };
  auto call = [&](std::string_view name) {
    out->scalar = t_.def("call i32 @llvm.", name, ".i32(i32 ", x.scalar, ", i32 ", y.scalar, ")");
    return true;
  };
  auto count = [&] {
    return y.constant ? std::to_string(y.word & 31) : t_.def("and i32 ", y.scalar, ", 31");
  };
  const auto first = static_cast<std::uint32_t>(x.stride),
             second = static_cast<std::uint32_t>(y.stride);
  if (op == kAdd) {
    out->stride = static_cast<std::int32_t>(first + second);
    return binary("add");
  }
  if (op == kSub) {
    out->stride = static_cast<std::int32_t>(first - second);
    return binary("sub");
  }
  if (op == kShl && y.constant) {
    out->stride = static_cast<std::int32_t>(first << (y.word & 31));
    out->scalar = t_.def("shl i32 ", x.scalar, ", ", y.word & 31);
    return true;
  }
  if (!same) return false;
  switch (op) {
    case kShl: out->scalar = t_.def("shl i32 ", x.scalar, ", ", count()); return true;
    case kShr: out->scalar = t_.def("lshr i32 ", x.scalar, ", ", count()); return true;
    case kAsr: out->scalar = t_.def("ashr i32 ", x.scalar, ", ", count()); return true;
    case kRor:
      out->scalar = t_.def("call i32 @llvm.fshr.i32(i32 ", x.scalar, ", i32 ", x.scalar, ", i32 ",
                           count(), ")");
      return true;
    case kMin: return call("smin");
    case kMax: return call("smax");
    case kAnd: return binary("and");
    case kOr: return binary("or");
    case kXor: return binary("xor");
    case kNot: out->scalar = t_.def("xor i32 ", x.scalar, ", -1"); return true;
    case kClz:
      out->scalar = t_.def("call i32 @llvm.ctlz.i32(i32 ", x.scalar, ", i1 false)");
      return true;
    default: return false;
  }
}

std::int32_t Emitter::add_op(const Instr& i, std::int32_t a, std::int32_t b) {
  Value v;
  const bool moves = a == b && (i.op_add == kMin || i.op_add == kMax || i.op_add == kAnd ||
                                i.op_add == kOr || i.op_add == kXor || i.op_add == kSub);
  if (!moves && scalar_op(i.op_add, a, b, &v)) return add(std::move(v));
  auto binary = [&](std::string_view op) { v.as_int = each2(op, kInt8, ints(a), ints(b)); };
  auto call = [&](std::string_view name) {
    Halves x = ints(a), y = ints(b);
    v.as_int.lo = t_.def("call <8 x i32> @llvm.", name, ".v8i32(", kInt8, " ", x.lo, ", ", kInt8,
                         " ", y.lo, ")");
    v.as_int.hi = t_.def("call <8 x i32> @llvm.", name, ".v8i32(", kInt8, " ", x.hi, ", ", kInt8,
                         " ", y.hi, ")");
  };
  switch (i.op_add) {
    case kFadd:
    case kFsub: return float_op(i.op_add, a, b);
    case kFmin:
    case kFmax: {
      Halves greater = each2("icmp sgt", kInt8, keys(a), keys(b)), x = ints(a), y = ints(b);
      if (i.op_add == kFmin) std::swap(x, y);
      v.as_int = {
          t_.def("select ", kBit8, " ", greater.lo, ", ", kInt8, " ", x.lo, ", ", kInt8, " ", y.lo),
          t_.def("select ", kBit8, " ", greater.hi, ", ", kInt8, " ", x.hi, ", ", kInt8, " ",
                 y.hi)};
      break;
    }
    case kFminabs:
    case kFmaxabs: {
      Halves mask{std::string(kSignMask), std::string(kSignMask)};
      Halves x = each2("and", kInt8, ints(a), mask), y = each2("and", kInt8, ints(b), mask);
      std::string_view name = i.op_add == kFminabs ? "umin" : "umax";
      v.as_int.lo = t_.def("call <8 x i32> @llvm.", name, ".v8i32(", kInt8, " ", x.lo, ", ", kInt8,
                           " ", y.lo, ")");
      v.as_int.hi = t_.def("call <8 x i32> @llvm.", name, ".v8i32(", kInt8, " ", x.hi, ", ", kInt8,
                           " ", y.hi, ")");
      break;
    }
    case kFtoi: return convert_to_int(a);
    case kItof: {
      Halves x = hidden(a);
      v.as_float = {t_.def("sitofp ", kInt8, " ", x.lo, " to ", kFloat8),
                    t_.def("sitofp ", kInt8, " ", x.hi, " to ", kFloat8)};
      v.as_int = cast(kFloat8, v.as_float, kInt8);  // never -0
      break;
    }
    case kAdd: binary("add"); break;
    case kSub:
      if (a == b) return splat(0);
      binary("sub");
      break;
    case kShr: v.as_int = shift("lshr", a, b); break;
    case kAsr: v.as_int = shift("ashr", a, b); break;
    case kShl: v.as_int = shift("shl", a, b); break;
    case kRor: {
      Halves x = ints(a), n = ints(b);
      for (unsigned half = 0; half < 2; ++half) {
        const std::string &w = half ? x.hi : x.lo, &m = half ? n.hi : n.lo;
        (half ? v.as_int.hi : v.as_int.lo) =
            t_.def("call <8 x i32> @llvm.fshr.v8i32(", kInt8, " ", w, ", ", kInt8, " ", w, ", ",
                   kInt8, " ", m, ")");
      }
      break;
    }
    case kMin:
      if (a == b) return a;
      call("smin");
      break;
    case kMax:
      if (a == b) return a;
      call("smax");
      break;
    case kAnd:
      if (a == b) return a;
      binary("and");
      break;
    case kOr:
      if (a == b) return a;
      binary("or");
      break;
    case kXor:
      if (a == b) return splat(0);
      binary("xor");
      break;
    case kNot: {
      std::string ones = splat_text(~0u);
      v.as_int = each2("xor", kInt8, ints(a), {ones, ones});
      break;
    }
    case kClz: {
      Halves x = ints(a);
      v.as_int = {t_.def("call <8 x i32> @llvm.ctlz.v8i32(", kInt8, " ", x.lo, ", i1 false)"),
                  t_.def("call <8 x i32> @llvm.ctlz.v8i32(", kInt8, " ", x.hi, ", i1 false)")};
      break;
    }
    case kV8addsA: return bytes_op("uadd.sat", a, b);
    default: return bytes_op("usub.sat", a, b);
  }
  return add(std::move(v));
}

std::int32_t Emitter::mul_op(const Instr& i, std::int32_t a, std::int32_t b) {
  switch (i.op_mul) {
    case kFmul: return float_op(kRecipeMul + kFmul, a, b);
    case kMul24: {
      if (at(a).uniform() && at(b).uniform()) {
        Value v;
        auto low = [&](std::int32_t x) { return t_.def("and i32 ", at(x).scalar, ", ", 0xffffff); };
        std::string x = low(a), y = low(b);
        v.scalar = t_.def("mul i32 ", x, ", ", y);
        return add(std::move(v));
      }
      std::string low = splat_text(0xffffff);
      Halves x = each2("and", kInt8, ints(a), {low, low}),
             y = each2("and", kInt8, ints(b), {low, low});
      Value v;
      v.as_int = each2("mul", kInt8, x, y);
      return add(std::move(v));
    }
    case kV8min: return a == b ? a : bytes_op("umin", a, b);
    case kV8max: return a == b ? a : bytes_op("umax", a, b);
    case kV8addsM: return bytes_op("uadd.sat", a, b);
    default: return a == b ? splat(0) : bytes_op("usub.sat", a, b);
  }
}

std::int32_t Emitter::rotated(std::int32_t value, unsigned code) {
  if (at(value).uniform()) return value;
  Halves x = ints(value);
  Value v;
  if (code != 48) {
    for (unsigned half = 0; half < 2; ++half) {
      std::string lanes;
      for (unsigned l = half * 8; l < half * 8 + 8; ++l)
        lanes += cat(l % 8 ? ", i32 " : "i32 ", (l - (code - 48)) & 15);
      (half ? v.as_int.hi : v.as_int.lo) = t_.def("shufflevector ", kInt8, " ", x.lo, ", ", kInt8,
                                                  " ", x.hi, ", ", kInt8, " <", lanes, ">");
    }
    return add(std::move(v));
  }
  std::string n = first_lane(read(kSlotAcc + 5));
  std::string eight = t_.def("and i32 ", n, ", 8"), far = t_.def("icmp ne i32 ", eight, ", 0");
  std::string lo = t_.def("select i1 ", far, ", ", kInt8, " ", x.hi, ", ", kInt8, " ", x.lo);
  std::string hi = t_.def("select i1 ", far, ", ", kInt8, " ", x.lo, ", ", kInt8, " ", x.hi);
  std::string seven = t_.def("and i32 ", n, ", 7");
  std::string one = t_.def("insertelement ", kInt8, " undef, i32 ", seven, ", i32 0");
  std::string shift =
      t_.def("shufflevector ", kInt8, " ", one, ", ", kInt8, " undef, ", kInt8, " zeroinitializer");
  constexpr std::string_view kLane = "<i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>";
  std::string index = t_.def("sub ", kInt8, " ", kLane, ", ", shift);
  std::string wrapped = t_.def("icmp sgt ", kInt8, " ", shift, ", ", kLane);
  auto permute = [&](const std::string& w) {
    return t_.def("call <8 x i32> @llvm.x86.avx2.permd(", kInt8, " ", w, ", ", kInt8, " ", index,
                  ")");
  };
  std::string a = permute(lo), b = permute(hi);
  v.as_int.lo = t_.def("select ", kBit8, " ", wrapped, ", ", kInt8, " ", b, ", ", kInt8, " ", a);
  v.as_int.hi = t_.def("select ", kBit8, " ", wrapped, ", ", kInt8, " ", a, ", ", kInt8, " ", b);
  return add(std::move(v));
}

/// A write of r5: lane 0 to all, or the first lane of each quad to its quad.
std::int32_t Emitter::spread(std::int32_t value, bool lane0) {
  if (at(value).uniform()) return value;
  Value v;
  if (lane0 && at(value).affine()) {
    v.scalar = at(value).scalar;
    return add(std::move(v));
  }
  Halves x = ints(value);
  if (lane0) {
    v.as_int.lo = t_.def("shufflevector ", kInt8, " ", x.lo, ", ", kInt8, " ", x.lo, ", ", kInt8,
                         " zeroinitializer");
    v.as_int.hi = v.as_int.lo;
  } else {
    constexpr std::string_view kQuads = "<i32 0, i32 0, i32 0, i32 0, i32 4, i32 4, i32 4, i32 4>";
    v.as_int.lo = t_.def("shufflevector ", kInt8, " ", x.lo, ", ", kInt8, " ", x.lo, ", ", kInt8,
                         " ", kQuads);
    v.as_int.hi = t_.def("shufflevector ", kInt8, " ", x.hi, ", ", kInt8, " ", x.hi, ", ", kInt8,
                         " ", kQuads);
  }
  return add(std::move(v));
}

Halves Emitter::carry_of(unsigned op, std::int32_t a, std::int32_t b, std::int32_t result) {
  Halves zero{"zeroinitializer", "zeroinitializer"};
  switch (op) {
    case kFadd:
    case kFsub:
    case kItof: return each2("icmp sgt", kInt8, ints(result), zero);
    case kFmin:
    case kFmax: return each2("icmp sgt", kInt8, keys(a), keys(b));
    case kFminabs:
    case kFmaxabs: {
      Halves mask{std::string(kSignMask), std::string(kSignMask)};
      return each2("icmp ugt", kInt8, each2("and", kInt8, ints(a), mask),
                   each2("and", kInt8, ints(b), mask));
    }
    case kMin:
    case kMax: return each2("icmp sgt", kInt8, ints(a), ints(b));
    case kAdd: return each2("icmp ult", kInt8, ints(result), ints(a));
    case kSub: return each2("icmp ult", kInt8, ints(a), ints(b));
    case kShr:
    case kAsr:
    case kShl: {
      // The bit shifted out last; none when the count is 0.
      std::string low = splat_text(31), one = splat_text(1);
      Halves n = each2("and", kInt8, ints(b), {low, low}), back;
      if (op == kShl) back = each2("sub", kInt8, zero, n);  // 32 - n, below 32 for n > 0
      else back = each2("sub", kInt8, n, {one, one});
      back = each2("and", kInt8, back, {low, low});
      Halves last = each2("and", kInt8, each2("lshr", kInt8, ints(a), back), {one, one});
      Halves set = each2("icmp ne", kInt8, last, zero), some = each2("icmp ne", kInt8, n, zero);
      return each2("and", kBit8, set, some);
    }
    default: return zero;
  }
}

bool Emitter::scalar_flags(const Instr& i, bool from_mul, std::int32_t a, std::int32_t b,
                           std::int32_t result, const Live& live) {
  if (!at(result).uniform() || (!from_mul && !(at(a).uniform() && at(b).uniform()))) return false;
  std::string carry = "false";
  if (live[kFlagC] && !from_mul) {
    auto greater = [&](std::string_view how, std::int32_t x, std::int32_t y) {
      return t_.def("icmp ", how, " i32 ", at(x).scalar, ", ", at(y).scalar);
    };
    switch (i.op_add) {
      case kMin:
      case kMax: carry = greater("sgt", a, b); break;
      case kAdd: carry = greater("ult", result, a); break;
      case kSub: carry = greater("ult", a, b); break;
      case kAnd:
      case kOr:
      case kXor:
      case kNot:
      case kClz:
      case kRor: break;
      default: return false;
    }
  }
  const std::string& word = at(result).scalar;
  auto put = [&](unsigned f, std::string text) {
    flags_[f] = {};
    flags_[f].uniform = std::move(text);
    flags_[f].known = flags_[f].dirty = true;
    inverse_[f] = {};
  };
  for (unsigned f = 0; f < 3; ++f)
    if (!live[kFlagZ + f]) flags_[f] = {}, inverse_[f] = {};
  if (live[kFlagZ]) put(0, t_.def("icmp eq i32 ", word, ", 0"));
  if (live[kFlagN]) put(1, t_.def("icmp slt i32 ", word, ", 0"));
  if (live[kFlagC]) put(2, carry);
  return true;
}

void Emitter::set_flags(const Instr& i, std::uint32_t at, bool from_mul, std::int32_t a,
                        std::int32_t b, std::int32_t result) {
  unsigned cond = from_mul ? i.cond_mul : i.cond_add;
  if (cond == kNever) return;
  const Live& live = live_[at - start_];
  if (cond == kAlways && scalar_flags(i, from_mul, a, b, result, live)) return;
  Halves zero{"zeroinitializer", "zeroinitializer"}, fresh[3];
  bool wanted[3];
  for (unsigned f = 0; f < 3; ++f) wanted[f] = live[kFlagZ + f];
  if (wanted[0]) fresh[0] = each2("icmp eq", kInt8, ints(result), zero);
  if (wanted[1]) fresh[1] = each2("icmp slt", kInt8, ints(result), zero);
  if (wanted[2]) fresh[2] = from_mul ? zero : carry_of(i.op_add, a, b, result);
  if (cond != kAlways) {
    Halves where = flag(cond);
    for (unsigned f = 0; f < 3; ++f) {
      if (!wanted[f]) continue;
      Halves old = flag(kZs + 2 * f);
      for (unsigned half = 0; half < 2; ++half) {
        std::string& bits = half ? fresh[f].hi : fresh[f].lo;
        bits = t_.def("select ", kBit8, " ", half ? where.hi : where.lo, ", ", kBit8, " ", bits,
                      ", ", kBit8, " ", half ? old.hi : old.lo);
      }
    }
  }
  for (unsigned f = 0; f < 3; ++f) {
    if (!wanted[f]) {
      if (cond == kAlways) flags_[f] = {}, inverse_[f] = {};
      continue;
    }
    flags_[f].bits = fresh[f];
    flags_[f].uniform.clear();
    flags_[f].known = flags_[f].dirty = true;
    inverse_[f] = {};
  }
}

}  // namespace weft::qpu::hw
