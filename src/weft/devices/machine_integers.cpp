// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/machine_integers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "weft/base/text.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/machine.h"

namespace weft {

bool narrows(const Ref<Device>& device, Elem e) {
  if (e != Elem::int64 && e != Elem::uint64) return false;
  if (device->info().host_accessible) return false;
  const MachineFacts& facts = machine_of(device);
  const bool truth = facts.computes(Elem::boolean) || facts.packs(Elem::boolean);
  return facts.known && !facts.computes(e) && facts.computes(Elem::int32) && truth;
}

namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min(),
                       kMost = std::numeric_limits<std::int32_t>::max();

/// Bounds of values and of results; results of integers of 32 bits are exact in long double.
struct Range {
  long double low = 0, high = 0;
};

[[noreturn]] void refuse(std::string_view op, const NDArray& on, std::string found) {
  throw Error(ErrorKind::value, "array.int64.range", cat(op, " of 64-bit integers: ", found))
      .note(cat(on.device()->info().name,
                " computes with 32 bits; legal are operands and results from ", kLeast, " to ",
                kMost))
      .help("convert to float32, or compute it on the host: x.to(\"cpu\")");
}

Scalar narrowed(std::string_view op, const NDArray& on, const Scalar& s) {
  const bool integer = s.kind <= Kind::integer;
  if (integer && (s.large || s.beyond || s.i < kLeast || s.i > kMost))
    refuse(op, on, cat("the number ", s.z.real(), " does not fit 32 bits"));
  return s;
}

Range range_of(const NDArray& x) {
  if (x.elem() == Elem::boolean) return {0, 1};
  if (x.elem() != Elem::int32) return range_of(x.astype(Elem::int32));
  std::int32_t low = 0, high = 0;
  reduce(ReduceOp::min, x).read_element(0, &low);
  reduce(ReduceOp::max, x).read_element(0, &high);
  return {static_cast<long double>(low), static_cast<long double>(high)};
}

Range range_of(const Arg& a) {
  if (a.array) return range_of(*a.array);
  return {static_cast<long double>(a.scalar.i), static_cast<long double>(a.scalar.i)};
}

/// Of operations whose results may need more bits than their operands.
std::optional<Range> result_range(Op op, std::span<const Arg> args) {
  auto products = [](Range a, Range b) {
    const auto [low, high] =
        std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    return Range{low, high};
  };
  switch (op) {
    case Op::add: {
      const Range a = range_of(args[0]), b = range_of(args[1]);
      return Range{a.low + b.low, a.high + b.high};
    }
    case Op::subtract: {
      const Range a = range_of(args[0]), b = range_of(args[1]);
      return Range{a.low - b.high, a.high - b.low};
    }
    case Op::multiply: return products(range_of(args[0]), range_of(args[1]));
    case Op::square: {
      const Range a = range_of(args[0]);
      return products(a, a);
    }
    case Op::negative:
    case Op::abs:
    case Op::floor_divide: {  // the least number alone has no opposite
      const Range a = range_of(args[0]);
      return Range{std::min(a.low, -a.high), std::max(a.high, -a.low)};
    }
    case Op::bitwise_left_shift: {
      const Range a = range_of(args[0]), b = range_of(args[1]);
      if (b.low < 0) return std::nullopt;
      const long double by = std::ldexp(1.0L, static_cast<int>(std::min(b.high, 64.0L)));
      return products(a, {1, by});
    }
    case Op::pow: {
      const Range a = range_of(args[0]), b = range_of(args[1]);
      const long double most =
          std::pow(std::max({std::fabs(a.low), std::fabs(a.high), 1.0L}), std::max(b.high, 0.0L));
      return Range{-most, most};
    }
    default: return std::nullopt;
  }
}

void check_result(std::string_view op, const NDArray& out, const Range& r) {
  const bool positive = out.elem() == Elem::uint64;
  if (r.low >= (positive ? 0 : kLeast) && r.high <= kMost) return;
  refuse(op, out,
         cat("results may lie between ", static_cast<double>(r.low), " and ",
             static_cast<double>(r.high)));
}

bool concerned(const NDArray& out, Elem compute, std::span<const Arg> args) {
  if (out.on_host()) return false;
  bool any = narrows(out.device(), out.elem()) || narrows(out.device(), compute);
  for (const Arg& a : args) any = any || (a.array && narrows(out.device(), a.array->elem()));
  return any;
}

}  // namespace

NDArray narrow_integers(std::string_view op, const NDArray& x) {
  if (!narrows(x.device(), x.elem())) return x;
  std::optional<NDArray> low = low_words(x);
  if (!low) refuse(op, x, cat("a value of ", describe(x), " does not fit 32 bits"));
  return *low;
}

NDArray narrow_float(const NDArray& x) {
  if (x.size()) {
    const NDArray large = apply(Op::greater_equal, apply(Op::abs, x), Scalar(-1.0 * kLeast));
    bool beyond = false;
    reduce(ReduceOp::any, apply(Op::logical_and, large, apply(Op::isfinite, x)))
        .read_element(0, &beyond);
    if (beyond) refuse("astype", x, cat("a value of ", describe(x), " does not fit 32 bits"));
  }
  return x.astype(Elem::int32);
}

bool narrow_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args) {
  if (!concerned(out, compute, args) || is_complex(compute)) return false;
  const std::string_view name = info(op).name;
  const bool integers = narrows(out.device(), compute);
  NDArray held[2];
  std::vector<Arg> in;
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (args[k].array) held[k] = narrow_integers(name, *args[k].array);
    in.push_back(args[k].array ? Arg(held[k]) : args[k]);
  }
  if (integers && in.size() == 2) {
    if (const std::optional<bool> known = constant_comparison_result(op, in[0], in[1])) {
      assign(out, full(out.device(), Elem::boolean, Dims{}, Scalar(*known)));
      return true;
    }
  }
  for (Arg& a : in)
    if (!a.array && integers) a = narrowed(name, out, a.scalar);
  if (integers && narrows(out.device(), out.elem())) {
    if (const std::optional<Range> range = result_range(op, in)) check_result(name, out, *range);
  }
  const Elem by = integers ? Elem::int32 : compute;
  if (!narrows(out.device(), out.elem())) {
    device_elementwise(op, by, out, in);
    return true;
  }
  const NDArray result = NDArray::empty(out.device(), Elem::int32, out.shape());
  device_elementwise(op, by, result, in);
  assign(out, result);
  return true;
}

bool narrow_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b) {
  const Arg args[2] = {a, b};
  if (!concerned(out, out.elem(), args)) return false;
  const bool integers = narrows(out.device(), out.elem());
  NDArray held[2];
  for (std::size_t k = 0; k < 2; ++k) {
    const Arg& arg = args[k];
    if (arg.array) held[k] = narrow_integers("where", *arg.array);
    else
      held[k] = full(out.device(), integers ? Elem::int32 : out.elem(), Dims{},
                     integers ? narrowed("where", out, arg.scalar) : arg.scalar);
  }
  assign(out, where(condition, held[0], held[1]));
  return true;
}

bool narrow_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                   std::uint64_t mask) {
  const Arg args[1] = {x};
  if (!concerned(out, kernel, args)) return false;
  const std::string_view name = info(op).name;
  const NDArray in = narrow_integers(name, x);
  const bool integers = narrows(out.device(), kernel);
  if (integers && in.size() > 0 && (op == ReduceOp::sum || op == ReduceOp::prod)) {
    long double terms = 1;
    for (int i = 0; i < x.ndim(); ++i)
      if (mask >> i & 1) terms *= static_cast<long double>(x.shape()[i]);
    const Range r = range_of(in);
    if (op == ReduceOp::sum) {
      check_result(name, out, {std::min(0.0L, r.low * terms), std::max(0.0L, r.high * terms)});
    } else {
      const long double most =
          std::pow(std::max({std::fabs(r.low), std::fabs(r.high), 1.0L}), terms);
      check_result(name, out, {r.low < 0 ? -most : 0, most});
    }
  }
  const Elem by = integers ? Elem::int32 : kernel;
  if (!narrows(out.device(), out.elem())) {
    device_reduce(op, by, out, in, mask);
    return true;
  }
  const NDArray result = NDArray::empty(out.device(), Elem::int32, out.shape());
  device_reduce(op, by, result, in, mask);
  assign(out, result);
  return true;
}

}  // namespace weft
