// SPDX-License-Identifier: Apache-2.0
#include "weft/array/ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/array/collapse.h"
#include "weft/array/complex_order.h"
#include "weft/array/constant_operand.h"
#include "weft/array/feed.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/strided_copy.h"
#include "weft/array/transpose.h"
#include "weft/array/truth_values.h"
#include "weft/elements/rows.h"
#include "weft/host/kernel_lists.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

constexpr int B = 1, I = 2, U = 4, F = 8, C = 16;

constexpr OpInfo kInfo[] = {
#define UNARY(name, rule, types, value, grad, domain, sentence)           \
  {#name,  1,     Rule::rule, types,   std::string_view(#grad) != "none", \
   #value, #grad, #domain,    sentence},
#define BINARY(name, rule, types, value, gx, gy, domain, sentence) \
  {#name, 2, Rule::rule, types, std::string_view(#gx) != "none", #value, #gx, #domain, sentence},
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
};

int type_bit(Elem e) {
  if (e == Elem::boolean) return B;
  if (is_signed_int(e)) return I;
  if (is_unsigned_int(e)) return U;
  return is_complex(e) ? C : F;
}

[[noreturn]] void refuse_type(const OpInfo& op, Elem e) {
  std::vector<std::string> legal;
  static constexpr std::string_view kinds[] = {"bool", "signed integers", "unsigned integers",
                                               "real floats", "complex"};
  for (int i = 0; i < 5; ++i) {
    if (op.types >> i & 1) legal.push_back(std::string(kinds[i]));
  }
  throw Error(ErrorKind::dtype, cat("array.", op.name, ".dtype"),
              cat(op.name, " is not defined for ", name_of(e)))
      .note(cat("defined for: ", join(legal)));
}

/// The nearest type at or above `e` that the row has.
Elem admit(const OpInfo& op, Elem e) {
  if (op.types & type_bit(e)) return e;
  if (op.types == B) return Elem::boolean;  // logical operations take truth values
  if (is_integer(e) || e == Elem::boolean) {
    if (e == Elem::boolean && (op.types & I)) refuse_type(op, e);
    if (op.types & F) return kDefaultReal;
  }
  if (is_real_float(e) && (op.types & C) && !(op.types & F)) refuse_type(op, e);
  refuse_type(op, e);
}

Elem result_of(Rule rule, Elem e) {
  return rule == Rule::boolean ? Elem::boolean : rule == Rule::real ? real_of(e) : e;
}

/// Runs `call(n, in, out)` over the linear space of `out`'s elements, chunk by chunk, on all
/// threads.
template <int kIn, typename Call>
void run_chunks(const Feed (&feeds)[kIn], const NDArray& out, Elem kernel_out, const Call& call) {
  const std::int64_t size = out.size();
  Nest out_nest = make_nest(out.host(), out.shape(), out.strides(), elem_bytes(out.elem()));
  const bool out_direct = out_nest.contiguous() && out.elem() == kernel_out;
  CastFn out_cast =
      out.elem() == kernel_out
          ? nullptr
          : kernels().cast[static_cast<int>(kernel_out)][static_cast<int>(out.elem())];
  bool all_direct = out_direct;
  for (const Feed& feed : feeds)
    all_direct &= feed.mode == Feed::Mode::direct || feed.mode == Feed::Mode::single;
  char* out_base = out.host();
  const int out_bytes = elem_bytes(out.elem());
  bool stream = out_direct && out.nbytes() >= kStreamBytes &&
                reinterpret_cast<std::uintptr_t>(out_base) % 64 == 0;
  for (const Feed& feed : feeds) stream &= feed.base != out_base;  // not in place
  runtime::Pool::shared().parallel_for(
      size, kParallelGrain, [&](std::int64_t begin, std::int64_t end) {
        const void* in[kIn];
        const bool streams = stream && begin * out_bytes % 64 == 0;
        if (streams && all_direct) {
          Slot result;
          for (std::int64_t at = begin; at < end; at += kChunk) {
            const std::int64_t n = std::min(kChunk, end - at);
            for (int k = 0; k < kIn; ++k)
              in[k] =
                  feeds[k].base + (feeds[k].mode == Feed::Mode::single ? 0 : at * feeds[k].bytes);
            call(n, in, result.data);
            stream_copy(out_base + at * out_bytes, result.data, n * out_bytes);
          }
          return stream_end();
        }
        if (all_direct) {
          for (int k = 0; k < kIn; ++k)
            in[k] =
                feeds[k].base + (feeds[k].mode == Feed::Mode::single ? 0 : begin * feeds[k].bytes);
          call(end - begin, in, out_base + begin * out_bytes);
          return;
        }
        Slot slots[kIn + 2];
        std::optional<Walker> walkers[kIn], out_walker;
        for (int k = 0; k < kIn; ++k) {
          if (feeds[k].mode == Feed::Mode::gather) {
            walkers[k].emplace(feeds[k].nest);
            walkers[k]->seek(begin);
          } else if (feeds[k].mode == Feed::Mode::constant) {
            fill_constant(feeds[k], std::min(kChunk, end - begin), slots[k].data);
          }
        }
        if (!out_nest.contiguous()) {
          out_walker.emplace(out_nest);
          out_walker->seek(begin);
        }
        for (std::int64_t at = begin; at < end; at += kChunk) {
          std::int64_t n = std::min(kChunk, end - at);
          for (int k = 0; k < kIn; ++k) {
            in[k] = bring(feeds[k], walkers[k] ? &*walkers[k] : nullptr, at, n, slots[k]);
          }
          if (out_direct) {
            char* to = out_base + at * out_bytes;
            call(n, in, streams ? slots[kIn].data : to);
            if (streams) stream_copy(to, slots[kIn].data, n * out_bytes);
            continue;
          }
          call(n, in, slots[kIn].data);
          const char* result = slots[kIn].data;
          if (out_cast && !out_walker) {
            out_cast(n, result, out_base + at * out_bytes);
            continue;
          }
          if (out_cast) {
            out_cast(n, result, slots[kIn + 1].data);
            result = slots[kIn + 1].data;
          }
          out_walker->scatter(n, result);
        }
        if (streams) stream_end();
      });
}

/// Where the rows along the innermost axis of a nest begin, one after the other.
class RowStarts {
 public:
  RowStarts(const Nest& nest, std::int64_t row) : nest_(&nest), at_(nest.base) {
    for (int i = nest.ndim - 2; i >= 0; --i) {
      count_[i] = row % nest.shape[i];
      row /= nest.shape[i];
      at_ += count_[i] * nest.stride[i];
    }
  }
  const char* next() {
    const char* row = at_;
    for (int i = nest_->ndim - 2; i >= 0; --i) {
      at_ += nest_->stride[i];
      if (++count_[i] < nest_->shape[i]) break;
      at_ -= nest_->stride[i] * nest_->shape[i];
      count_[i] = 0;
    }
    return row;
  }

 private:
  const Nest* nest_;
  const char* at_;
  std::int64_t count_[kMaxDims];
};

/// Operands whose inner axis is contiguous, or one element for all, are read where they stand, a
/// row at a time: `plain` for rows, `one[k]` where operand k is the one element. False: not that
/// shape.
template <int kIn>
bool run_rows(const Feed (&feeds)[kIn], const NDArray& out, Elem kernel_out, ElementwiseFn plain,
              const ElementwiseFn* one) {
  if (out.elem() != kernel_out || !out.is_contiguous()) return false;
  std::int64_t inner = 0;
  int constant = -1;
  bool single = false;
  for (int k = 0; k < kIn; ++k) {
    const Feed& f = feeds[k];
    single |= f.mode == Feed::Mode::single;
    if (f.mode == Feed::Mode::direct || f.mode == Feed::Mode::single) continue;
    if (f.mode != Feed::Mode::gather || f.cast || f.nest.ndim < 2) return false;
    const int last = f.nest.ndim - 1;
    if (inner && inner != f.nest.shape[last]) return false;
    inner = f.nest.shape[last];
    if (f.nest.stride[last] == f.nest.bytes) continue;
    if (f.nest.stride[last] != 0 || constant >= 0 || !one || !one[k]) return false;
    constant = k;
  }
  if (inner < 64 || (single && constant >= 0)) return false;
  const ElementwiseFn fn = constant >= 0 ? one[constant] : plain;
  char* to = out.host();
  const std::int64_t out_step = inner * elem_bytes(kernel_out);
  const std::int64_t grain = std::max<std::int64_t>(1, kParallelGrain / inner);
  runtime::Pool::shared().parallel_for(
      out.size() / inner, grain, [&](std::int64_t begin, std::int64_t end) {
        std::optional<RowStarts> starts[kIn];
        const void* in[kIn];
        const char* following[kIn] = {};
        for (int k = 0; k < kIn; ++k) {
          const Feed& f = feeds[k];
          if (f.mode != Feed::Mode::gather) continue;
          starts[k].emplace(f.nest, begin);
          following[k] = starts[k]->next();
        }
        for (; begin < end; ++begin) {
          for (int k = 0; k < kIn; ++k) {
            const Feed& f = feeds[k];
            if (starts[k]) {
              in[k] = following[k];
              if (begin + 1 == end) continue;
              following[k] = starts[k]->next();
              prefetch_row(following[k], constant == k ? f.bytes : inner * f.bytes);
            } else {
              in[k] = f.base + (f.mode == Feed::Mode::single ? 0 : begin * inner * f.bytes);
            }
          }
          fn(inner, in, to + begin * out_step);
        }
      });
  return true;
}

/// The row over views with the axes in that order, and the result with its own again.
NDArray apply_in_order(Op op, const Dims& shape, const Arg* args, int count,
                       const std::vector<int>& order) {
  NDArray turned[2];
  Arg views[2] = {args[0], args[count - 1]};
  for (int k = 0; k < count; ++k) {
    if (!args[k].array) continue;
    turned[k] = args[k].array->broadcast_to(shape).permute(order);
    views[k] = Arg(turned[k]);
  }
  const NDArray out = count == 1 ? apply(op, views[0]) : apply(op, views[0], views[1]);
  return out.permute(inverse_order(order));
}

/// Every second number of complex ones.
NDArray part(const NDArray& x, bool imaginary) {
  Dims steps = x.strides();
  for (std::int64_t& step : steps) step *= 2;
  return NDArray::make(x.handle(), real_of(x.elem()), x.shape(), &steps,
                       2 * x.offset() + (imaginary ? 1 : 0));
}

void need_host(const NDArray& x, std::string_view operation) {
  if (x.on_host()) return;
  throw Error(ErrorKind::device, cat("array.", operation, ".kernel"),
              cat("no kernel of ", operation, " for arrays on ", x.device()->info().name))
      .help("move the array to the host's device with to(...)");
}

Elem common_elem(const Arg* args, int count) {
  bool have = false;
  Elem e = Elem::boolean;
  for (int i = 0; i < count; ++i) {
    if (!args[i].array) continue;
    e = have ? (e == args[i].array->elem() ? e : promote(e, args[i].array->elem()))
             : args[i].array->elem();
    have = true;
  }
  for (int i = 0; i < count; ++i) {
    if (args[i].array) continue;
    e = have ? promote_weak(e, args[i].scalar.kind) : elem_of(args[i].scalar);
    have = true;
  }
  return e;
}

Types resolve_types(const OpInfo& op, const Arg* args, int count) {
  Elem e = admit(op, common_elem(args, count));
  return {e, result_of(op.rule, e)};
}

/// The type in which a row computes: the operands' own where there is a kernel for it. A number
/// beside 16-bit floats is not rounded to them.
Elem kernel_of(Op op, Elem compute, bool number = false) {
  if (number && is_narrow_float(compute) && op != Op::nextafter && op != Op::copysign)
    return kernel_elem(compute);
  const bool own = kernels().elementwise[static_cast<int>(op)][static_cast<int>(compute)];
  return own ? compute : kernel_elem(compute);
}

void run_binary(Op op, Elem compute, Rule rule, const NDArray& out, const Arg& x, const Arg& y) {
  if (out.size() == 0) return;
  const Elem kernel = kernel_of(op, compute, !x.array || !y.array);
  ElementwiseFn fn = kernels().elementwise[static_cast<int>(op)][static_cast<int>(kernel)];
  alignas(16) char constants[2][16];
  Feed feeds[2];
  const Arg* args[2] = {&x, &y};
  for (int k = 0; k < 2; ++k) {
    if (args[k]->array) {
      need_host(*args[k]->array, info(op).name);
      prepare(feeds[k], *args[k]->array, out.shape(), kernel);
    } else {
      feeds[k] = scalar_feed(args[k]->scalar, kernel, constants[k]);
    }
  }
  // One element against many has kernels of its own.
  for (int k = 0; k < 2; ++k) {
    if (feeds[k].mode != Feed::Mode::constant || feeds[1 - k].mode == Feed::Mode::constant)
      continue;
    ElementwiseFn one = one_kernel(k, op, kernel);
    if (!one) continue;
    if (feeds[k].cast) {
      feeds[k].cast(1, feeds[k].base, constants[k]);
      feeds[k].base = constants[k];
    }
    feeds[k].mode = Feed::Mode::single;
    fn = one;
  }
  const ElementwiseFn one[2] = {one_kernel(0, op, kernel), one_kernel(1, op, kernel)};
  if (run_rows<2>(feeds, out, result_of(rule, kernel), fn, one)) return;
  run_chunks<2>(feeds, out, result_of(rule, kernel),
                [fn](std::int64_t n, const void* const* in, void* o) { fn(n, in, o); });
}

/// Integer powers need exponents from 0 on: there is no integer at 1/x.
void refuse_negative_exponent(const NDArray* base, Elem type, const Arg& exponent) {
  if (!is_signed_int(type)) return;
  if (!exponent.array) {
    if (exponent.scalar.kind > Kind::integer || exponent.scalar.i >= 0) return;
  } else {
    const NDArray& y = *exponent.array;
    if (y.size() == 0 || !is_signed_int(y.elem())) return;
    const NDArray below = apply(Op::less, reduce(ReduceOp::min, y, {}, false), Scalar(0));
    char found = 0;
    below.device()->download(&found, *below.handle(), static_cast<runtime::Bytes>(below.offset()),
                             1);
    if (!found) return;
  }
  throw Error(ErrorKind::value, "array.pow.negative",
              cat("pow of ", base ? describe(*base) : std::string("an integer"),
                  " to a negative exponent, computed as ", name_of(type)))
      .note("legal: integers to exponents from 0 on; floats to any exponent")
      .help("convert the base first: x.astype(\"float32\") ** y");
}

/// out = condition ? a : b for arrays and numbers that broadcast to it; b may be `out` itself.
void select_into(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b) {
  const Arg* args[2] = {&a, &b};
  Elem kernel = kernel_elem(out.elem());
  SelectFn fn = kernels().select[static_cast<int>(kernel)];
  alignas(16) char constants[2][16];
  Feed feeds[3];
  prepare(feeds[0], condition, out.shape(), Elem::boolean);
  for (int k = 0; k < 2; ++k) {
    if (args[k]->array) {
      prepare(feeds[k + 1], *args[k]->array, out.shape(), kernel);
    } else {
      feeds[k + 1] = scalar_feed(args[k]->scalar, kernel, constants[k]);
    }
  }
  run_chunks<3>(feeds, out, kernel, [fn](std::int64_t n, const void* const* in, void* o) {
    fn(n, static_cast<const bool*>(in[0]), in[1], in[2], o);
  });
}

}  // namespace

void run_constant_operand(const ConstantOperandKernel& row, Elem kernel, const NDArray& out,
                          const NDArray& x) {
  if (out.size() == 0) return;
  if (x.elem() == kernel && out.elem() == kernel && out.size() <= kParallelGrain &&
      x.shape() == out.shape() && x.is_contiguous() && out.is_contiguous()) {
    const void* in[2] = {x.host(), row.constants};
    return row.fn(out.size(), in, out.host());
  }
  Feed feeds[2];
  prepare(feeds[0], x, out.shape(), kernel);
  feeds[1].mode = Feed::Mode::single;
  feeds[1].base = reinterpret_cast<const char*>(row.constants);
  if (run_rows<2>(feeds, out, kernel, row.fn, nullptr)) return;
  run_chunks<2>(feeds, out, kernel,
                [fn = row.fn](std::int64_t n, const void* const* in, void* o) { fn(n, in, o); });
}

int op_count() { return kOps; }
const OpInfo& info(Op op) { return kInfo[row_of(op)]; }

Types resolve(Op op, std::span<const Elem> arrays, std::span<const Scalar> numbers) {
  const OpInfo& row = info(op);
  Elem e = arrays.empty() ? elem_of(numbers[0]) : arrays[0];
  for (std::size_t i = 1; i < arrays.size(); ++i) e = promote(e, arrays[i]);
  for (const Scalar& s : numbers) e = promote_weak(e, s.kind);
  e = admit(row, e);
  return {e, result_of(row.rule, e)};
}

Types resolve(Op op, std::span<const Arg> args) {
  return resolve_types(info(op), args.data(), static_cast<int>(args.size()));
}

namespace {
bool is_complex_operand(const Arg& v) {
  return v.array ? is_complex(v.array->elem()) : v.scalar.kind == Kind::complex;
}
}  // namespace

NDArray convert(const NDArray& x, Elem elem) {
  const Arg arg(x);
  std::vector<int> order;
  if (x.is_contiguous() || !shared_order(x.shape(), &arg, 1, order)) return x.astype(elem);
  return x.permute(order).astype(elem).permute(inverse_order(order));
}

NDArray apply(Op op, const Arg& x) {
  const OpInfo& row = info(op);
  if (!x.array) {
    throw Error(ErrorKind::dtype, cat("array.", row.name, ".array"),
                cat(row.name, " needs an array, got a number"));
  }
  const NDArray& a = *x.array;
  if (a.elem() == Elem::boolean || (op == Op::imag && !is_complex(a.elem()))) {
    if (std::optional<NDArray> known = without_imaginary_part(op, a)) return *known;
  }
  Types types = resolve_types(row, &x, 1);
  if ((op == Op::real || op == Op::imag) && is_complex(a.elem())) return part(a, op == Op::imag);
  if (std::vector<int> order; !a.is_contiguous() && shared_order(a.shape(), &x, 1, order))
    return apply_in_order(op, a.shape(), &x, 1, order);
  if (!a.on_host()) {
    NDArray result = NDArray::empty(a.device(), types.result, a.shape());
    on_device().elementwise(op, types.compute, result, {&x, 1});
    return result;
  }
  const Elem kernel = kernel_of(op, types.compute);
  ElementwiseFn fn = kernels().elementwise[static_cast<int>(op)][static_cast<int>(kernel)];
  NDArray out = NDArray::empty(a.device(), types.result, a.shape());
  if (out.size() == 0) return out;
  if (a.elem() == kernel && types.result == result_of(row.rule, kernel) &&
      out.size() <= kParallelGrain && a.is_contiguous()) {
    const void* in[1] = {a.host()};
    fn(out.size(), in, out.host());
    return out;
  }
  Feed feeds[1];
  prepare(feeds[0], a, a.shape(), kernel);
  if (run_rows<1>(feeds, out, result_of(row.rule, kernel), fn, nullptr)) return out;
  run_chunks<1>(feeds, out, result_of(row.rule, kernel),
                [fn](std::int64_t n, const void* const* in, void* o) { fn(n, in, o); });
  return out;
}

NDArray apply(Op op, const Arg& x, const Arg& y) {
  const OpInfo& row = info(op);
  // The common small case: two compact arrays of one type and shape.
  if (x.array && y.array && op != Op::pow && x.array->elem() == y.array->elem() &&
      x.array->shape() == y.array->shape() && x.array->size() <= kParallelGrain &&
      x.array->on_host() && x.array->device() == y.array->device() && x.array->is_contiguous() &&
      y.array->is_contiguous()) {
    Elem e = x.array->elem();
    ElementwiseFn fn = kernels().elementwise[static_cast<int>(op)][static_cast<int>(e)];
    if (fn) {
      NDArray out = NDArray::empty(x.array->device(), result_of(row.rule, e), x.array->shape());
      const void* in[2] = {x.array->host(), y.array->host()};
      fn(out.size(), in, out.host());
      return out;
    }
  }
  Arg args[2] = {x, y};
  const NDArray* array = x.array ? x.array : y.array;
  if (!array) {
    throw Error(ErrorKind::dtype, cat("array.", row.name, ".array"),
                cat(row.name, " needs an array, got two numbers"));
  }
  if ((op == Op::maximum || op == Op::minimum) &&
      (is_complex_operand(x) || is_complex_operand(y))) {
    const Elem e = resolve(Op::add, std::span<const Arg>(args, 2)).result;
    const auto whole = [&](const Arg& v) {
      return v.array ? v.array->astype(e) : full(array->device(), e, Dims{}, v.scalar);
    };
    return complex_larger(op == Op::maximum, whole(x), whole(y));
  }
  if (array->elem() == Elem::boolean && common_elem(args, 2) == Elem::boolean) {
    const auto whole = [&](const Arg& v) {
      return v.array ? *v.array : full(array->device(), Elem::boolean, Dims{}, v.scalar);
    };
    if (std::optional<NDArray> known = compare_truth_values(op, whole(x), whole(y))) return *known;
  }
  Types types = resolve_types(row, args, 2);
  if (op == Op::pow) refuse_negative_exponent(x.array, types.compute, y);
  if (!(x.array && y.array) && types.result == Elem::boolean) {
    if (const std::optional<bool> known = constant_comparison_result(op, x, y))
      return full(array->device(), Elem::boolean, array->shape(), *known);
  }
  if (op == Op::pow && x.array && !y.array && x.array->elem() == types.compute) {
    // Powers with the same value, special ones included, from cheaper operations.
    const double p = exponent_of(y.scalar);
    if (p == 2) return apply(Op::square, x);
    if (is_complex(types.compute) && x.array->on_host() && p == 3)
      return apply(Op::multiply, Arg(apply(Op::square, x)), x);
    if (is_complex(types.compute) && x.array->on_host() && p == -1)
      return apply(Op::divide, Arg(Scalar(1)), x);
    if (p == -1 && is_real_float(types.compute)) return apply(Op::reciprocal, x);
  }
  const Elem kernel = kernel_of(op, types.compute, !x.array || !y.array);
  ElementwiseFn fn = kernels().elementwise[static_cast<int>(op)][static_cast<int>(kernel)];
  if (x.array && y.array) {
    check_same_device(*x.array, *y.array, row.name);
    const Dims* shapes[2] = {&x.array->shape(), &y.array->shape()};
    const Dims shape = broadcast_shapes(shapes, row.name);
    if (std::vector<int> order; shared_order(shape, args, 2, order))
      return apply_in_order(op, shape, args, 2, order);
    NDArray out = NDArray::empty(array->device(), types.result, shape);
    if (!out.on_host()) {
      on_device().elementwise(op, types.compute, out, args);
      return out;
    }
    run_binary(op, types.compute, row.rule, out, x, y);
    return out;
  }
  if (std::vector<int> order;
      !array->is_contiguous() && shared_order(array->shape(), args, 2, order))
    return apply_in_order(op, array->shape(), args, 2, order);
  NDArray out = NDArray::empty(array->device(), types.result, array->shape());
  if (!out.on_host()) {
    on_device().elementwise(op, types.compute, out, args);
    return out;
  }
  if (x.array && kernel == types.compute) {
    if (const ConstantOperandKernel row_of = constant_operand_kernel(op, kernel, y.scalar);
        row_of.fn) {
      run_constant_operand(row_of, kernel, out, *x.array);
      return out;
    }
  }
  if (array->elem() == kernel && types.result == result_of(row.rule, kernel) && out.size() <= 64 &&
      array->is_contiguous()) {
    // A short array with a number: no chunk machinery.
    alignas(64) char spread[64 * 16];
    const int bytes = elem_bytes(kernel);
    const int other = x.array ? 1 : 0;
    if (auto one = one_kernel(other, op, kernel)) {
      write_scalar(x.array ? y.scalar : x.scalar, kernel, spread);
      const void* in[2] = {other ? array->host() : spread, other ? spread : array->host()};
      one(out.size(), in, out.host());
      return out;
    }
    write_scalar(x.array ? y.scalar : x.scalar, kernel, spread);
    for (std::int64_t i = 1; i < out.size(); ++i)
      std::memcpy(spread + i * bytes, spread, static_cast<std::size_t>(bytes));
    const void* in[2] = {x.array ? static_cast<const void*>(x.array->host()) : spread,
                         y.array ? static_cast<const void*>(y.array->host()) : spread};
    fn(out.size(), in, out.host());
    return out;
  }
  run_binary(op, types.compute, row.rule, out, x, y);
  return out;
}

void apply_into(Op op, const NDArray& out, const Arg& x, const Arg& y) {
  const OpInfo& row = info(op);
  Arg args[2] = {x, y};
  Types types = resolve_types(row, args, 2);
  if (op == Op::pow) refuse_negative_exponent(x.array, types.compute, y);
  if (kind_of(types.result) > kind_of(out.elem())) {
    throw Error(ErrorKind::dtype, cat("array.", row.name, ".inplace"),
                cat("in-place ", row.name, " gives ", name_of(types.result), ", which ",
                    describe(out), " cannot hold"))
        .help("write it without the in-place operator, or convert first with astype");
  }
  NDArray copies[2];
  for (int k = 0; k < 2; ++k) {
    const NDArray* a = args[k].array;
    if (!a) continue;
    check_same_device(out, *a, row.name);
    const Dims* shapes[2] = {&out.shape(), &a->shape()};
    Dims common = broadcast_shapes(shapes, row.name);
    if (!(common == out.shape())) {
      throw Error(ErrorKind::shape, cat("array.", row.name, ".inplace"),
                  cat("in-place ", row.name, " of shapes ", to_string(out.shape()), " and ",
                      to_string(a->shape()), " would need shape ", to_string(common)));
    }
    bool same_view = a->handle() == out.handle() && a->offset() == out.offset() &&
                     a->shape() == out.shape() && a->strides() == out.strides() &&
                     a->elem() == out.elem();
    if (!same_view && may_overlap(*a, out)) {
      copies[k] = a->copy();
      args[k] = Arg(copies[k]);
    }
  }
  if (!out.on_host()) return on_device().elementwise(op, types.compute, out, args);
  const Arg whole(out);
  if (std::vector<int> order; shared_order(out.shape(), &whole, 1, order)) {
    NDArray turned[2];
    for (int k = 0; k < 2; ++k) {
      if (!args[k].array) continue;
      turned[k] = args[k].array->broadcast_to(out.shape()).permute(order);
      args[k] = Arg(turned[k]);
    }
    return apply_into(op, out.permute(order), args[0], args[1]);
  }
  if (op == Op::pow && is_complex(types.compute) && args[0].array && !args[1].array)
    return assign(out, apply(op, args[0], args[1]));  // by products where it may be
  const Elem kernel = kernel_of(op, types.compute, !args[0].array || !args[1].array);
  if (args[0].array && !args[1].array && kernel == types.compute) {
    if (const ConstantOperandKernel known = constant_operand_kernel(op, kernel, args[1].scalar);
        known.fn)
      return run_constant_operand(known, kernel, out, *args[0].array);
  }
  run_binary(op, types.compute, row.rule, out, args[0], args[1]);
}

void assign(const NDArray& dst, const NDArray& src) {
  const Dims* shapes[2] = {&dst.shape(), &src.shape()};
  if (!(src.shape() == dst.shape())) {
    Dims common = broadcast_shapes(shapes, "assign");
    if (!(common == dst.shape())) {
      throw Error(ErrorKind::shape, "array.assign.shape",
                  cat("cannot assign shape ", to_string(src.shape()), " to shape ",
                      to_string(dst.shape())));
    }
  }
  if (dst.size() == 0) return;
  if (src.device() != dst.device()) return assign(dst, src.to(dst.device()));
  if (!dst.on_host()) {
    const Ref<Device>& device = dst.device();
    if (dst.is_contiguous() && src.is_contiguous() && src.shape() == dst.shape() &&
        src.elem() == dst.elem()) {
      auto bytes = static_cast<runtime::Bytes>(elem_bytes(dst.elem()));
      device->copy(*dst.handle(), static_cast<runtime::Bytes>(dst.offset()) * bytes, *src.handle(),
                   static_cast<runtime::Bytes>(src.offset()) * bytes,
                   static_cast<runtime::Bytes>(dst.nbytes()));
      return;
    }
  }
  if (may_overlap(dst, src)) {
    bool same_view = src.offset() == dst.offset() && src.shape() == dst.shape() &&
                     src.strides() == dst.strides() && src.elem() == dst.elem();
    if (same_view) return;
    NDArray copied = NDArray::empty(src.device(), src.elem(), src.shape());
    assign(copied, src);
    return assign(dst, copied);
  }
  if (!dst.on_host()) return on_device().copy(dst, src);
  if (transpose_copy(dst, src) || strided_copy(dst, src)) return;
  Feed feeds[1];
  if (src.elem() != dst.elem()) {
    prepare(feeds[0], src, dst.shape(), src.elem());
    CastFn cast = kernels().cast[static_cast<int>(src.elem())][static_cast<int>(dst.elem())];
    return run_chunks<1>(
        feeds, dst, dst.elem(),
        [cast](std::int64_t n, const void* const* in, void* out) { cast(n, in[0], out); });
  }
  prepare(feeds[0], src, dst.shape(), dst.elem());
  auto bytes = static_cast<std::size_t>(elem_bytes(dst.elem()));
  run_chunks<1>(feeds, dst, dst.elem(), [bytes](std::int64_t n, const void* const* in, void* out) {
    std::memcpy(out, in[0], static_cast<std::size_t>(n) * bytes);
  });
}

NDArray where(const NDArray& condition, const Arg& a, const Arg& b) {
  Arg args[2] = {a, b};
  Elem e = common_elem(args, 2);
  std::vector<const Dims*> shapes = {&condition.shape()};
  for (const Arg& arg : args) {
    if (!arg.array) continue;
    check_same_device(condition, *arg.array, "where");
    shapes.push_back(&arg.array->shape());
  }
  const Dims shape = broadcast_shapes(shapes, "where");
  const Arg all[3] = {Arg(condition), a, b};
  if (std::vector<int> order; !condition.on_host() && shared_order(shape, all, 3, order)) {
    auto turned = [&](const Arg& x) {
      return x.array ? x.array->broadcast_to(shape).permute(order) : NDArray();
    };
    const NDArray c = turned(all[0]), x = turned(a), y = turned(b);
    return where(c, a.array ? Arg(x) : a, b.array ? Arg(y) : b).permute(inverse_order(order));
  }
  NDArray out = NDArray::empty(condition.device(), e, shape);
  if (out.size() == 0) return out;
  if (!out.on_host()) {
    on_device().where(out, condition, a, b);
    return out;
  }
  select_into(out, condition, args[0], args[1]);
  return out;
}

namespace {

/// x[mask] = one for truth values of x's shape without gaps: chunks that have none set are not
/// touched.
void assign_chunks(const NDArray& x, const NDArray& mask, const NDArray& one) {
  static constexpr Elem kBits[] = {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64,
                                   Elem::complex128};
  const int bytes = elem_bytes(x.elem());
  const SelectFn select =
      kernels().select[static_cast<int>(kBits[std::countr_zero(static_cast<unsigned>(bytes))])];
  const Nest nest = make_nest(x.host(), x.shape(), x.strides(), bytes);
  const auto* marks = reinterpret_cast<const bool*>(mask.host());
  Feed value;
  prepare(value, one, Dims{1}, x.elem());
  value.mode = Feed::Mode::constant;
  runtime::Pool::shared().parallel_for(
      (x.size() + kChunk - 1) / kChunk, kParallelGrain / kChunk,
      [&](std::int64_t chunk, std::int64_t stop) {
        Slot values, held;
        fill_constant(value, std::min(kChunk, x.size()), values.data);
        for (; chunk < stop; ++chunk) {
          const std::int64_t at = chunk * kChunk, n = std::min(kChunk, x.size() - at);
          if (!std::memchr(marks + at, 1, static_cast<std::size_t>(n))) continue;
          if (nest.contiguous()) {
            char* to = nest.base + at * bytes;
            select(n, marks + at, values.data, to, to);
            continue;
          }
          Walker from(nest);
          from.seek(at);
          Walker to = from;
          from.gather(n, held.data);
          select(n, marks + at, values.data, held.data, held.data);
          to.scatter(n, held.data);
        }
      });
}

}  // namespace

void assign_marked(const NDArray& x, const NDArray& mask, const NDArray& value) {
  NDArray wide = mask;
  need_mask(x, mask);
  if (mask.size() == 0) return;
  for (int i = mask.ndim(); i < x.ndim(); ++i) wide = wide.expand_dims(i);
  if (x.size() == 0) return;
  const NDArray one = value.astype(x.elem()).reshape(Dims{});
  if (may_overlap(x, mask)) wide = wide.copy();
  if (!x.on_host()) {
    if (!on_device().select(x, wide, one, x)) assign(x, where(wide, one, x));
    return;
  }
  if (wide.shape() == x.shape() && wide.elem() == Elem::boolean) {
    const Arg both[2] = {Arg(x), Arg(wide)};
    if (std::vector<int> order; shared_order(x.shape(), both, 2, order))
      return assign_chunks(x.permute(order), wide.permute(order), one);
    if (wide.is_contiguous()) return assign_chunks(x, wide, one);
  }
  select_into(x, wide, one, x);
}

NDArray full(const Ref<Device>& device, Elem elem, Dims shape, const Scalar& value) {
  NDArray out = NDArray::empty(device, elem, std::move(shape));
  if (out.size() == 0) return out;
  if (!out.on_host() && on_device().fill(out, value)) return out;
  if (!out.on_host()) {
    std::string bytes(static_cast<std::size_t>(out.nbytes()), '\0');
    auto width = static_cast<std::size_t>(elem_bytes(elem));
    write_scalar(value, elem, bytes.data());
    for (std::size_t i = width; i < bytes.size(); i += width)
      std::memcpy(&bytes[i], &bytes[0], width);
    device->upload(*out.handle(), 0, bytes.data(), bytes.size());
    return out;
  }
  auto width = static_cast<std::size_t>(elem_bytes(elem));
  if (out.size() <= 64) {
    write_scalar(value, elem, out.host());
    for (std::int64_t i = 1; i < out.size(); ++i)
      std::memcpy(out.host() + i * static_cast<std::int64_t>(width), out.host(), width);
    return out;
  }
  alignas(16) char constant[16];
  Feed feeds[1] = {scalar_feed(value, elem, constant)};
  run_chunks<1>(feeds, out, elem, [width](std::int64_t n, const void* const* in, void* o) {
    std::memcpy(o, in[0], static_cast<std::size_t>(n) * width);
  });
  return out;
}

}  // namespace weft
