// SPDX-License-Identifier: Apache-2.0
// Registers and flags as values of the text: read once, kept, stored when somebody looks; and the
// repair of groups of sums and products.

#include <algorithm>
#include <bit>
#include <cstddef>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

namespace {
constexpr std::size_t kGroup = 24;  // operations repaired together
std::size_t slot_offset(unsigned slot) { return offsetof(Qpu, slot) + 64ull * slot; }
std::size_t mask_offset(unsigned cond) { return offsetof(Qpu, mask) + 64ull * cond; }
}  // namespace

std::int32_t Emitter::add(Value v) {
  values_.push_back(std::move(v));
  return static_cast<std::int32_t>(values_.size() - 1);
}

std::string Emitter::splat_text(std::uint32_t word) const {
  if (word == 0) return "zeroinitializer";
  std::string one = cat("i32 ", static_cast<std::int32_t>(word)), out = "<";
  for (int l = 0; l < 8; ++l) out += l ? ", " + one : one;
  return out + ">";
}

std::int32_t Emitter::splat(std::uint32_t word) {
  Value v;
  v.constant = true, v.word = word;
  v.as_int.lo = v.as_int.hi = splat_text(word);
  v.scalar = std::to_string(static_cast<std::int32_t>(word));
  return add(std::move(v));
}

std::string Emitter::address(std::size_t offset) {
  return t_.def("getelementptr i8, ptr %q, i64 ", offset);
}

Halves Emitter::load(std::string_view type, std::size_t offset) {
  std::string lo = address(offset), hi = address(offset + 32);
  return {t_.def("load ", type, ", ptr ", lo, ", align 32"),
          t_.def("load ", type, ", ptr ", hi, ", align 32")};
}

void Emitter::store(std::string_view type, const Halves& h, std::size_t offset) {
  std::string lo = address(offset), hi = address(offset + 32);
  t_.line("store ", type, " ", h.lo, ", ptr ", lo, ", align 32");
  t_.line("store ", type, " ", h.hi, ", ptr ", hi, ", align 32");
}

std::int32_t Emitter::read(unsigned slot) {
  if (now_[slot] >= 0) return now_[slot];
  if (slot >= kSlotImm || slot == kSlotZero) {
    std::int32_t v = splat(slot == kSlotZero ? 0 : small_immediate(slot - kSlotImm));
    values_[static_cast<std::size_t>(v)].slot = static_cast<std::int32_t>(slot);
    return now_[slot] = v;
  }
  Value v;
  if (slot == kSlotElement) {
    v.scalar = "0", v.stride = 1;
    return now_[slot] = add(std::move(v));
  }
  v.loaded = true;
  const Shape shape = slot < kTracked       ? shapes_[slot]
                      : slot == kSlotNumber ? Shape{0}
                                            : Shape{Shape::kUnknown};
  if (shape.known()) {
    v.scalar = t_.def("load i32, ptr ", address(slot_offset(slot)));
    v.stride = shape.stride;
  } else {
    v.as_int = load(kInt8, slot_offset(slot));
  }
  return now_[slot] = add(std::move(v));
}

std::int32_t Emitter::source(const Instr& i, unsigned mux) { return read(source_slot(i, mux)); }

void Emitter::set(unsigned slot, std::int32_t value) {
  if (slot >= kTracked) return;
  now_[slot] = value;
  dirty_[slot] = true;
}

Halves Emitter::cast(std::string_view from, const Halves& h, std::string_view to) {
  std::string lo = t_.def("bitcast ", from, " ", h.lo, " to ", to);
  return {lo, h.lo == h.hi ? lo : t_.def("bitcast ", from, " ", h.hi, " to ", to)};
}

std::string Emitter::first_lane(std::int32_t value) {
  if (at(value).affine()) return at(value).scalar;
  return t_.def("extractelement ", kInt8, " ", ints(value).lo, ", i32 0");
}

Halves Emitter::each2(std::string_view op, std::string_view type, const Halves& a,
                      const Halves& b) {
  std::string lo = t_.def(op, " ", type, " ", a.lo, ", ", b.lo);
  const bool same = a.lo == a.hi && b.lo == b.hi;
  return {lo, same ? lo : t_.def(op, " ", type, " ", a.hi, ", ", b.hi)};
}

Halves Emitter::ints(std::int32_t index) {
  auto at = static_cast<std::size_t>(index);
  if (!values_[at].as_int.empty()) return values_[at].as_int;
  if (values_[at].affine()) {
    const std::int32_t stride = values_[at].stride;
    std::string one =
        t_.def("insertelement ", kInt8, " undef, i32 ", values_[at].scalar, ", i32 0");
    std::string all = t_.def("shufflevector ", kInt8, " ", one, ", ", kInt8, " undef, ", kInt8,
                             " zeroinitializer");
    if (stride == 0) return values_[at].as_int = {all, all};
    std::string steps[2];
    for (std::uint32_t l = 0; l < 16; ++l)
      steps[l / 8] += cat(l % 8 ? ", i32 " : "<i32 ",
                          static_cast<std::int32_t>(l * static_cast<std::uint32_t>(stride)));
    return values_[at].as_int = each2("add", kInt8, {all, all}, {steps[0] + ">", steps[1] + ">"});
  }
  if (values_[at].pending) {
    pinned_.push_back(index);
    resolve();
  }
  // -0 becomes +0.
  Halves f = values_[at].as_float;
  Halves zero{"zeroinitializer", "zeroinitializer"};
  Halves other = each2("fcmp une", kFloat8, f, zero);
  Halves mask{t_.def("sext ", kBit8, " ", other.lo, " to ", kInt8),
              t_.def("sext ", kBit8, " ", other.hi, " to ", kInt8)};
  Halves bits = cast(kFloat8, f, kInt8);
  return values_[at].as_int = each2("and", kInt8, bits, mask);
}

Halves Emitter::floats(std::int32_t index) {
  auto at = static_cast<std::size_t>(index);
  Value& v = values_[at];
  if (!v.as_float.empty()) return v.as_float;
  if (v.constant && v.slot >= 0) {
    Halves h = load(kFloat8, slot_offset(static_cast<unsigned>(v.slot)));
    return values_[at].as_float = h;
  }
  if (v.constant) {
    Vec words;
    for (std::uint32_t& lane : words.lane) lane = v.word;
    auto same =
        std::find_if(pool_.begin(), pool_.end(), [&](const Vec& p) { return p[0] == words[0]; });
    auto place = same - pool_.begin();
    if (same == pool_.end()) pool_.push_back(words);
    std::string p = t_.def("getelementptr i8, ptr @pool, i64 ", place * 64);
    std::string f = t_.def("load ", kFloat8, ", ptr ", p, ", align 32");
    return values_[at].as_float = {f, f};
  }
  Halves f = cast(kInt8, hidden(index), kFloat8);
  return values_[at].as_float = f;
}

Halves Emitter::hidden(std::int32_t index) {
  Halves x = ints(index);
  if (values_[static_cast<std::size_t>(index)].loaded) return x;
  constexpr std::string_view kSame = "call <8 x i32> asm \"\", \"=x,0\"(<8 x i32> ";
  std::string lo = t_.def(kSame, x.lo, ")");
  return {lo, x.lo == x.hi ? lo : t_.def(kSame, x.hi, ")")};
}

void Emitter::store_slot(unsigned slot, std::int32_t value) {
  Halves h = ints(value);
  store(kInt8, h, slot_offset(slot));
}

std::int32_t Emitter::float_op(unsigned op, std::int32_t a, std::int32_t b) {
  if (group_.size() >= kGroup) resolve();
  Halves x = floats(a), y = floats(b);
  Value v;
  v.as_float = each2(op == kFadd ? "fadd" : op == kFsub ? "fsub" : "fmul", kFloat8, x, y);
  v.pending = true;
  v.op = static_cast<std::uint8_t>(op == kFadd || op == kFsub ? op : kRecipeMul + kFmul);
  v.a = a, v.b = b;
  // A result that is no number makes every sum and product of it one: only the last is looked at.
  values_[static_cast<std::size_t>(a)].consumed = values_[static_cast<std::size_t>(b)].consumed =
      true;
  std::int32_t out = add(std::move(v));
  group_.push_back(out);
  return out;
}

std::string Emitter::any(const Halves& bits) {
  std::string both = t_.def("or ", kBit8, " ", bits.lo, ", ", bits.hi);
  return t_.def("bitcast ", kBit8, " ", both, " to i8");
}

void Emitter::resolve() {
  if (group_.empty()) return;
  std::string bad;
  for (std::int32_t g : group_) {
    const Value& v = values_[static_cast<std::size_t>(g)];
    if (v.consumed) continue;
    std::string no = t_.def("fcmp uno ", kFloat8, " ", v.as_float.lo, ", ", v.as_float.hi);
    bad = bad.empty() ? no : t_.def("or ", kBit8, " ", bad, ", ", no);
  }
  std::string bits = t_.def("bitcast ", kBit8, " ", bad, " to i8");
  std::string good = t_.def("icmp eq i8 ", bits, ", 0");
  unsigned id = t_.fresh();
  t_.usually(good, cat("g", id), cat("r", id));
  std::string from = label_;
  t_.label("r", id);
  // Inputs, then results, in the scratch area.
  std::vector<std::int32_t> inputs;
  auto place = [&](std::int32_t v) -> int {
    for (std::size_t k = 0; k < group_.size(); ++k)
      if (group_[k] == v) return -1 - static_cast<int>(k);
    auto found = std::find(inputs.begin(), inputs.end(), v);
    if (found == inputs.end()) found = inputs.insert(inputs.end(), v);
    return static_cast<int>(found - inputs.begin());
  };
  std::vector<int> recipe{static_cast<int>(group_.size()), 0};
  for (std::int32_t g : group_) {
    const Value& v = values_[static_cast<std::size_t>(g)];
    recipe.insert(recipe.end(), {v.op, place(v.a), place(v.b)});
  }
  int count = recipe[1] = static_cast<int>(inputs.size());
  for (std::size_t k = 2; k < recipe.size(); ++k)
    if (recipe[k] < 0) recipe[k] = count + (-1 - recipe[k]);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& v = values_[static_cast<std::size_t>(inputs[k])];
    bool whole = !v.as_int.empty();
    const Halves& h = whole ? v.as_int : v.as_float;
    for (unsigned half = 0; half < 2; ++half) {
      std::string p = t_.def("getelementptr i8, ptr %scratch, i64 ", k * 64 + half * 32);
      t_.line("store ", whole ? kInt8 : kFloat8, " ", half ? h.hi : h.lo, ", ptr ", p,
              ", align 32");
    }
  }
  t_.line("call preserve_allcc i32 @weft_qpu_rare_repair(ptr %scratch, ptr @recipe",
          recipes_.size(), ", i32 ", recipe[0], ")");
  recipes_.push_back(std::move(recipe));
  std::vector<std::pair<std::int32_t, Halves>> kept;
  for (std::size_t k = 0; k < group_.size(); ++k) {
    std::int32_t g = group_[k];
    if (std::find(now_.begin(), now_.end(), g) == now_.end() &&
        std::find(pinned_.begin(), pinned_.end(), g) == pinned_.end())
      continue;
    Halves fixed;
    for (unsigned half = 0; half < 2; ++half) {
      std::string p = t_.def("getelementptr i8, ptr %scratch, i64 ",
                             (static_cast<std::size_t>(count) + k) * 64 + half * 32);
      (half ? fixed.hi : fixed.lo) = t_.def("load ", kFloat8, ", ptr ", p, ", align 32");
    }
    kept.push_back({g, fixed});
  }
  t_.line("br label %g", id);
  label_ = cat("g", id);
  t_.label(label_);
  for (auto& [g, fixed] : kept) {
    Halves& f = values_[static_cast<std::size_t>(g)].as_float;
    f = {t_.def("phi ", kFloat8, " [ ", f.lo, ", %", from, " ], [ ", fixed.lo, ", %r", id, " ]"),
         t_.def("phi ", kFloat8, " [ ", f.hi, ", %", from, " ], [ ", fixed.hi, ", %r", id, " ]")};
  }
  for (std::int32_t g : group_) {
    values_[static_cast<std::size_t>(g)].pending = false;
    values_[static_cast<std::size_t>(g)].consumed = false;
  }
  group_.clear();
}

Halves Emitter::flag(unsigned cond) {
  unsigned which = (cond - kZs) / 2;
  Flag& f = flags_[which];
  if (!f.known) {
    Halves m = load(kInt8, mask_offset(kZs + which * 2));
    Halves zero{"zeroinitializer", "zeroinitializer"};
    f.bits = each2("icmp slt", kInt8, m, zero);
    f.known = true, f.dirty = false;
    inverse_[which] = {};
  }
  if (f.bits.empty()) {
    std::string one = t_.def("insertelement ", kBit8, " undef, i1 ", f.uniform, ", i32 0");
    std::string all = t_.def("shufflevector ", kBit8, " ", one, ", ", kBit8, " undef, <8 x i32> ",
                             "zeroinitializer");
    f.bits = {all, all};
  }
  if ((cond - kZs) % 2 == 0) return f.bits;
  if (inverse_[which].empty()) {
    static constexpr std::string_view kOnes =
        "<i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>";
    inverse_[which] = {t_.def("xor ", kBit8, " ", f.bits.lo, ", ", kOnes),
                       t_.def("xor ", kBit8, " ", f.bits.hi, ", ", kOnes)};
  }
  return inverse_[which];
}

std::int32_t Emitter::choose(unsigned cond, std::int32_t on, std::int32_t off) {
  Value v;
  const Flag& f = flags_[(cond - kZs) / 2];
  if (f.known && !f.uniform.empty()) {
    if ((cond - kZs) % 2) std::swap(on, off);
    const Value &a = at(on), &b = at(off);
    if (a.affine() && b.affine() && a.stride == b.stride) {
      v.stride = a.stride;
      v.scalar = t_.def("select i1 ", f.uniform, ", i32 ", a.scalar, ", i32 ", b.scalar);
    } else {
      Halves x = ints(on), y = ints(off);
      v.as_int.lo = t_.def("select i1 ", f.uniform, ", ", kInt8, " ", x.lo, ", ", kInt8, " ", y.lo);
      v.as_int.hi = t_.def("select i1 ", f.uniform, ", ", kInt8, " ", x.hi, ", ", kInt8, " ", y.hi);
    }
    return add(std::move(v));
  }
  Halves x = ints(on), y = ints(off), m = flag(cond);
  v.as_int = {t_.def("select ", kBit8, " ", m.lo, ", ", kInt8, " ", x.lo, ", ", kInt8, " ", y.lo),
              t_.def("select ", kBit8, " ", m.hi, ", ", kInt8, " ", x.hi, ", ", kInt8, " ", y.hi)};
  return add(std::move(v));
}

void Emitter::flush(const Live& live) {
  for (unsigned s = 0; s < kTracked; ++s) {
    if (!dirty_[s]) continue;
    if (live[s]) {
      store_slot(s, now_[s]);
      dirty_[s] = false;
    }
  }
  for (unsigned f = 0; f < 3; ++f) {
    if (!flags_[f].dirty || !live[kFlagZ + f]) continue;
    flag(kZs + 2 * f);
    Halves on{t_.def("sext ", kBit8, " ", flags_[f].bits.lo, " to ", kInt8),
              t_.def("sext ", kBit8, " ", flags_[f].bits.hi, " to ", kInt8)};
    store(kInt8, on, mask_offset(kZs + 2 * f));
    std::string ones = splat_text(~0u);
    store(kInt8, each2("xor", kInt8, on, {ones, ones}), mask_offset(kZc + 2 * f));
    flags_[f].dirty = false;
  }
}

void Emitter::forget() {
  now_.assign(kSlots, -1);
  dirty_.assign(kTracked, false);
  for (Flag& f : flags_) f = {};
  for (Halves& h : inverse_) h = {};
  group_.clear();
}

}  // namespace weft::qpu::hw
