// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/complex_map.h"

#include <algorithm>
#include <vector>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/devices/kernel.h"
#include "weft/elements/complex_row.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/share.h"

namespace weft::gpu {

using complex_ir::Complex;
using ir::Expr;
using ir::Exprs;
using ir::Stmt;

namespace {

constexpr std::int64_t kThreads = 256, kEach = 4, kPerBlock = kThreads * kEach;
constexpr std::int64_t kSmall = 64;  // places of a value whose elements are computed side by side

/// What a map is specialised on.
struct MapSpec {
  Op op;
  Elem compute, out;
  std::vector<Elem> arrays;    // in the order of the arguments
  std::vector<bool> is_array;  // of each argument; others are numbers
  int rank = 0;                // 0: positions of all operands are the linear one
  bool narrow = true;
};

/// complex64 in memory is one word of 64 bits, re in its lower half; complex128 is two float64.
bool is_word(Elem e) { return e == Elem::complex64; }
Expr half_of(const Expr& word, int which) {
  const Expr half =
      which ? ir::call("shift_right", {word, ir::make_const(32, dtypes::uint64)}) : word;
  return ir::call_typed(dtypes::float32, "reinterpret", {ir::cast(dtypes::uint32, half)});
}
Expr word_of(const Exprs& parts) {
  auto bits = [](const Expr& x) {
    return ir::cast(dtypes::uint64, ir::call_typed(dtypes::uint32, "reinterpret", {x}));
  };
  return ir::call("bitwise_or",
                  {bits(parts[0]),
                   ir::call("shift_left", {bits(parts[1]), ir::make_const(32, dtypes::uint64)})});
}

/// The buffers, where a point's elements lie, and the value.
class Writer {
 public:
  explicit Writer(const MapSpec& spec) : spec_(spec), p_(spec.narrow) {}

  ir::PrimFunc write() {
    result_ = buffer("out", spec_.out);
    for (std::size_t k = 0; k < spec_.arrays.size(); ++k)
      in_.push_back(buffer(cat("a", k), spec_.arrays[k]));
    const Expr size = p_.integer("size"), blocks = p_.integer("blocks");
    extents_ = p_.integers("d", spec_.rank);
    for (std::size_t k = 0; k <= in_.size() && spec_.rank > 0; ++k)
      steps_.push_back(p_.integers(cat("s", k, "_"), spec_.rank));
    for (std::size_t k = 0; k < spec_.is_array.size(); ++k) {
      if (spec_.is_array[k]) continue;
      const Elem real = real_of(spec_.compute);
      Complex number{p_.number(cat("re", k), real), p_.number(cat("im", k), real)};
      numbers_.push_back(number);
    }
    return p_.finish(p_.bound("blockIdx.x", blocks, [&](const Expr& b) {
      return p_.bound("threadIdx.x", p_.at(kThreads), [&](const Expr& t) {
        const Expr base = b * p_.at(kPerBlock) + t;
        const Stmt part = p_.loop("j", p_.at(kEach), [&](const Expr& j) {
          const Expr i = base + j * p_.at(kThreads);
          return ir::if_then(ir::lt(i, size), one(i));
        });
        if (!small_) return part;
        return ir::if_then(ir::le(b * p_.at(kPerBlock) + p_.at(kPerBlock), size),
                           side_by_side(base), part);
      });
    }));
  }

 private:
  ir::Buffer buffer(const std::string& name, Elem e) {
    return p_.buffer(name, is_word(e) ? Elem::uint64 : real_of(e), elem_bytes(e));
  }
  Expr twice(const Expr& i) const { return i * p_.at(2); }

  /// What the arguments' elements are loaded from; `to`: where the value goes.
  Exprs loads(const Expr& i, Expr& to) const {
    std::vector<Expr> at(in_.size() + 1, i);
    if (spec_.rank > 0) at = device::positions(i, extents_, steps_);
    to = at[0];
    Exprs out;
    for (std::size_t k = 0; k < in_.size(); ++k) {
      const Expr& place = at[k + 1];
      const Elem e = spec_.arrays[k];
      const bool pair = is_complex(e) && !is_word(e);
      out.push_back(ir::load(in_[k], {pair ? ir::ramp(twice(place), p_.at(1), 2) : place}));
    }
    return out;
  }
  /// The parts of the value of what was loaded.
  Exprs value(const Exprs& loaded) const {
    const Elem real = real_of(spec_.compute);
    std::vector<Complex> args;
    std::size_t at_array = 0, at_number = 0;
    for (const bool array : spec_.is_array) {
      if (!array) {
        args.push_back(numbers_[at_number++]);
        continue;
      }
      const Expr& x = loaded[at_array];
      const Elem e = spec_.arrays[at_array++];
      auto part = [&](int k) {
        return convert_value(
            is_word(e) ? half_of(x, k) : ir::call("vector_extract", {x, ir::make_int(k)}), real);
      };
      if (is_complex(e)) args.push_back({part(0), part(1)});
      else args.push_back({convert_value(x, real), ir::make_const(0, dtype_of(real))});
    }
    Complex z = row_value(spec_.op, args);
    if (!is_complex(spec_.out)) return {convert_value(z.re, spec_.out)};
    if (!z.im) z.im = ir::make_const(0, z.re->dtype);
    return {convert_value(z.re, real_of(spec_.out)), convert_value(z.im, real_of(spec_.out))};
  }
  Stmt put(const Expr& to, const Exprs& parts) const {
    if (parts.size() == 1) return ir::store(result_, parts[0], {to});
    if (is_word(spec_.out)) return ir::store(result_, word_of(parts), {to});
    return ir::store(result_, ir::call("vector_concat", parts), {ir::ramp(twice(to), p_.at(1), 2)});
  }
  Stmt one(const Expr& i) {
    Expr to;
    return ir::with_values(loads(i, to), [&](const Exprs& loaded) {
      const Exprs parts = value(loaded);
      std::int64_t places = 0;
      for (const Expr& e : parts) places += ir::tree_size(e);
      // Pairs are vectors of two, whose accesses would be kept apart by barriers.
      auto pair = [](Elem e) { return is_complex(e) && !is_word(e); };
      small_ = places <= kSmall && !pair(spec_.out) &&
               std::none_of(spec_.arrays.begin(), spec_.arrays.end(), pair);
      return ir::with_shared(parts, [&](const Exprs& v) { return put(to, v); });
    });
  }
  /// Loads and values of kEach elements before the first store.
  Stmt side_by_side(const Expr& base) {
    Exprs all, places;
    for (std::int64_t j = 0; j < kEach; ++j) {
      Expr to;
      for (const Expr& load : loads(base + p_.at(j * kThreads), to)) all.push_back(load);
      places.push_back(to);
    }
    return ir::with_values(all, [&](const Exprs& loaded) {
      Exprs parts;
      const auto each = static_cast<std::ptrdiff_t>(in_.size());
      for (std::int64_t j = 0; j < kEach; ++j) {
        const auto first = loaded.begin() + j * each;
        for (const Expr& e : value({first, first + each})) parts.push_back(e);
      }
      return ir::with_shared(parts, [&](const Exprs& shared) {
        return ir::with_values(shared, [&](const Exprs& v) {
          std::vector<Stmt> stores;
          const std::size_t width = v.size() / places.size();
          for (std::size_t j = 0; j < places.size(); ++j) {
            const auto first = v.begin() + static_cast<std::ptrdiff_t>(j * width);
            stores.push_back(put(places[j], {first, first + static_cast<std::ptrdiff_t>(width)}));
          }
          return ir::seq(std::move(stores));
        });
      });
    });
  }

  const MapSpec& spec_;
  device::Builder p_;
  ir::Buffer result_;
  std::vector<ir::Buffer> in_;
  std::vector<Expr> extents_;
  std::vector<std::vector<Expr>> steps_;
  std::vector<Complex> numbers_;
  bool small_ = false;
};

}  // namespace

void complex_map(const NDArray& out, Op op, Elem compute, std::span<const Arg> args) {
  MapSpec spec{op, compute, out.elem(), {}, {}, 0, true};
  std::vector<const NDArray*> arrays;
  for (const Arg& arg : args) {
    spec.is_array.push_back(arg.array != nullptr);
    if (!arg.array) continue;
    arrays.push_back(arg.array);
    spec.arrays.push_back(arg.array->elem());
  }
  Dims shape = out.shape();
  std::vector<Dims> strides = {out.strides()};
  for (const NDArray* a : arrays) strides.push_back(broadcast_strides(*a, shape));
  collapse_axes(shape, strides);
  bool flat = shape.size() == 1;
  std::int64_t most = out.size() + kPerBlock;
  for (const Dims& s : strides) {
    flat = flat && s[0] == 1;
    std::int64_t reach = 0;
    for (int i = 0; i < shape.size(); ++i) reach += std::abs(s[i]) * shape[i];
    most = std::max(most, reach);
  }
  spec.rank = flat ? 0 : shape.size();
  spec.narrow = device::fits_narrow(2 * most);
  ProgramCall call(out.device());
  call.array(out);
  for (const NDArray* a : arrays) call.array(*a);
  call.integer(out.size()).integer((out.size() + kPerBlock - 1) / kPerBlock);
  for (int i = 0; i < spec.rank; ++i) call.integer(shape[i]);
  for (std::size_t k = 0; k < strides.size() && spec.rank > 0; ++k) {
    for (int i = 0; i < spec.rank; ++i) call.integer(strides[k][i]);
  }
  for (const Arg& arg : args) {
    if (arg.array) continue;
    const Scalar& s = arg.scalar;
    call.real(s.kind <= Kind::integer ? static_cast<double>(s.i) : s.z.real());
    call.real(s.kind <= Kind::integer ? 0.0 : s.z.imag());
  }
  auto elem = [&](std::size_t k) {
    return k < spec.arrays.size() ? static_cast<int>(spec.arrays[k]) : -1;
  };
  call.run({"complex.map",
            {static_cast<int>(op), static_cast<int>(args.size()), spec.is_array.front(),
             spec.is_array.back(), static_cast<int>(compute), static_cast<int>(spec.out), elem(0),
             elem(1), spec.rank, spec.narrow}},
           [&] { return Writer(spec).write(); });
}

}  // namespace weft::gpu
