// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/dispatch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/base/integers.h"
#include "weft/devices/complex.h"
#include "weft/devices/grid.h"
#include "weft/devices/machine.h"
#include "weft/devices/machine_integers.h"
#include "weft/devices/operators.h"
#include "weft/devices/pieces.h"
#include "weft/devices/reduce_program.h"
#include "weft/devices/transpose.h"
#include "weft/devices/warp_specialized.h"
#include "weft/elements/row_ir.h"
#include "weft/operators/integer_loop.h"
#include "weft/runtime/backlog.h"
#include "weft/runtime/recording.h"
#include "weft/target/backend.h"

namespace weft {

namespace {

using ir::Expr;

/// Refuses what the IR cannot say.
template <typename Body>
void refusing_unsupported(const NDArray& out, std::string_view name, const Body& body) {
  try {
    body();
  } catch (const RowUnsupported&) {
    throw Error(ErrorKind::device, cat("array.", name, ".kernel"),
                cat("no kernel of ", name, " for arrays on ", out.device()->info().name))
        .help("move the array to the host's device with to(...)");
  }
}
/// Runs on the grid kernels where the device has them.
template <typename Body>
bool on_grid(const NDArray& out, std::string_view name, const Body& body) {
  if (!device::grid_of(out.device()).present()) return false;
  refusing_unsupported(out, name, body);
  return true;
}
}  // namespace

namespace {

/// A loop for each element, over compact operands of one type and shape.
NDArray loop_over(operators::IntegerLoop what, const NDArray& a, const NDArray& b, Elem compute) {
  const Dims* shapes[2] = {&a.shape(), &b.shape()};
  const Dims shape = broadcast_shapes(shapes, "broadcast");
  auto brought = [&](const NDArray& x) {
    return (x.elem() == compute ? x : x.astype(compute)).broadcast_to(shape).contiguous();
  };
  const NDArray x = brought(a), y = brought(b), out = NDArray::empty(a.device(), compute, shape);
  if (out.size() == 0) return out;
  ProgramCall call(out.device());
  call.array(x).array(y).array(out);
  call.integer(ceil_div(out.size(), operators::kIntegerLoopThreads)).integer(out.size());
  call.run({"integer_loop", {static_cast<int>(what), static_cast<int>(compute)}},
           [&] { return operators::integer_loop(what, std::string(name_of(compute))); });
  return out;
}

void power(const NDArray& out, Elem compute, std::span<const Arg> args) {
  auto array = [&](std::size_t k) {
    return args[k].array ? *args[k].array : full(out.device(), compute, Dims{}, args[k].scalar);
  };
  assign(out, loop_over(operators::IntegerLoop::power, array(0), array(1), compute));
}

}  // namespace

NDArray grid_divisors(const NDArray& a, const NDArray& b, bool multiple) {
  const Elem e = promote(a.elem(), b.elem()), wide = elem_bytes(e) < 4 ? Elem::int32 : e;
  const NDArray out =
      loop_over(multiple ? operators::IntegerLoop::lcm : operators::IntegerLoop::gcd, a, b, wide);
  return wide == e ? out : out.astype(e);
}

void device_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args) {
  if (out.size() == 0 || narrow_elementwise(op, compute, out, args)) return;
  if (op == Op::pow && is_integer(compute) && device::grid_of(out.device()).present())
    return power(out, compute, args);
  bool complex = is_complex(compute) || is_complex(out.elem());
  for (const Arg& arg : args) complex |= arg.array && is_complex(arg.array->elem());
  if (complex) {
    return refusing_unsupported(out, info(op).name,
                                [&] { complex_elementwise(op, compute, out, args); });
  }
  const NDArray* arrays[2];
  Scalar constants_in[2] = {0, 0};
  std::size_t array_count = 0, number_count = 0;
  bool is_array[2] = {};
  for (std::size_t k = 0; k < args.size(); ++k) {
    is_array[k] = args[k].array != nullptr;
    if (args[k].array) arrays[array_count++] = args[k].array;
    else constants_in[number_count++] = args[k].scalar;
  }
  bool done = on_grid(out, info(op).name, [&] {
    device::Map map;
    map.key = static_cast<std::uint64_t>(op) << 2 | static_cast<std::uint64_t>(is_array[0]) << 1 |
              static_cast<std::uint64_t>(is_array[1]);
    map.arrays = {arrays, array_count};
    map.numbers = {constants_in, number_count};
    // 16-bit floats are computed in float32 and rounded once; the next number is one of its type.
    const Elem wide = op == Op::nextafter ? compute : device::sum_elem(compute);
    map.compute = wide;
    map.value = [&, wide](const std::vector<Expr>& loads, const std::vector<Expr>& constants) {
      std::vector<Expr> in;
      std::size_t at_load = 0, at_number = 0;
      for (std::size_t k = 0; k < args.size(); ++k)
        in.push_back(is_array[k] ? convert_value(loads[at_load++], wide) : constants[at_number++]);
      return row_value(op, in);
    };
    device::grid_map(out, map);
  });
  if (done) return;
  DeviceProgram p;
  p.name = info(op).name;
  p.variant = std::string(name_of(compute));
  Dims shape = out.shape();
  std::vector<Dims> strides = {out.strides()};
  for (const Arg& arg : args) {
    if (arg.array) strides.push_back(broadcast_strides(*arg.array, out.shape()));
  }
  collapse_axes(shape, strides);
  std::vector<bool> from_array;
  std::size_t at = 1;
  for (const Arg& arg : args) {
    from_array.push_back(arg.array != nullptr);
    p.variant += arg.array ? " array" : " number";
    if (arg.array) p.inputs.push_back({*arg.array, strides[at++], false});
    else p.numbers.push_back({arg.scalar, MachineFacts::wide(compute)});
  }
  p.value = [op, compute, from_array](const DeviceScope& s) {
    std::vector<Expr> in;
    std::size_t loaded = 0, numbered = 0;
    for (bool array : from_array)
      in.push_back(array ? device_cast(s.load(loaded++), compute) : s.numbers[numbered++]);
    return row_value(op, in);
  };
  device_run(out, shape, strides[0], p);
}

bool device_fill(const NDArray& out, const Scalar& value) {
  if (is_complex(out.elem())) return complex_fill(out, value), true;
  if (value.large) return false;
  alignas(16) char checked[16];
  write_scalar(value, out.elem(), checked);  // refuses what does not fit
  const Elem e = elem_bytes(out.elem()) == 2 && is_real_float(out.elem()) ? Elem::float32
                 : out.elem() == Elem::boolean                            ? Elem::int32
                                                                          : out.elem();
  return on_grid(out, "full", [&] {
    device::Map map;
    map.key = 0xfffe;
    map.numbers = {&value, 1};
    map.compute = e;
    map.value = [](const std::vector<Expr>&, const std::vector<Expr>& c) { return c[0]; };
    device::grid_map(out, map);
  });
}

bool device_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b) {
  if (is_complex(out.elem())) return complex_select(out, condition, a, b), true;
  if (narrow_select(out, condition, a, b)) return true;
  return on_grid(out, "where", [&] {
    const NDArray* arrays[3] = {&condition};
    Scalar numbers[2] = {0, 0};
    std::size_t array_count = 1, number_count = 0;
    for (const Arg* arg : {&a, &b}) {
      if (arg->array) arrays[array_count++] = arg->array;
      else numbers[number_count++] = arg->scalar;
    }
    const bool first = a.array, second = b.array;
    device::Map map;
    map.key = 0xfff0 | static_cast<std::uint64_t>(first) << 1 | static_cast<std::uint64_t>(second);
    map.arrays = {arrays, array_count};
    map.numbers = {numbers, number_count};
    map.compute = out.elem();
    map.value = [&](const std::vector<Expr>& x, const std::vector<Expr>& c) {
      Expr left = first ? convert_value(x[1], out.elem()) : c[0];
      Expr right = second ? convert_value(x[first ? 2 : 1], out.elem()) : c[first ? 0 : 1];
      return ir::select(convert_value(x[0], Elem::boolean), left, right);
    };
    device::grid_map(out, map);
  });
}

namespace {
/// 0, 1, ... n - 1. Short ones are kept, so that programs that read them are one launch; they are
/// never given up, since a recording may read them.
NDArray counted(const Ref<Device>& device, std::int64_t n) {
  constexpr std::int64_t kLongest = 1 << 14;
  constexpr std::size_t kMost = 64;
  static auto& mutex = *new ForkSafeMutex;
  static auto& kept = *new std::map<std::pair<const Device*, std::int64_t>, NDArray>;
  auto fresh = [&] { return arange(device, Elem::int32, 0, 1, n); };
  if (n > kLongest || device->info().kind != runtime::DeviceKind::hardware ||
      runtime::recording_on(device))
    return fresh();
  const std::pair<const Device*, std::int64_t> key{device.get(), n};
  bool many = false;
  {
    std::lock_guard lock(mutex);
    if (const auto found = kept.find(key); found != kept.end()) return found->second;
    many = kept.size() >= kMost;
  }
  if (many) return fresh();
  // Its kernel may have to be built, which no lock waits for.
  runtime::MemoryPool::Scope outside(nullptr);
  const NDArray made = fresh();
  runtime::OwnBacklog::settle_of(device.get());
  std::lock_guard lock(mutex);
  return kept.try_emplace(key, made).first->second;
}
}  // namespace

NDArray device_triangle(const NDArray& x, std::int64_t k, bool lower) {
  if (x.on_host() || is_complex(x.elem()) || !device::grid_of(x.device()).present()) return {};
  NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  auto axis = [&](int i) { return counted(x.device(), x.shape()[i]); };
  const int rank = x.ndim();
  const NDArray columns = axis(rank - 1), rows = axis(rank - 2).expand_dims(1);
  const NDArray* arrays[3] = {&x, &rows, &columns};
  const std::int64_t most = x.shape()[rank - 1] + x.shape()[rank - 2];
  const Scalar diagonal[1] = {std::clamp(k, -most, most)};
  device::Map map;
  map.family = "triangle";
  map.key = lower;
  map.arrays = arrays;
  map.numbers = diagonal;
  map.compute = Elem::int32;
  map.value = [&](const std::vector<Expr>& v, const std::vector<Expr>& c) {
    const Expr last = v[1] + c[0];
    return ir::select(lower ? ir::le(v[2], last) : ir::ge(v[2], last), v[0],
                      ir::make_const(0, v[0]->dtype));
  };
  device::grid_map(out, map);
  return out;
}

namespace {

/// Integers of 64 bits on a device that computes with 32: reads take the low words, results are
/// extended. False where the device computes with them, or the other type is none of 32 bits.
bool machine_copy(const NDArray& dst, const NDArray& src) {
  const MachineFacts& facts = machine_of(dst.device());
  auto two_words = [&](Elem e) {
    return (e == Elem::int64 || e == Elem::uint64) && !facts.computes(e);
  };
  auto integral = [](Elem e) { return is_integer(e) || e == Elem::boolean; };
  if (two_words(src.elem()) && dst.elem() == Elem::boolean) {
    const NDArray words = words_of(src);
    const NDArray any =
        apply(Op::bitwise_or, words.select(src.ndim(), 0), words.select(src.ndim(), 1));
    assign(dst, apply(Op::not_equal, any, Scalar(0)));
    return true;
  }
  if (two_words(src.elem()) && is_real_float(dst.elem())) {
    const NDArray low = narrow_integers("astype", src);
    if (low.elem() == src.elem()) return false;
    assign(dst, low);
    return true;
  }
  if (two_words(dst.elem()) && is_real_float(src.elem()) && facts.computes(src.elem())) {
    assign(dst, narrow_float(src));
    return true;
  }
  if (!integral(dst.elem()) || !integral(src.elem())) return false;
  if (two_words(dst.elem()) && two_words(src.elem())) {
    const NDArray from = src.broadcast_to(dst.shape());
    assign(words_of(dst), words_of(from));
    return true;
  }
  if (two_words(src.elem()) && dst.elem() != Elem::boolean) {
    assign(dst, words_of(src).select(src.ndim(), 0));
    return true;
  }
  if (two_words(dst.elem())) {
    const NDArray low = src.astype(Elem::int32), words = words_of(dst);
    assign(words.select(dst.ndim(), 0), low.broadcast_to(dst.shape()));
    const bool sign = is_signed_int(src.elem());
    const NDArray high = sign ? apply(Op::bitwise_right_shift, low, Scalar(31))
                              : full(low.device(), Elem::int32, low.shape(), Scalar(0));
    assign(words.select(dst.ndim(), 1), high.broadcast_to(dst.shape()));
    return true;
  }
  return false;
}

}  // namespace

void device_copy(const NDArray& dst, const NDArray& src) {
  if (dst.size() == 0) return;
  if (is_complex(src.elem()) || is_complex(dst.elem())) return complex_copy(dst, src);
  if (!dst.on_host() && device::grid_of(dst.device()).present() && device::transpose_copy(dst, src))
    return;
  const NDArray* from[1] = {&src};
  bool done = on_grid(dst, "copy", [&] {
    device::Map map;
    map.key = 0xffff;
    map.arrays = from;
    map.value = [&](const std::vector<Expr>& loads, const std::vector<Expr>&) { return loads[0]; };
    device::grid_map(dst, map);
  });
  if (done) return;
  Dims shape = dst.shape();
  std::vector<Dims> strides = {dst.strides(), broadcast_strides(src, dst.shape())};
  const MachineFacts& facts = machine_of(dst.device());
  const bool held = facts.computes(src.elem()) || facts.packs(src.elem());
  if (src.elem() == dst.elem() && facts.known && (facts.transfers() || !held))
    return move_elements(dst, src);
  if (machine_copy(dst, src)) return;
  collapse_axes(shape, strides);
  DeviceProgram p;
  p.name = "copy";
  p.inputs.push_back({src, strides[1], false});
  p.value = [](const DeviceScope& s) { return s.load(0); };
  device_run(dst, shape, strides[0], p);
}

void device_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                   std::uint64_t mask) {
  if (is_complex(kernel) || is_complex(x.elem())) return complex_reduce(op, kernel, out, x, mask);
  if (narrow_reduce(op, kernel, out, x, mask)) return;
  if (on_grid(out, info(op).name, [&] { device::grid_reduce(op, kernel, out, x, mask); })) return;
  Dims kept, gone;
  std::vector<Dims> kept_strides(2), gone_strides(1);
  for (int i = 0; i < x.ndim(); ++i) {
    const bool joins = mask >> i & 1;
    (joins ? gone : kept).push_back(x.shape()[i]);
    (joins ? gone_strides[0] : kept_strides[1]).push_back(x.strides()[i]);
  }
  kept_strides[0] = NDArray::compact_strides(kept);
  collapse_axes(kept, kept_strides);
  collapse_axes(gone, gone_strides);
  DeviceProgram p;
  p.name = info(op).name;
  p.variant = cat("reduce ", name_of(kernel));
  p.reduced = gone;
  Dims strides = kept_strides[1];
  for (std::int64_t s : gone_strides[0]) strides.push_back(s);
  p.inputs.push_back({x, strides, false});
  const MachineFacts& facts = machine_of(out.device());
  const bool extreme = op == ReduceOp::max || op == ReduceOp::min;
  // An instruction takes the larger of two numbers; what is no number is found beside it.
  const bool apart = extreme && is_real_float(kernel) && facts.has_nan();
  // Truth values are combined as 0 and 1.
  const bool truth = kernel == Elem::boolean;
  const ReduceOp how = !truth                                       ? op
                       : op == ReduceOp::all || op == ReduceOp::min ? ReduceOp::min
                                                                    : ReduceOp::max;
  p.init = [op, how, kernel, truth](DType sum) {
    if (truth) return ir::make_int(how == ReduceOp::min, sum);
    return convert_value(reduce_identity(op, kernel), elem_of(sum));
  };
  p.value = [how, extreme, kernel, truth](const DeviceScope& s) {
    const Expr one =
        truth ? convert_value(s.load(0), Elem::boolean) : device_cast(s.load(0), kernel);
    const Expr term = truth ? ir::cast(s.sum, one) : one;
    if (how == ReduceOp::max && (extreme || truth)) return ir::max(s.acc, term);
    if (how == ReduceOp::min && (extreme || truth)) return ir::min(s.acc, term);
    return reduce_value(how, s.acc, term);
  };
  if (!apart) return device_run(out, kept, kept_strides[0], p);
  const NDArray largest = NDArray::empty(out.device(), kernel, out.shape()),
                nans = NDArray::empty(out.device(), kernel, out.shape());
  device_run(largest, kept, kept_strides[0], p);
  p.variant += " nan";
  p.init = [](DType sum) { return ir::make_const(0, sum); };
  p.value = [kernel](const DeviceScope& s) {
    const Expr term = device_cast(s.load(0), kernel);
    return s.acc + ir::select(ir::ne(term, term), term, ir::make_const(0, s.sum));
  };
  device_run(nans, kept, kept_strides[0], p);
  apply_into(Op::add, out, largest, nans);
}

namespace {
device::Contraction contraction_of(const NDArray& out, const NDArray& a, const NDArray& b) {
  const int r = out.ndim();
  auto lead = [&](const NDArray& x) { return Dims(x.strides().data(), r - 2); };
  device::Contraction c;
  c.batch = Dims(out.shape().data(), r - 2);
  c.m = Dims{out.shape()[r - 2]};
  c.n = Dims{out.shape()[r - 1]};
  c.k = Dims{a.shape()[r - 1]};
  c.a = {lead(a), Dims{a.strides()[r - 2]}, Dims{a.strides()[r - 1]}};
  c.b = {lead(b), Dims{b.strides()[r - 2]}, Dims{b.strides()[r - 1]}};
  c.out = {lead(out), Dims{out.strides()[r - 2]}, Dims{out.strides()[r - 1]}};
  return c;
}
}  // namespace

NDArray device_linear(const NDArray& a, const NDArray& b, const NDArray& bias) {
  const Elem elem = a.elem();
  const bool narrow = elem == Elem::float16 || elem == Elem::bfloat16;
  if (!device::grid_of(a.device()).present() || a.ndim() != 2 || b.ndim() != 2 ||
      bias.ndim() != 1 || a.size() == 0 || b.size() == 0 || a.shape()[1] != b.shape()[0] ||
      bias.size() != b.shape()[1] || std::min(a.shape()[0], b.shape()[1]) <= kFewColumns ||
      b.elem() != elem || bias.elem() != elem ||
      (!narrow && elem != Elem::float32 && elem != Elem::float64) ||
      a.device().get() != b.device().get() || a.device().get() != bias.device().get())
    return {};
  NDArray out = NDArray::empty(a.device(), elem, Dims{a.shape()[0], b.shape()[1]});
  const NDArray numbers = bias.contiguous();
  ProductScales added;
  added.bias = numbers;
  if ((device::prefers_product(out, a, b) || device::prefers_pieces(out, a, b)) &&
      device::warp_specialized_product(out, a, b, nullptr, &added))
    return out;
  if (narrow) return {};
  device::grid_contract(out, a, b, contraction_of(out, a, b), &numbers);
  return out;
}

void device_matmul(const NDArray& out, const NDArray& a, const NDArray& b) {
  if (is_complex(out.elem())) return complex_matmul(out, a, b);
  if (device::grid_of(out.device()).present()) {
    const int r = out.ndim();
    if ((device::prefers_product(out, a, b) || device::prefers_pieces(out, a, b)) &&
        device::warp_specialized_product(out, a, b))
      return;
    if (std::min(out.shape()[r - 2], out.shape()[r - 1]) <= kFewColumns &&
        out.elem() != Elem::boolean)
      return few_columns_program(out, a, b);
    const device::Contraction c = contraction_of(out, a, b);
    // Copies that run beside the arithmetic cannot convert: large operands are converted first.
    constexpr std::int64_t kLarge = std::int64_t{1} << 27;
    const bool large = c.m[0] * c.n[0] >= kLarge / std::max<std::int64_t>(1, c.k[0]);
    const Elem sum = device::sum_elem(out.elem());
    if (large && (a.elem() != sum || b.elem() != sum)) {
      return device_matmul(out, a.elem() == sum ? a : a.astype(sum),
                           b.elem() == sum ? b : b.astype(sum));
    }
    return device::grid_contract(out, a, b, c);
  }
  // Batch axes, rows and columns are kept; a does not move along columns, b not along rows.
  const int nd = out.ndim();
  DeviceProgram p;
  p.name = "matmul";
  p.reduced = Dims{a.shape()[nd - 1]};
  Dims sa = a.strides(), sb = b.strides();
  const std::int64_t ka = sa[nd - 1], kb = sb[nd - 2];
  sa[nd - 1] = 0;
  sb[nd - 2] = 0;
  sa.push_back(ka);
  sb.push_back(kb);
  p.inputs.push_back({a, sa, false});
  p.inputs.push_back({b, sb, false});
  const Elem elem = out.elem();
  p.init = [](DType sum) { return ir::make_const(0, sum); };
  p.value = [elem](const DeviceScope& s) {
    const Expr x = device_cast(s.load(0), elem), y = device_cast(s.load(1), elem);
    if (elem == Elem::boolean) return ir::max(s.acc, ir::cast(s.sum, ir::logical_and(x, y)));
    return s.acc + x * y;
  };
  device_run(out, p);
}

bool device_has_contraction(const NDArray& x) {
  return !x.on_host() && !is_complex(x.elem()) && device::grid_of(x.device()).present();
}

}  // namespace weft
