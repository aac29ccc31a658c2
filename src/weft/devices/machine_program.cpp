// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/machine_program.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "weft/array/collapse.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/devices/machine.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/visit.h"
#include "weft/target/backend.h"

namespace weft {

using ir::Expr;
using ir::Var;

namespace {

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
  if (e == Elem::boolean)  // true is what is not 0
    arg.int_value = s.kind <= Kind::integer ? s.i != 0 : s.z != 0.0;
  arg.float_value = s.kind <= Kind::integer ? static_cast<double>(s.i) : s.z.real();
  return arg;
}

/// A view as a row-major buffer: extents, and which axis moves along each of them from where.
struct Box {
  struct Dim {
    std::int64_t extent = 1, first = 0;
    int axis = -1;  // none: always at `first`
    bool reversed = false;
    std::int64_t axis_extent = 1;
  };
  std::vector<Dim> dims;
  std::int64_t offset = 0;  // elements before the buffer
};

/// The view's axes as digits of a mixed-radix position. None where a digit would carry, or the
/// buffer would reach behind the storage.
std::optional<Box> box_of(std::int64_t offset, std::int64_t storage, const Dims& shape,
                          const Dims& strides) {
  Box box;
  std::vector<int> axes;
  for (int i = 0; i < strides.size(); ++i) {
    if (shape[i] > 1 && strides[i] != 0) axes.push_back(i);
  }
  auto step = [&](int axis) { return std::abs(strides[axis]); };
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return step(a) > step(b); });
  std::int64_t lowest = offset, dense = 1;
  bool compact = true;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const int i = axes[k];
    if (strides[i] < 0) lowest += (shape[i] - 1) * strides[i];
    compact = compact && step(i) == dense;
    dense *= shape[i];
  }
  auto dim = [&](int i, std::int64_t extent, std::int64_t first) {
    box.dims.push_back({extent, first, i, strides[i] < 0, shape[i]});
  };
  if (compact) {
    box.offset = lowest;
    for (int i : axes) dim(i, shape[i], 0);
    if (axes.empty()) box.dims.push_back({});
    return box;
  }
  std::int64_t rest = lowest;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const int i = axes[k];
    const std::int64_t first = rest / step(i);
    rest %= step(i);
    if (k == 0) {
      dim(i, first + shape[i], first);
      continue;
    }
    const std::int64_t outer = step(axes[k - 1]);
    if (outer % step(i) || first + shape[i] > outer / step(i)) return std::nullopt;
    dim(i, outer / step(i), first);
  }
  if (const std::int64_t last = step(axes.back()); last > 1) box.dims.push_back({last, rest});
  std::int64_t all = 1;
  for (const Box::Dim& d : box.dims) all *= d.extent;
  if (all > storage) return std::nullopt;
  return box;
}

/// Which elements a store's value reads: one of each buffer where its place is no loaded value.
void read_regions(const ir::Stmt& body, std::vector<ir::BufferRegion>& out) {
  ir::for_each_expr(body, [&](const Expr& e) {
    const auto* l = ir::as<ir::LoadNode>(e);
    if (!l) return;
    bool computed = false;
    for (const Expr& i : l->indices) {
      ir::for_each_expr(i, [&](const Expr& x) { computed |= x->kind == ir::ExprKind::load; });
    }
    auto region = computed ? ir::full_region(l->buffer) : ir::point_region(l->buffer, l->indices);
    for (ir::BufferRegion& known : out) {
      if (known.buffer != l->buffer) continue;
      known = ir::full_region(l->buffer);
      return;
    }
    out.push_back(std::move(region));
  });
}

/// Tests of floats by arithmetic, for machines without instructions for them.
class SpellTests final : public ir::Rewriter {
 protected:
  Expr rewrite_call(const Expr& e) override {
    const Expr inner = ir::Rewriter::rewrite_call(e);
    const auto* c = ir::as<ir::CallNode>(inner);
    if (!c || c->args.size() != 1) return inner;
    const Expr& x = c->args[0];
    const Expr zero = ir::make_const(0, x->dtype);
    if (c->op == "isnan") return ir::ne(x, x);
    if (c->op == "isfinite") return ir::eq(x - x, zero);
    if (c->op == "isinf") return ir::logical_and(ir::eq(x, x), ir::ne(x - x, zero));
    return inner;
  }
};

/// The program's text and the arguments that fit it.
class Writer {
 public:
  Writer(const MachineFacts& facts, const Dims& kept, const Dims& reduced)
      : facts_(facts),
        symbolic_(facts.info.symbolic_shapes && reduced.empty()),
        kept_(kept.size()) {
    for (const Dims* part : {&kept, &reduced}) {
      for (std::int64_t n : *part) shape_.push_back(n);
    }
    for (int i = 0; i < shape_.size(); ++i) {
      iters_.push_back(ir::make_var(cat("v", i)));
      if (!symbolic_ || shape_[i] == 1) {  // an axis of one element does not move
        key_ += cat(" ", shape_[i]);
        extents_.push_back(ir::make_int(shape_[i]));
        continue;
      }
      key_ += " _";
      Var v = ir::make_var(cat("d", i));
      extents_.push_back(v);
      scalars_.push_back(v);
      scalar_args_.push_back(integer(shape_[i]));
    }
    key_ += cat(" ", kept.size(), " ", reduced.size());
  }

  struct Operand {
    ir::Buffer buffer;
    ir::Exprs index;  // of this point
    bool packed = false, truth = false;
    Elem elem = Elem::float32;
    Expr load(const Expr& distance) const;
  };

  /// An array of which this program reads or writes the elements at `strides` along the first axes.
  Operand operand(const std::string& name, const NDArray& given, const Dims& strides, bool whole) {
    Operand out;
    NDArray a = given;
    out.packed = facts_.packs(a.elem());
    if (out.packed && facts_.transfers()) {
      out.packed = false, out.truth = a.elem() == Elem::boolean;
      a = widened(given);
      held_.push_back(a);
    }
    out.elem = a.elem();
    if (out.truth) key_ += " truth";
    key_ += cat(" ", name_of(a.elem()), whole ? "*" : "");
    runtime::CallArg arg;
    arg.storage = a.handle().get();
    arg.dtype = out.packed ? dtypes::int32 : a.dtype();
    const auto bytes = static_cast<std::int64_t>(a.handle()->bytes());
    const std::int64_t all = bytes / (out.packed ? 4 : elem_bytes(a.elem()));
    if (!symbolic_ && !whole && !out.packed) {
      if (auto box = box_of(a.offset(), all, Dims(shape_.data(), strides.size()), strides)) {
        arg.byte_offset = static_cast<runtime::Bytes>(box->offset * elem_bytes(a.elem()));
        ir::Exprs extents;
        for (const Box::Dim& d : box->dims) {
          key_ += cat(" [", d.axis, d.reversed ? "-" : "+", d.first, "/", d.extent, "]");
          arg.shape.push_back(d.extent);
          extents.push_back(ir::make_int(d.extent));
          Expr at = ir::make_int(d.first);
          if (d.axis >= 0) {
            Expr along = iters_[static_cast<std::size_t>(d.axis)];
            const std::int64_t first = d.first + (d.reversed ? d.axis_extent - 1 : 0);
            at = d.reversed ? ir::make_int(first) - along
                            : (first ? along + ir::make_int(first) : along);
          }
          out.index.push_back(at);
        }
        return finish(name, std::move(out), std::move(extents), std::move(arg));
      }
    }
    arg.shape = {all};
    auto place = [&](const std::string& what, std::int64_t value) -> Expr {
      // Steps of 0 and 1 decide which accesses are side by side.
      if (!symbolic_ || value == 0 || value == 1) {
        key_ += cat(" ", value);
        return ir::make_int(value);
      }
      key_ += " _";
      Var v = ir::make_var(what);
      views_.push_back(v);
      view_args_.push_back(integer(value));
      return v;
    };
    Expr at = place(cat("o_", name), a.offset());
    for (int i = 0; i < strides.size(); ++i) {
      if (strides[i] == 0 || shape_[i] == 1) {
        key_ += " 0";
        continue;
      }
      at = at +
           Expr(iters_[static_cast<std::size_t>(i)]) * place(cat("s_", name, "_", i), strides[i]);
    }
    out.index = {at};
    if (!symbolic_) key_ += cat(" of ", all);
    const Expr extent = symbolic_ ? Expr(ir::make_var("n_" + name)) : ir::make_int(all);
    return finish(name, std::move(out), {extent}, std::move(arg));
  }

  /// A number: an argument where the target takes numbers, else part of the program when it is an
  /// integer and an array of one element otherwise, so that a program serves all its values.
  Expr scalar(const std::string& name, const DeviceProgram::Number& n, const Ref<Device>& device) {
    key_ += cat(" number ", name_of(n.elem));
    const DType type = dtype_of(n.elem);
    if (symbolic_) {
      Var v = ir::make_var(name, type);
      numbers_.push_back(v);
      number_args_.push_back(number(n.value, n.elem));
      return v;
    }
    if (!is_real_float(n.elem)) {
      const std::int64_t value = number(n.value, n.elem).int_value;
      key_ += cat(" ", value);
      return ir::make_const(static_cast<double>(value), type);
    }
    const NDArray one = full(device, n.elem, Dims{1}, n.value);
    held_.push_back(one);
    Operand x = operand(name, one, Dims{}, false);
    return x.load(nullptr);
  }

  Var iter(int i) const { return iters_[static_cast<std::size_t>(i)]; }
  int rank() const { return shape_.size(); }
  const std::string& key() const { return key_; }
  const std::vector<ir::Buffer>& reads() const { return buffers_; }

  /// out[kept] = value, or `value` combined over the reduced axes from `init` on. `narrow`: sums
  /// are made in a buffer of their own, of type `sum`, and cut by a block behind.
  ir::PrimFunc finish(const Operand& out, const Expr& value, const Expr& init,
                      const std::optional<Operand>& sums) const {
    std::vector<ir::Stmt> stages = {stage("element", sums ? *sums : out, value, init, rank())};
    if (sums)
      stages.push_back(
          stage("narrow", out, convert_value(sums->load(nullptr), out.elem), nullptr, kept_));
    std::vector<ir::Param> params;
    for (const ir::Buffer& b : buffers_) params.push_back(ir::buffer_param(b));
    for (const std::vector<Var>* list : {&scalars_, &views_, &numbers_}) {
      for (const Var& v : *list) params.push_back({v, nullptr});
    }
    ir::Stmt root = ir::root_block(stages.size() == 1 ? stages[0] : ir::seq(stages));
    if (sums) {
      const auto* realize = ir::as<ir::BlockRealizeNode>(root);
      auto block = ir::edit(realize->block);
      block->alloc_buffers.push_back(sums->buffer);
      root = ir::block_realize(realize->iter_values, realize->predicate, ir::Block(block));
    }
    return ir::make_func("main", std::move(params), root);
  }

  /// A buffer of the kept axes' extents.
  Operand temporary(DType type) const {
    Operand out;
    ir::Exprs extents(extents_.begin(), extents_.begin() + kept_);
    for (int i = 0; i < kept_; ++i) out.index.push_back(iter(i));
    if (!kept_) extents = {ir::make_int(1)}, out.index = {ir::make_int(0)};
    out.buffer = ir::make_buffer("sums", type, extents);
    return out;
  }

  std::vector<runtime::CallArg> arguments() const {
    std::vector<runtime::CallArg> all = array_args_;
    for (const auto* list : {&scalar_args_, &view_args_, &number_args_})
      all.insert(all.end(), list->begin(), list->end());
    return all;
  }

 private:
  Operand finish(const std::string& name, Operand out, ir::Exprs extents, runtime::CallArg arg) {
    const DType type = out.packed ? dtypes::int32 : dtype_of(out.elem);
    auto buffer = ir::edit(ir::make_buffer(name, type, std::move(extents)));
    // Memories are filled by whole elements: what begins between two of them is not aligned.
    std::int64_t step = 1;
    for (const MemoryInfo& m : facts_.info.memories)
      step = std::max<std::int64_t>(step, m.min_transfer_bytes);
    const bool aligned = static_cast<std::int64_t>(arg.byte_offset) % step == 0;
    if (!aligned) buffer->align = type.bytes(), key_ += " between";
    out.buffer = buffer;
    buffers_.push_back(out.buffer);
    array_args_.push_back(std::move(arg));
    return out;
  }

  ir::Stmt stage(const char* name, const Operand& to, const Expr& value, const Expr& init,
                 int axes) const {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = name;
    // A stage of its own has iterators of its own.
    std::unordered_map<const ir::VarNode*, Expr> fresh;
    std::vector<Var> loops;
    ir::Exprs values;
    for (int i = 0; i < axes; ++i) {
      Var v = axes == rank() ? iter(i) : ir::make_var(cat("w", i));
      fresh[iter(i).get()] = v;
      block->iters.push_back({v,
                              {ir::make_int(0), extents_[static_cast<std::size_t>(i)]},
                              i < kept_ ? ir::IterKind::spatial : ir::IterKind::reduce});
      loops.push_back(ir::make_var(cat("i", i)));
      values.push_back(loops.back());
    }
    ir::Stmt body = ir::store(to.buffer, value, to.index);
    if (axes != rank()) body = ir::substitute(body, fresh);
    const auto* written = ir::as<ir::StoreNode>(body);
    read_regions(body, block->reads);
    block->writes.push_back(ir::point_region(to.buffer, written->indices));
    block->body = body;
    if (init) block->init = ir::store(to.buffer, init, to.index);
    ir::Stmt nest = ir::block_realize(values, ir::make_bool(true), block);
    for (std::size_t i = loops.size(); i-- > 0;)
      nest = ir::make_for(loops[i], ir::make_int(0), extents_[i], nest);
    return nest;
  }

  const MachineFacts& facts_;
  bool symbolic_;
  int kept_;
  Dims shape_;
  std::string key_;
  std::vector<Expr> extents_;
  std::vector<Var> iters_, scalars_, views_, numbers_;
  std::vector<ir::Buffer> buffers_;
  std::vector<runtime::CallArg> array_args_, scalar_args_, view_args_, number_args_;
  std::vector<NDArray> held_;
};

/// The element, `distance` behind this point's.
Expr Writer::Operand::load(const Expr& distance) const {
  if (!packed) {
    const Expr x = distance ? ir::load(buffer, {index[0] + distance}) : ir::load(buffer, index);
    return truth ? convert_value(x, Elem::boolean) : x;
  }
  const std::int64_t bits = 8 * elem_bytes(elem), per_word = 32 / bits;
  const Expr at = distance ? index[0] + distance : index[0];
  const Expr word = ir::load(buffer, {ir::floordiv(at, ir::make_int(per_word))});
  const Expr part = ir::cast(dtypes::int32, ir::floormod(at, ir::make_int(per_word)));
  auto number = [](std::int64_t n) { return ir::make_int(n, dtypes::int32); };
  if (is_signed_int(elem)) {
    const Expr up = ir::call("shift_left", {word, number(32 - bits) - part * number(bits)});
    return ir::call("shift_right", {up, number(32 - bits)});
  }
  const Expr down = ir::call("shift_right", {word, part * number(bits)});
  const Expr value = ir::call("bitwise_and", {down, number((std::int64_t{1} << bits) - 1)});
  return elem == Elem::boolean ? ir::ne(value, number(0)) : value;
}

/// The functions used last. Where programs are made for a shape, shapes that vary from call to call
/// would otherwise be kept for ever.
class RecentFunctions {
 public:
  /// Null: it was found to be too large for the machine. None: not known.
  std::optional<Ref<runtime::Function>> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = by_key_.find(key);
    if (it == by_key_.end()) return std::nullopt;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }
  void keep(const std::string& key, const Ref<runtime::Function>& function) {
    std::lock_guard lock(mutex_);
    if (by_key_.count(key)) return;
    order_.emplace_front(key, function);
    by_key_[key] = order_.begin();
    if (order_.size() <= kFunctions) return;
    by_key_.erase(order_.back().first);
    order_.pop_back();
  }

 private:
  static constexpr std::size_t kFunctions = 1024;
  ForkSafeMutex mutex_;
  std::list<std::pair<std::string, Ref<runtime::Function>>> order_;  // the last used first
  std::unordered_map<std::string, decltype(order_)::iterator> by_key_;
};

/// Builds once for each key and device, then calls. False: the machine has no room for it, and
/// `divisible` says that parts of it can be run.
bool run(const Ref<Device>& device, std::string_view name, const std::string& key, bool divisible,
         const std::function<ir::PrimFunc()>& make, const std::vector<runtime::CallArg>& args) {
  if (!machine_of(device).known) refuse_remote(device, name);
  static auto& built = *new RecentFunctions;
  const std::string full = cat(device->info().name, " ", key);
  std::optional<Ref<runtime::Function>> function = built.find(full);
  if (!function) {
    try {
      Ref<runtime::Module> module = build(ir::make_module(make()), device->info().name);
      function = make_ref<runtime::Function>(module, "main", device);
    } catch (const RowUnsupported&) {
      throw Error(ErrorKind::device, cat("array.", name, ".kernel"),
                  cat("no kernel of ", name, " for arrays on ", device->info().name))
          .help("move the array to the host's device with to(...)");
    } catch (Error& error) {
      if (!divisible || !error.code().ends_with(".capacity"))
        throw error.context(cat("building ", name, " for arrays on ", device->info().name));
      function = Ref<runtime::Function>();
    }
    built.keep(full, *function);
  }
  if (!*function) return false;
  (*function)->call(args).wait();
  return true;
}

/// Both halves of a program along its longest axis, one after the other.
void run_halves(const NDArray& out, const Dims& kept, const Dims& strides,
                const DeviceProgram& program) {
  Dims shape = kept;
  for (std::int64_t n : program.reduced) shape.push_back(n);
  int longest = 0;
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] > shape[longest]) longest = i;
  const std::int64_t half = (shape[longest] + 1) / 2;
  const bool reduced = longest >= kept.size();
  auto later = [](const NDArray& x, std::int64_t elements) {
    return NDArray::make(x.handle(), x.elem(), Dims{}, nullptr, x.offset() + elements);
  };
  for (const std::int64_t begin : {std::int64_t{0}, half}) {
    const std::int64_t extent = begin ? shape[longest] - half : half;
    DeviceProgram p = program;
    if (p.first.empty()) p.first = Dims(shape.size(), 0);
    p.first[longest] += begin;
    for (DeviceProgram::Input& input : p.inputs)
      input.array = later(input.array, begin * input.strides[longest]);
    Dims own = kept;
    (reduced ? p.reduced[longest - kept.size()] : own[longest]) = extent;
    p.onto |= reduced && begin > 0;
    device_run(reduced ? out : later(out, begin * strides[longest]), own, strides, p);
  }
}

void no_complex(Elem e, std::string_view name, const NDArray& on) {
  if (!is_complex(e)) return;
  throw Error(
      ErrorKind::device, cat("array.", name, ".kernel"),
      cat("no kernel of ", name, " for ", name_of(e), " arrays on ", on.device()->info().name))
      .help("move the array to the host's device with to(...)");
}

/// The bytes of compact int32 values in a compact array of narrower elements: a program over words.
void pack(const NDArray& out, const NDArray& wide) {
  const std::int64_t bits = 8 * elem_bytes(out.elem()), per_word = 32 / bits;
  const auto words = static_cast<std::int64_t>(out.handle()->bytes()) / 4;
  const NDArray whole = NDArray::make(out.handle(), Elem::int32, Dims{words});
  DeviceProgram p;
  p.name = "pack";
  p.variant = cat(bits);
  p.inputs.push_back({wide, Dims{0}, true});
  p.numbers.push_back({Scalar(wide.size() - 1)});
  p.value = [=](const DeviceScope& s) {
    auto number = [](std::int64_t n) { return ir::make_int(n, dtypes::int32); };
    Expr word;
    for (std::int64_t k = 0; k < per_word; ++k) {
      const Expr at = s.axes[0] * ir::make_int(per_word) + ir::make_int(k);
      Expr x = s.load_at(0, ir::min(at, s.numbers[0]));
      x = ir::call("bitwise_and", {x, number((std::int64_t{1} << bits) - 1)});
      if (k) x = ir::call("shift_left", {x, number(k * bits)});
      word = k ? ir::call("bitwise_or", {word, x}) : x;
    }
    return word;
  };
  device_run(whole, p);
}

/// The same where `out` is all of its storage but less than a word, which stays as it is.
void pack_whole(const NDArray& out, const NDArray& wide) {
  const std::size_t bytes = out.handle()->bytes(),
                    rest = bytes - static_cast<std::size_t>(out.nbytes());
  if (rest == 0) return pack(out, wide);
  char before[4], after[4];
  out.device()->download(before, *out.handle(), bytes - 4, 4);
  pack(out, wide);
  out.device()->download(after, *out.handle(), bytes - 4, 4);
  std::memcpy(after + 4 - rest, before + 4 - rest, rest);
  out.device()->upload(*out.handle(), bytes - 4, after, 4);
}

/// Results whose elements are parts of words: computed as words, packed, placed.
void run_packed(const NDArray& out, const Dims& kept, const Dims& strides,
                const DeviceProgram& program) {
  const NDArray wide = NDArray::empty(out.device(), Elem::int32, kept);
  DeviceProgram p = program;
  const Elem elem = out.elem();
  p.variant += cat(" packs ", name_of(elem));
  const bool truth = elem == Elem::boolean && !program.init;  // sums of truth values are 0 or 1
  p.value = [value = program.value, truth](const DeviceScope& s) {
    const Expr x = value(s);
    return truth ? ir::cast(dtypes::int32, convert_value(x, Elem::boolean)) : x;
  };
  device_run(wide, p);
  const NDArray to = out.as_strided(kept, strides, out.offset());
  if (machine_of(out.device()).transfers()) return move_elements(to, wide);
  if (to.is_contiguous() && to.offset() == 0 &&
      to.nbytes() + 4 > static_cast<std::int64_t>(out.handle()->bytes()))
    return pack_whole(to, wide);
  const NDArray fresh = NDArray::empty(out.device(), elem, kept);
  pack(fresh, wide);
  move_elements(to, fresh);  // parts of words are placed by transfers
}

}  // namespace

Expr device_cast(const Expr& x, Elem elem) { return convert_value(x, MachineFacts::wide(elem)); }

void device_run(const NDArray& out, const DeviceProgram& program) {
  device_run(out, out.shape(), out.strides(), program);
}

void device_run(const NDArray& out, const Dims& kept, const Dims& strides,
                const DeviceProgram& program) {
  if (out.size() == 0) return;
  const MachineFacts& facts = machine_of(out.device());
  if (facts.packs(out.elem())) return run_packed(out, kept, strides, program);
  no_complex(out.elem(), program.name, out);
  for (const DeviceProgram::Input& input : program.inputs)
    no_complex(input.array.elem(), program.name, out);
  Writer w(facts, kept, program.reduced);
  const Writer::Operand to = w.operand("out", out, strides, false);
  std::vector<Writer::Operand> in;
  for (std::size_t k = 0; k < program.inputs.size(); ++k) {
    const DeviceProgram::Input& input = program.inputs[k];
    in.push_back(w.operand(cat("a", k), input.array, input.strides, input.random_access));
  }
  DeviceScope scope;
  for (std::size_t k = 0; k < program.numbers.size(); ++k)
    scope.numbers.push_back(w.scalar(cat("c", k), program.numbers[k], out.device()));
  std::string begins;
  for (int i = 0; i < w.rank(); ++i) {
    const std::int64_t first = program.positions && !program.first.empty() ? program.first[i] : 0;
    if (first) begins += cat(" ", i, " from ", first);
    scope.axes.push_back(first ? w.iter(i) + ir::make_int(first) : Expr(w.iter(i)));
  }
  scope.element = [&](std::size_t i, const Expr& distance) { return in[i].load(distance); };
  const Elem sum = out.elem() == Elem::boolean ? Elem::int32 : MachineFacts::wide(out.elem());
  scope.sum = dtype_of(sum);
  std::optional<Writer::Operand> sums;
  const bool reduces = program.init != nullptr;
  if (reduces) {
    if (sum != out.elem()) sums = w.temporary(scope.sum);
    scope.acc = (sums ? *sums : to).load(nullptr);
  }
  // Sums of their own type begin anew in each program.
  std::int64_t most = 1;
  for (std::int64_t n : kept) most = std::max(most, n);
  bool divisible = !facts.info.symbolic_shapes;
  for (std::int64_t n : program.reduced) divisible = divisible && (n <= most || !sums);
  for (std::int64_t n : program.reduced) most = std::max(most, n);
  divisible = divisible && most > 1;
  const bool done = run(
      out.device(), program.name,
      cat(program.name, " ", program.variant, w.key(), begins, program.onto ? " onto" : ""),
      divisible,
      [&] {
        Expr value = convert_value(program.value(scope), reduces ? sum : out.elem());
        if (!facts.info.symbolic_shapes) value = SpellTests().rewrite(value);
        const bool begin = reduces && !program.onto;
        return w.finish(to, value, begin ? program.init(scope.sum) : nullptr, sums);
      },
      w.arguments());
  if (!done) run_halves(out, kept, strides, program);
}

}  // namespace weft
