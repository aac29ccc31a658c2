// SPDX-License-Identifier: Apache-2.0
#include "weft/array/device_ops.h"

#include <functional>
#include <map>
#include <mutex>

#include "weft/array/collapse.h"
#include "weft/array/complex_device.h"
#include "weft/array/device_grid.h"
#include "weft/array/device_product.h"
#include "weft/array/device_turn.h"
#include "weft/array/gpu/thin_product.h"
#include "weft/array/nest.h"
#include "weft/array/row_ir.h"
#include "weft/operators/integer_power.h"
#include "weft/target/backend.h"

namespace weft {

namespace {

using ir::Expr;
using ir::Var;

/// A program over flat storages: extents, then for each array an offset and strides, are run-time
/// scalars.
class Program {
 public:
  explicit Program(int rank, int reduced = 0) : reduced_(reduced) {
    for (int i = 0; i < rank + reduced; ++i) extents_.push_back(ir::make_var(cat("d", i)));
  }

  struct Array {
    ir::Buffer buffer;
    Expr index;
    bool whole = false;  // read at computed places
  };
  /// An array whose position depends on the axes [0, dims).
  Array array(const std::string& name, Elem elem, int dims) {
    auto buffer = ir::edit(ir::make_buffer(name, dtype_of(elem), {ir::make_var("n_" + name)}));
    buffer->align = elem_bytes(elem);
    Var offset = ir::make_var("o_" + name);
    scalars_.push_back(offset);
    ir::Expr index = offset;
    for (int i = 0; i < dims; ++i) {
      Var stride = ir::make_var(cat("s_", name, "_", i));
      scalars_.push_back(stride);
      index = index + Expr(iter(i)) * Expr(stride);
    }
    buffers_.push_back(buffer);
    return {buffer, index};
  }
  Expr scalar(const std::string& name, Elem elem) {
    Var v = ir::make_var(name, dtype_of(elem));
    numbers_.push_back(v);
    return v;
  }
  Var iter(int i) {
    while (static_cast<int>(iters_.size()) <= i)
      iters_.push_back(ir::make_var(cat("v", iters_.size())));
    return iters_[static_cast<std::size_t>(i)];
  }

  ir::PrimFunc finish(const Array& out, const Expr& value, const Expr& init,
                      const std::vector<Array>& reads) {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = "element";
    std::vector<Var> loops;
    ir::Exprs values;
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      bool spatial = i + static_cast<std::size_t>(reduced_) < extents_.size();
      block->iters.push_back({iter(static_cast<int>(i)),
                              {ir::make_int(0), extents_[i]},
                              spatial ? ir::IterKind::spatial : ir::IterKind::reduce});
      loops.push_back(ir::make_var(cat("i", i)));
      values.push_back(loops.back());
    }
    for (const Array& a : reads) {
      block->reads.push_back(a.whole ? ir::full_region(a.buffer)
                                     : ir::point_region(a.buffer, {a.index}));
    }
    block->writes.push_back(ir::point_region(out.buffer, {out.index}));
    block->body = ir::store(out.buffer, value, {out.index});
    if (init) block->init = ir::store(out.buffer, init, {out.index});
    ir::Stmt body = ir::block_realize(values, ir::make_bool(true), block);
    for (std::size_t i = extents_.size(); i-- > 0;)
      body = ir::make_for(loops[i], ir::make_int(0), extents_[i], body);
    std::vector<ir::Param> params;
    for (const ir::Buffer& b : buffers_) params.push_back(ir::buffer_param(b));
    for (const Var& v : extents_) params.push_back({v, nullptr});
    for (const Var& v : scalars_) params.push_back({v, nullptr});
    for (const Var& v : numbers_) params.push_back({v, nullptr});
    return ir::make_func("main", std::move(params), ir::root_block(body));
  }

 private:
  int reduced_;
  std::vector<Var> extents_, scalars_, numbers_, iters_;
  std::vector<ir::Buffer> buffers_;
};

runtime::CallArg pointer(const NDArray& a) {
  runtime::CallArg arg;
  arg.storage = a.handle().get();
  arg.dtype = a.dtype();
  arg.shape = {static_cast<std::int64_t>(a.handle()->bytes()) / elem_bytes(a.elem())};
  return arg;
}
runtime::CallArg integer(std::int64_t v) {
  runtime::CallArg arg;
  arg.dtype = dtypes::int64;
  arg.int_value = v;
  return arg;
}
runtime::CallArg number(const Scalar& s, Elem e) {
  runtime::CallArg arg;
  arg.dtype = dtype_of(e);
  arg.int_value = s.kind <= Kind::integer ? s.i : static_cast<std::int64_t>(s.z.real());
  arg.float_value = s.kind <= Kind::integer ? static_cast<double>(s.i) : s.z.real();
  return arg;
}

/// Builds once for each key and device, then calls.
void run(const Ref<Device>& device, std::string_view name, const std::string& key,
         const std::function<ir::PrimFunc()>& make, const std::vector<runtime::CallArg>& args) {
  if (device->info().name.starts_with("rpc:")) {
    throw Error(ErrorKind::device, "array.device.remote",
                cat(name, " is not computed on ", device->info().name,
                    ": arrays there are arguments of uploaded modules"))
        .help("upload a module that computes it, or bring the array here with to(\"cpu\")");
  }
  static std::mutex mutex;
  static auto& built = *new std::map<std::string, Ref<runtime::Function>>;
  const std::string full = cat(device->info().name, " ", key);
  Ref<runtime::Function> function;
  {
    std::lock_guard lock(mutex);
    function = built[full];
  }
  if (!function) {
    try {
      Ref<runtime::Module> module = build(ir::make_module(make()), device->info().name);
      function = make_ref<runtime::Function>(module, "main", device);
    } catch (const RowUnsupported&) {
      throw Error(ErrorKind::device, cat("array.", name, ".kernel"),
                  cat("no kernel of ", name, " for arrays on ", device->info().name))
          .help("move the array to the host's device with to(...)");
    } catch (Error& error) {
      throw error.context(cat("building ", name, " for arrays on ", device->info().name));
    }
    std::lock_guard lock(mutex);
    built[full] = function;
  }
  function->call(args).wait();
}

void add_view(std::vector<runtime::CallArg>& scalars, const NDArray& a, const Dims& strides) {
  scalars.push_back(integer(a.offset()));
  for (std::int64_t s : strides) scalars.push_back(integer(s));
}

void no_complex(Elem e, std::string_view name, const NDArray& on) {
  if (!is_complex(e)) return;
  throw Error(
      ErrorKind::device, cat("array.", name, ".kernel"),
      cat("no kernel of ", name, " for ", name_of(e), " arrays on ", on.device()->info().name))
      .help("move the array to the host's device with to(...)");
}

}  // namespace

namespace {
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
  if (!device::grid_of(out.device()).present) return false;
  refusing_unsupported(out, name, body);
  return true;
}
}  // namespace

namespace {

/// Powers of integers: operands of the result's shape and type, one loop of squarings for each.
void power(const NDArray& out, Elem compute, std::span<const Arg> args) {
  NDArray in[2];
  for (std::size_t k : {0u, 1u}) {
    const NDArray x =
        args[k].array ? *args[k].array : full(out.device(), compute, Dims{}, args[k].scalar);
    in[k] = x.elem() == compute ? x : x.astype(compute);
    in[k] = in[k].broadcast_to(out.shape()).contiguous();
  }
  const NDArray result = NDArray::empty(out.device(), compute, out.shape());
  ProgramCall call(out.device());
  call.array(in[0]).array(in[1]).array(result);
  call.integer((out.size() + operators::kPowerThreads - 1) / operators::kPowerThreads);
  call.integer(out.size());
  call.run({"integer_power", {static_cast<int>(compute)}},
           [&] { return operators::integer_power(std::string(name_of(compute))); });
  assign(out, result);
}

}  // namespace

void device_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args) {
  if (out.size() == 0) return;
  if (op == Op::pow && is_integer(compute) && device::grid_of(out.device()).present)
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
    map.compute = compute;
    map.value = [&](const std::vector<Expr>& loads, const std::vector<Expr>& constants) {
      std::vector<Expr> in;
      std::size_t at_load = 0, at_number = 0;
      for (std::size_t k = 0; k < args.size(); ++k)
        in.push_back(is_array[k] ? convert_value(loads[at_load++], compute)
                                 : constants[at_number++]);
      return row_value(op, in);
    };
    device::grid_map(out, map);
  });
  if (done) return;
  std::string key = cat(info(op).name, " ", name_of(compute), " ", name_of(out.elem()));
  Dims shape = out.shape();
  std::vector<Dims> strides = {out.strides()};
  for (const Arg& arg : args) {
    if (arg.array) {
      strides.push_back(broadcast_strides(*arg.array, out.shape()));
      key += cat(" ", name_of(arg.array->elem()));
    } else {
      key += " number";
    }
  }
  collapse_axes(shape, strides);
  const int rank = shape.size();
  key += cat(" ", rank);
  auto make = [&] {
    Program p(rank);
    Program::Array o = p.array("out", out.elem(), rank);
    std::vector<Program::Array> reads;
    std::vector<Expr> in;
    for (std::size_t k = 0; k < args.size(); ++k) {
      if (args[k].array) {
        reads.push_back(p.array(cat("a", k), args[k].array->elem(), rank));
        in.push_back(convert_value(ir::load(reads.back().buffer, {reads.back().index}), compute));
      } else {
        in.push_back(p.scalar(cat("c", k), compute));
      }
    }
    return p.finish(o, convert_value(row_value(op, in), out.elem()), nullptr, reads);
  };
  std::vector<runtime::CallArg> call = {pointer(out)}, views, numbers;
  add_view(views, out, strides[0]);
  std::size_t at = 1;
  for (const Arg& arg : args) {
    if (arg.array) {
      call.push_back(pointer(*arg.array));
      add_view(views, *arg.array, strides[at++]);
    } else {
      numbers.push_back(number(arg.scalar, compute));
    }
  }
  for (std::int64_t extent : shape) call.push_back(integer(extent));
  call.insert(call.end(), views.begin(), views.end());
  call.insert(call.end(), numbers.begin(), numbers.end());
  run(out.device(), info(op).name, key, make, call);
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

void device_copy(const NDArray& dst, const NDArray& src) {
  if (dst.size() == 0) return;
  if (is_complex(src.elem()) || is_complex(dst.elem())) return complex_copy(dst, src);
  if (!dst.on_host() && device::grid_of(dst.device()).present && device::turn_copy(dst, src))
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
  collapse_axes(shape, strides);
  const int rank = shape.size();
  auto make = [&] {
    Program p(rank);
    Program::Array o = p.array("out", dst.elem(), rank), a = p.array("a0", src.elem(), rank);
    return p.finish(o, convert_value(ir::load(a.buffer, {a.index}), dst.elem()), nullptr, {a});
  };
  std::vector<runtime::CallArg> call = {pointer(dst), pointer(src)};
  for (std::int64_t extent : shape) call.push_back(integer(extent));
  add_view(call, dst, strides[0]);
  add_view(call, src, strides[1]);
  run(dst.device(), "copy", cat("copy ", name_of(dst.elem()), " ", name_of(src.elem()), " ", rank),
      make, call);
}

void device_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                   std::uint64_t mask) {
  if (is_complex(kernel) || is_complex(x.elem())) return complex_reduce(op, kernel, out, x, mask);
  if (on_grid(out, info(op).name, [&] { device::grid_reduce(op, kernel, out, x, mask); })) return;
  Dims kept, gone;
  std::vector<Dims> kept_strides(2), gone_strides(1);
  Dims compact = NDArray::compact_strides(out.shape());
  std::int64_t step = 1;
  for (int i = 0; i < x.ndim(); ++i) {
    if (mask >> i & 1) {
      gone.push_back(x.shape()[i]);
      gone_strides[0].push_back(x.strides()[i]);
    } else {
      kept.push_back(x.shape()[i]);
      kept_strides[1].push_back(x.strides()[i]);
    }
  }
  kept_strides[0] = NDArray::compact_strides(kept);
  (void)compact;
  (void)step;
  collapse_axes(kept, kept_strides);
  collapse_axes(gone, gone_strides);
  const int rank = kept.size(), reduced = gone.size();
  auto make = [&] {
    Program p(rank, reduced);
    Program::Array o = p.array("out", kernel, rank), a = p.array("a0", x.elem(), rank + reduced);
    Expr acc = ir::load(o.buffer, {o.index});
    Expr value = reduce_value(op, acc, convert_value(ir::load(a.buffer, {a.index}), kernel));
    return p.finish(o, value, reduce_identity(op, kernel), {o, a});
  };
  std::vector<runtime::CallArg> call = {pointer(out), pointer(x)};
  for (std::int64_t extent : kept) call.push_back(integer(extent));
  for (std::int64_t extent : gone) call.push_back(integer(extent));
  add_view(call, out, kept_strides[0]);
  Dims all = kept_strides[1];
  for (std::int64_t s : gone_strides[0]) all.push_back(s);
  add_view(call, x, all);
  run(out.device(), info(op).name,
      cat(info(op).name, " ", name_of(kernel), " ", name_of(x.elem()), " ", rank, " ", reduced),
      make, call);
}

namespace {

/// A product with one row or one column is a reduction of products: both operands are read once, by
/// neighbouring threads. False for other products.
bool matrix_vector(const NDArray& out, const NDArray& a, const NDArray& b) {
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1];
  if ((m != 1 && n != 1) || out.elem() == Elem::boolean) return false;
  // (batch, rows, k) of the matrix, with the vector spread over the rows.
  const NDArray matrix = n == 1 ? a : b.transpose(r - 2, r - 1);
  const NDArray vector = n == 1 ? b.transpose(r - 2, r - 1) : a;
  const NDArray* arrays[2] = {&matrix, &vector};
  const Elem compute = device::sum_elem(out.elem());
  device::Map map;
  map.family = "matrix_vector";
  map.arrays = arrays;
  map.compute = compute;
  map.value = [&](const std::vector<Expr>& x, const std::vector<Expr>&) {
    return convert_value(x[0], compute) * convert_value(x[1], compute);
  };
  Dims kept = matrix.shape();
  kept.resize(r - 1);
  device::grid_reduce(ReduceOp::sum, compute, out.reshape(kept), map, matrix.shape(),
                      std::uint64_t{1} << (r - 1));
  return true;
}

}  // namespace

void device_matmul(const NDArray& out, const NDArray& a, const NDArray& b) {
  if (is_complex(out.elem())) return complex_matmul(out, a, b);
  if (device::grid_of(out.device()).present) {
    const int r = out.ndim();
    if (device::prefers_product(out, a, b)) return device::grid_product(out, a, b);
    if (device::thin_product(out, a, b) || matrix_vector(out, a, b)) return;
    auto lead = [&](const NDArray& x) { return Dims(x.strides().data(), r - 2); };
    device::Contraction c;
    c.batch = Dims(out.shape().data(), r - 2);
    c.m = Dims{out.shape()[r - 2]};
    c.n = Dims{out.shape()[r - 1]};
    c.k = Dims{a.shape()[r - 1]};
    c.a = {lead(a), Dims{a.strides()[r - 2]}, Dims{a.strides()[r - 1]}};
    c.b = {lead(b), Dims{b.strides()[r - 2]}, Dims{b.strides()[r - 1]}};
    c.out = {lead(out), Dims{out.strides()[r - 2]}, Dims{out.strides()[r - 1]}};
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
  auto make = [&] {
    Program p(nd, 1);
    Program::Array o = p.array("out", out.elem(), nd), x = p.array("a0", a.elem(), nd + 1),
                   y = p.array("a1", b.elem(), nd + 1);
    Expr product = convert_value(ir::load(x.buffer, {x.index}), out.elem()) *
                   convert_value(ir::load(y.buffer, {y.index}), out.elem());
    return p.finish(o, ir::load(o.buffer, {o.index}) + product,
                    ir::make_const(0, dtype_of(out.elem())), {o, x, y});
  };
  std::vector<runtime::CallArg> call = {pointer(out), pointer(a), pointer(b)};
  for (std::int64_t extent : out.shape()) call.push_back(integer(extent));
  call.push_back(integer(a.shape()[nd - 1]));
  add_view(call, out, out.strides());
  Dims sa = a.strides(), sb = b.strides();
  std::int64_t ka = sa[nd - 1], kb = sb[nd - 2];
  sa[nd - 1] = 0;
  sb[nd - 2] = 0;
  sa.push_back(ka);
  sb.push_back(kb);
  add_view(call, a, sa);
  add_view(call, b, sb);
  run(out.device(), "matmul",
      cat("matmul ", name_of(out.elem()), " ", name_of(a.elem()), " ", name_of(b.elem()), " ", nd),
      make, call);
}

ir::Expr device_cast(const ir::Expr& x, Elem elem) { return convert_value(x, elem); }

void device_run(const NDArray& out, const DeviceProgram& program) {
  if (out.size() == 0) return;
  const int rank = out.ndim(), reduced = program.reduced.size();
  std::string key =
      cat(program.name, " ", program.variant, " ", name_of(out.elem()), " ", rank, " ", reduced);
  no_complex(out.elem(), program.name, out);
  for (const DeviceProgram::Input& input : program.inputs) {
    no_complex(input.array.elem(), program.name, out);
    key += cat(" ", name_of(input.array.elem()), input.whole ? "*" : "");
  }
  auto make = [&] {
    Program p(rank, reduced);
    Program::Array o = p.array("out", out.elem(), rank);
    std::vector<Program::Array> reads;
    if (reduced) reads.push_back(o);
    DeviceScope scope;
    for (std::size_t k = 0; k < program.inputs.size(); ++k) {
      Program::Array a = p.array(cat("a", k), program.inputs[k].array.elem(), rank + reduced);
      a.whole = program.inputs[k].whole;
      scope.buffers.push_back(a.buffer);
      scope.at.push_back(a.index);
      reads.push_back(std::move(a));
    }
    for (int i = 0; i < rank + reduced; ++i) scope.axes.push_back(p.iter(i));
    for (std::size_t k = 0; k < program.numbers.size(); ++k)
      scope.numbers.push_back(p.scalar(cat("c", k), Elem::int64));
    if (reduced) scope.acc = ir::load(o.buffer, {o.index});
    return p.finish(o, convert_value(program.value(scope), out.elem()),
                    reduced ? program.init : nullptr, reads);
  };
  std::vector<runtime::CallArg> call = {pointer(out)}, views;
  add_view(views, out, out.strides());
  for (const DeviceProgram::Input& input : program.inputs) {
    call.push_back(pointer(input.array));
    add_view(views, input.array, input.strides);
  }
  for (std::int64_t extent : out.shape()) call.push_back(integer(extent));
  for (std::int64_t extent : program.reduced) call.push_back(integer(extent));
  call.insert(call.end(), views.begin(), views.end());
  for (std::int64_t v : program.numbers) call.push_back(integer(v));
  run(out.device(), program.name, key, make, call);
}

bool device_has_contraction(const NDArray& x) {
  return !x.on_host() && !is_complex(x.elem()) && device::grid_of(x.device()).present;
}

}  // namespace weft
