// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/chunked.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "weft/array/collapse.h"
#include "weft/array/constant_operand.h"
#include "weft/array/feed.h"
#include "weft/array/limits.h"
#include "weft/array/on_device.h"
#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/chunked_polynomial.h"
#include "weft/host/kernel_lists.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// A chunk of values: an input, a constant, or a register that a step writes.
struct Value {
  enum class Kind : std::uint8_t { input, constant, step } kind = Kind::input;
  int index = 0;  // of inputs, constants or registers
  Elem elem = Elem::float32;
};

struct Constant {
  Scalar number;
  Elem elem;
};

/// One kernel over a chunk.
struct ChunkStep {
  ElementwiseFn row = nullptr;
  CastFn cast = nullptr;
  SelectFn select = nullptr;
  int count = 0;  // operands
  Value in[3];
  alignas(16) char one[24];  // in place of the operand `single`, if any
  std::vector<char> many;    // and in place of that, if any
  int single = -1;
  Elem elem = Elem::float32;     // of a row's operands
  bool copies_positive = false;  // dear, and of positive numbers a copy
  int out = 0;
  const void* numbers() const { return many.empty() ? one : many.data(); }
};

/// Is a chunk of floats nothing but positive numbers? The least of one with NaN is NaN.
bool all_positive(Elem e, const void* x, std::int64_t n) {
  alignas(8) char least[8];
  kernels().reduce[static_cast<int>(ReduceOp::min)][static_cast<int>(e)](n, x, least);
  double value = 0;
  kernels().cast[static_cast<int>(e)][static_cast<int>(Elem::float64)](1, least, &value);
  return value > 0;
}

/// Is a chunk of 16-bit floats nothing but positive numbers? Their words count up to infinity's.
bool all_positive_words(Elem e, const void* x, std::int64_t n) {
  const auto extreme = [&](ReduceOp op) {
    std::int16_t found = 0;
    kernels().reduce[static_cast<int>(op)][static_cast<int>(Elem::int16)](n, x, &found);
    return found;
  };
  return extreme(ReduceOp::min) > 0 &&
         extreme(ReduceOp::max) <= (e == Elem::float16 ? 0x7c00 : 0x7f80);
}

/// The elements of all arrays as rows without gaps.
struct ChunkRows {
  std::int64_t count = 1, length = 0;
  std::vector<std::int64_t> in, out;  // elements from row to row; none: one row
};

}  // namespace

struct ChunkedMap::Impl {
  std::vector<Elem> results;   // types of the outputs
  std::vector<Value> outputs;  // in a kernel's type
  std::vector<Elem> inputs;    // likewise
  std::vector<Constant> constants;
  std::vector<ChunkStep> steps;
  int registers = 0, widest = 1;  // bytes of an element
  bool total = false;
  bool complete = true;

  std::unordered_map<const LazyNode*, Value> known;
  LazyUses uses;

  Value step(ChunkStep s, Elem elem) {
    s.out = registers++;
    widest = std::max(widest, elem_bytes(elem));
    steps.push_back(std::move(s));
    return {Value::Kind::step, s.out, elem};
  }

  Value as(const Value& v, Elem elem) {
    if (v.elem == elem) return v;
    ChunkStep s;
    s.cast = kernels().cast[static_cast<int>(v.elem)][static_cast<int>(elem)];
    s.in[0] = v;
    s.count = 1;
    complete &= s.cast != nullptr;
    return step(s, elem);
  }

  /// The operand of a step in a kernel's type.
  Value operand(const Lazy& x, Elem elem) {
    if (x->kind != LazyKind::number) return as(value(x), elem);
    widest = std::max(widest, elem_bytes(elem));
    alignas(16) char one[16];
    write_scalar(x->number, elem, one);  // refuses what the type does not hold
    constants.push_back({x->number, elem});
    return {Value::Kind::constant, static_cast<int>(constants.size()) - 1, elem};
  }

  /// A polynomial, up to 32 of its numbers a step.
  Value polynomial(const LazyPolynomial& p, Elem elem) {
    const Value t = operand(p.t, elem);
    Value total = operand(p.start, elem);
    const auto bytes = static_cast<std::size_t>(elem_bytes(elem));
    for (std::size_t k = 0; k < p.numbers.size();) {
      int row = kPolynomials - 1;
      while (p.numbers.size() - k < std::size_t{1} << row) --row;
      ChunkStep s;
      s.row = loop_kernels().polynomial[row][static_cast<int>(elem)];
      s.elem = elem;
      s.count = 3;
      s.in[0] = total, s.in[1] = t;
      s.single = 2;
      s.many.resize(bytes << row);
      for (std::size_t i = 0; i < std::size_t{1} << row; ++i)
        write_scalar(p.numbers[k + i], elem, s.many.data() + i * bytes);
      k += std::size_t{1} << row;
      total = step(std::move(s), elem);
    }
    return total;
  }

  /// Limits from below and above in one step: the least of a number and of the largest of one.
  std::optional<Value> between(const Lazy& x, Elem kernel) {
    if (x->op != Op::minimum || kernel != x->compute) return {};
    const Lazy &inner = x->in[0], &high = x->in[1];
    if (high->kind != LazyKind::number || inner->kind != LazyKind::elementwise ||
        inner->op != Op::maximum || inner->compute != kernel || uses[inner.node()] > 1 ||
        inner->in[1]->kind != LazyKind::number || inner->in[0]->kind == LazyKind::number)
      return {};
    const ConstantOperandKernel limits =
        constant_limits_kernel(kernel, inner->in[1]->number, high->number);
    if (!limits.fn) return {};
    ChunkStep s;
    s.count = 2;
    s.row = limits.fn;
    s.elem = kernel;
    s.single = 1;
    std::memcpy(s.one, limits.constants, sizeof(s.one));
    s.in[0] = operand(inner->in[0], kernel);
    return step(std::move(s), kernel);
  }

  Value row(const Lazy& x) {
    const Elem kernel = kernel_elem(x->compute);
    if (kernel == Elem::float32 || kernel == Elem::float64) {
      if (const std::optional<LazyPolynomial> p = polynomial_of(x, uses))
        return polynomial(*p, kernel);
    }
    if (std::optional<Value> v = between(x, kernel)) return *v;
    const OpInfo& op = info(x->op);
    const Elem result = op.rule == Rule::boolean ? Elem::boolean : kernel;
    ChunkStep s;
    s.count = op.arity;
    s.row = kernels().elementwise[static_cast<int>(x->op)][static_cast<int>(kernel)];
    s.copies_positive = op.name == "elu";
    s.elem = kernel;
    for (int k = 0; k < op.arity; ++k) {
      const Lazy& in = x->in[static_cast<std::size_t>(k)];
      const bool number = op.arity == 2 && in->kind == LazyKind::number &&
                          x->in[static_cast<std::size_t>(1 - k)]->kind != LazyKind::number;
      if (number && k == 1 && kernel == x->compute) {
        if (const ConstantOperandKernel known_one =
                constant_operand_kernel(x->op, kernel, in->number);
            known_one.fn) {
          s.row = known_one.fn;
          s.single = 1;
          std::memcpy(s.one, known_one.constants, sizeof(s.one));
          continue;
        }
      }
      if (const ElementwiseFn one = number ? one_kernel(k, x->op, kernel) : nullptr) {
        s.row = one;
        s.single = k;
        write_scalar(in->number, kernel, s.one);
        continue;
      }
      s.in[k] = operand(in, kernel);
    }
    // Exponents below 0 of integers are refused, which takes a look at them.
    complete &= s.row != nullptr && !(x->op == Op::pow && is_signed_int(kernel));
    return step(s, result);
  }

  Value value(const Lazy& x) {
    if (auto it = known.find(x.node()); it != known.end()) return it->second;
    Value v;
    switch (x->kind) {
      case LazyKind::input: v = {Value::Kind::input, x->index, kernel_elem(x.elem())}; break;
      case LazyKind::number: v = operand(x, kernel_elem(x.elem())); break;
      case LazyKind::cast: v = as(value(x->in[0]), kernel_elem(x.elem())); break;
      case LazyKind::broadcast: v = operand(x->in[0], kernel_elem(x.elem())); break;
      case LazyKind::elementwise: v = row(x); break;
      case LazyKind::where: {
        const Elem kernel = kernel_elem(x.elem());
        ChunkStep s;
        s.select = kernels().select[static_cast<int>(kernel)];
        s.count = 3;
        s.in[0] = operand(x->in[0], Elem::boolean);
        for (std::size_t k = 1; k < 3; ++k) s.in[k] = operand(x->in[k], kernel);
        complete &= s.select != nullptr;
        v = step(s, kernel);
        break;
      }
      default: complete = false;
    }
    return known[x.node()] = v;
  }

  /// Few registers hold all values: one that is not read any more serves the next step.
  void share_registers() {
    std::vector<int> last(steps.size(), -1), place(steps.size());
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for (int i = 0; i < steps[k].count; ++i) {
        const Value& v = steps[k].in[i];
        if (i != steps[k].single && v.kind == Value::Kind::step)
          last[static_cast<std::size_t>(v.index)] = static_cast<int>(k);
      }
    }
    for (const Value& v : outputs) {
      if (v.kind == Value::Kind::step)
        last[static_cast<std::size_t>(v.index)] = static_cast<int>(steps.size());
    }
    std::vector<int> free;
    int made = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for (int i = 0; i < steps[k].count; ++i) {
        Value& v = steps[k].in[i];
        if (i == steps[k].single || v.kind != Value::Kind::step) continue;
        const auto at = static_cast<std::size_t>(v.index);
        v.index = place[at];
        if (last[at] != static_cast<int>(k)) continue;
        last[at] = -1;
        // A choice and a change of type do not write over what they read.
        if (steps[k].row) free.push_back(place[at]);
      }
      if (free.empty()) free.push_back(made++);
      place[k] = free.back();
      free.pop_back();
      steps[k].out = place[k];
    }
    for (Value& v : outputs) {
      if (v.kind == Value::Kind::step) v.index = place[static_cast<std::size_t>(v.index)];
    }
    registers = made;
  }

  /// Constants in their places for n elements, `room` bytes apart.
  void spread_constants(std::int64_t n, std::int64_t room, char* spread) const {
    for (std::size_t k = 0; k < constants.size(); ++k) {
      alignas(16) char one[16];
      fill_constant(scalar_feed(constants[k].number, constants[k].elem, one), n,
                    spread + static_cast<std::int64_t>(k) * room);
    }
  }
  /// The steps over n elements in registers of `room` bytes, behind which constants lie; the last
  /// one writes to `last`, if any.
  void run_steps(std::int64_t n, const void* const* brought, char* memory, std::int64_t room,
                 char* last) const {
    for (const ChunkStep& s : steps) {
      const void* in[3];
      for (int i = 0; i < s.count; ++i)
        in[i] = i == s.single ? s.numbers() : place(s.in[i], brought, memory, room);
      void* to = last && &s == &steps.back() ? last : memory + s.out * room;
      if (s.copies_positive && s.single != 0 && all_positive(s.elem, in[0], n))
        std::memmove(to, in[0], static_cast<std::size_t>(n * elem_bytes(s.elem)));
      else if (s.row) s.row(n, in, to);
      else if (s.cast) s.cast(n, in[0], to);
      else s.select(n, static_cast<const bool*>(in[0]), in[1], in[2], to);
    }
  }
  const void* place(const Value& v, const void* const* brought, const char* memory,
                    std::int64_t room) const {
    if (v.kind == Value::Kind::input) return brought[v.index];
    return memory + ((v.kind == Value::Kind::step ? 0 : registers) + v.index) * room;
  }
  /// The same some elements at a time, so that all registers stay in the nearest cache.
  void run_parts(std::int64_t n, std::vector<const void*>& brought, char* memory, std::int64_t room,
                 char* last, std::int64_t part) const {
    for (std::int64_t at = 0; at < n; at += part) {
      const std::int64_t now = std::min(part, n - at);
      run_steps(now, brought.data(), memory, room, last);
      for (std::size_t k = 0; k < brought.size(); ++k)
        brought[k] = static_cast<const char*>(brought[k]) + now * elem_bytes(inputs[k]);
      last += now * elem_bytes(results[0]);
    }
  }
  /// Are results of positive numbers of this 16-bit type, the only input's, those numbers?
  bool keeps_positive(Elem given, Elem wanted) const {
    return steps.size() == 1 && steps[0].copies_positive && steps[0].single == 1 &&
           inputs.size() == 1 && steps[0].in[0].kind == Value::Kind::input && given == wanted &&
           elem_bytes(given) == 2 && is_narrow_float(given);
  }
  /// Does the last step give the only result?
  bool last_is_result() const {
    return outputs.size() == 1 && outputs[0].kind == Value::Kind::step &&
           outputs[0].index == steps.back().out;
  }
  /// `words`: the type whose positive numbers are results (keeps_positive), if any.
  void run_chunks(const std::vector<Feed>& feeds, const ChunkRows& rows,
                  std::span<const NDArray> out, std::optional<Elem> words = {}) const;
};

namespace {

/// Where the outputs go: an array's chunk at an index of the linear space.
struct ChunkTarget {
  char* base;
  Elem elem;
  CastFn cast;     // null: the kernel's type is the array's
  ReduceFn total;  // of a chunk, to the chunk's place
  bool stream;
};

}  // namespace

void ChunkedMap::Impl::run_chunks(const std::vector<Feed>& feeds, const ChunkRows& rows,
                                  std::span<const NDArray> out, std::optional<Elem> words) const {
  std::vector<ChunkTarget> targets;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Elem from = outputs[k].elem, to = out[k].elem();
    targets.push_back(
        {out[k].host(), to,
         from == to ? nullptr : kernels().cast[static_cast<int>(from)][static_cast<int>(to)],
         total ? kernels().reduce[static_cast<int>(ReduceOp::sum)][static_cast<int>(from)]
               : nullptr,
         rows.out.empty() && from == to && out[k].nbytes() >= kStreamBytes &&
             reinterpret_cast<std::uintptr_t>(out[k].host()) % 64 == 0});
  }
  // The last step writes where the only output goes.
  const bool in_place = last_is_result() && !targets[0].cast && !total && !targets[0].stream;
  const std::int64_t line = std::min(kChunk, rows.length);
  const std::int64_t in_row = (rows.length + kChunk - 1) / kChunk;
  const std::int64_t room = (line * widest + 63) / 64 * 64;
  const auto count = static_cast<std::int64_t>(constants.size()) + registers;
  constexpr std::int64_t kNear = 24576, kLeast = 128;  // bytes, elements
  std::int64_t part = kChunk;
  while (part > kLeast && count * part * widest > kNear) part /= 2;
  runtime::Pool::shared().parallel_for(
      rows.count * in_row, std::max<std::int64_t>(1, kParallelGrain / line),
      [&](std::int64_t chunk, std::int64_t stop) {
        constexpr std::int64_t kStack = 32768;
        alignas(64) char stack[kStack];
        std::unique_ptr<Slot[]> heap;
        char* memory = stack;
        if (count * room > kStack) {
          heap = std::make_unique_for_overwrite<Slot[]>(static_cast<std::size_t>(
              (count * room + static_cast<std::int64_t>(sizeof(Slot)) - 1) /
              static_cast<std::int64_t>(sizeof(Slot))));
          memory = heap[0].data;
        }
        spread_constants(line, room, memory + registers * room);
        // Slots of inputs that are brought; others are read where they stand.
        const auto slots = std::make_unique_for_overwrite<Slot[]>(
            static_cast<std::size_t>(std::count_if(feeds.begin(), feeds.end(), [](const Feed& f) {
              return f.mode != Feed::Mode::direct;
            })));
        std::vector<std::optional<Walker>> walkers(feeds.size());
        std::vector<const void*> brought(feeds.size());
        std::vector<Slot*> slot(feeds.size(), nullptr);
        for (std::size_t k = 0, next = 0; k < feeds.size(); ++k) {
          if (feeds[k].mode == Feed::Mode::direct) continue;
          slot[k] = &slots[next++];
          if (feeds[k].mode == Feed::Mode::gather)
            walkers[k].emplace(feeds[k].nest).seek(chunk * kChunk);
          if (feeds[k].mode == Feed::Mode::constant) fill_constant(feeds[k], line, slot[k]->data);
        }
        bool streamed = false;
        for (; chunk < stop; ++chunk) {
          const std::int64_t row = chunk / in_row, begin = chunk % in_row * kChunk;
          const std::int64_t n = std::min(kChunk, rows.length - begin);
          if (words && feeds[0].mode == Feed::Mode::cast && rows.in.empty()) {
            const char* const from = feeds[0].base + begin * feeds[0].bytes;
            if (all_positive_words(*words, from, n)) {
              std::memcpy(targets[0].base + begin * feeds[0].bytes, from,
                          static_cast<std::size_t>(n * feeds[0].bytes));
              continue;
            }
          }
          for (std::size_t k = 0; k < feeds.size(); ++k) {
            const std::int64_t at = begin + (rows.in.empty() ? 0 : row * rows.in[k]);
            brought[k] = slot[k]
                             ? bring(feeds[k], walkers[k] ? &*walkers[k] : nullptr, at, n, *slot[k])
                             : feeds[k].base + at * feeds[k].bytes;
            if (!slot[k] && !rows.in.empty() && row + 1 < rows.count)
              prefetch_row(feeds[k].base + (at + rows.in[k]) * feeds[k].bytes, n * feeds[k].bytes);
          }
          char* const last =
              in_place ? targets[0].base + (begin + (rows.out.empty() ? 0 : row * rows.out[0])) *
                                               elem_bytes(targets[0].elem)
                       : nullptr;
          if (in_place) {
            run_parts(n, brought, memory, room, last, part);
            continue;
          }
          run_steps(n, brought.data(), memory, room, nullptr);
          for (std::size_t k = 0; k < targets.size(); ++k) {
            const ChunkTarget& t = targets[k];
            const std::int64_t at = begin + (rows.out.empty() ? 0 : row * rows.out[k]);
            const auto* from =
                static_cast<const char*>(place(outputs[k], brought.data(), memory, room));
            const int bytes = elem_bytes(t.elem);
            if (t.total) t.total(n, from, t.base + chunk * bytes);
            else if (t.cast) t.cast(n, from, t.base + at * bytes);
            else if (t.stream) stream_copy(t.base + at * bytes, from, n * bytes), streamed = true;
            else std::memcpy(t.base + at * bytes, from, static_cast<std::size_t>(n * bytes));
          }
        }
        if (streamed) stream_end();
      });
}

std::optional<ChunkedMap> ChunkedMap::make(const std::vector<Lazy>& outputs, int inputs,
                                           bool total) {
  auto impl = std::make_unique<Impl>();
  impl->total = total;
  impl->inputs.resize(static_cast<std::size_t>(inputs), Elem::float32);
  for (const Lazy& node : topological(outputs)) {
    if (is_complex(node.elem())) return std::nullopt;
    if (node->kind != LazyKind::input) continue;
    impl->inputs[static_cast<std::size_t>(node->index)] = kernel_elem(node.elem());
    impl->widest = std::max(impl->widest, elem_bytes(kernel_elem(node.elem())));
  }
  impl->uses = lazy_uses(outputs);
  for (const Lazy& output : outputs) {
    impl->results.push_back(output.elem());
    impl->outputs.push_back(impl->value(output));
    impl->complete &= !total || is_real_float(output.elem());
  }
  if (!impl->complete) return std::nullopt;
  impl->share_registers();
  impl->known.clear();
  impl->uses.clear();
  return ChunkedMap(std::move(impl));
}

ChunkedMap::ChunkedMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChunkedMap::~ChunkedMap() = default;
ChunkedMap::ChunkedMap(ChunkedMap&&) noexcept = default;

/// Parts of longer rows, such as halves of a gated layer, are rows with gaps: read where they lie.
bool ChunkedMap::run_as_rows(const std::vector<NDArray>& out, const std::vector<NDArray>& inputs,
                             const Dims& shape) const {
  constexpr std::int64_t kShortest = 64;
  Dims common = shape;
  std::vector<Dims> strides;
  for (const NDArray& x : inputs) strides.push_back(broadcast_strides(x, shape));
  strides.push_back(out[0].strides());
  if (std::all_of(inputs.begin(), inputs.end(), [](const NDArray& x) { return x.is_contiguous(); }))
    return false;
  collapse_axes(common, strides);
  if (common.size() != 2 || common[1] < kShortest) return false;
  std::vector<NDArray> rows, results;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const bool one = strides[k][0] == 0 && strides[k][1] == 0;
    if (!one && strides[k][1] != 1) return false;
    rows.push_back(inputs[k].as_strided(common, strides[k], inputs[k].offset()));
  }
  for (const NDArray& x : out) results.push_back(x.reshape(common));
  run_into(results, std::move(rows));
  return true;
}

std::vector<NDArray> ChunkedMap::run(const std::vector<NDArray>& inputs) const {
  std::vector<const Dims*> shapes;
  std::vector<Arg> args;
  for (const NDArray& x : inputs) {
    check_same_device(inputs[0], x, "elementwise");
    shapes.push_back(&x.shape());
    args.emplace_back(x);
  }
  const Dims shape = broadcast_shapes(shapes, "elementwise");
  if (std::vector<int> order;
      !impl_->total && shared_order(shape, args.data(), static_cast<int>(args.size()), order)) {
    std::vector<NDArray> turned;
    for (const NDArray& x : inputs) turned.push_back(x.broadcast_to(shape).permute(order));
    std::vector<NDArray> out = run(turned);
    for (NDArray& x : out) x = x.permute(inverse_order(order));
    return out;
  }
  std::vector<Feed> feeds(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k)
    prepare(feeds[k], inputs[k], shape, impl_->inputs[k]);
  const Ref<Device>& device = inputs[0].device();
  std::int64_t size = 1;
  for (std::int64_t extent : shape) size *= extent;
  std::vector<NDArray> out;
  for (std::size_t k = 0; k < impl_->outputs.size(); ++k)
    out.push_back(impl_->total ? NDArray::empty(device, impl_->outputs[k].elem,
                                                Dims{(size + kChunk - 1) / kChunk})
                               : NDArray::empty(device, impl_->results[k], shape));
  if (!impl_->total && run_as_rows(out, inputs, shape)) return out;
  std::optional<Elem> words;
  if (!impl_->total && impl_->keeps_positive(inputs[0].elem(), impl_->results[0]))
    words = inputs[0].elem();
  if (size > 0) impl_->run_chunks(feeds, {1, size, {}, {}}, out, words);
  if (!impl_->total) return out;
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = reduce(ReduceOp::sum, out[k]).astype(impl_->results[k]);
  return out;
}

NDArray ChunkedMap::run_few(std::span<const NDArray* const> inputs) const {
  constexpr std::int64_t kMemory = 32768, kMost = 8, kFew = 8 * kChunk;
  const NDArray& first = *inputs[0];
  const std::int64_t n = first.size(), line = std::min(n, kChunk);
  const std::int64_t room = (line * impl_->widest + 63) / 64 * 64;
  const auto count = static_cast<std::int64_t>(impl_->constants.size()) + impl_->registers;
  const auto given = static_cast<std::int64_t>(inputs.size());
  if (impl_->total || n < 1 || n > kFew || given > kMost || !impl_->last_is_result() ||
      impl_->results[0] != impl_->outputs[0].elem ||
      (n > kChunk && impl_->keeps_positive(first.elem(), impl_->results[0])))
    return {};
  std::int64_t converted = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    converted += inputs[k]->elem() != impl_->inputs[k];
  if ((count + converted) * room > kMemory) return {};
  for (const NDArray* x : inputs) {
    if (!(x->shape() == first.shape()) || !x->is_contiguous() || x->device() != first.device())
      return {};
  }
  alignas(64) char memory[kMemory];
  impl_->spread_constants(line, room, memory + impl_->registers * room);
  NDArray out = NDArray::empty(first.device(), impl_->results[0], first.shape());
  for (std::int64_t begin = 0; begin < n; begin += line) {
    const std::int64_t now = std::min(line, n - begin);
    const void* brought[kMost];
    char* slot = memory + count * room;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const Elem from = inputs[k]->elem(), to = impl_->inputs[k];
      brought[k] = inputs[k]->host() + begin * elem_bytes(from);
      if (from == to) continue;
      kernels().cast[static_cast<int>(from)][static_cast<int>(to)](now, brought[k], slot);
      brought[k] = slot;
      slot += room;
    }
    impl_->run_steps(now, brought, memory, room, out.host() + begin * elem_bytes(out.elem()));
  }
  return out;
}

void ChunkedMap::run_into(std::span<const NDArray> out, std::vector<NDArray> inputs) const {
  ChunkRows rows{out[0].shape()[0], out[0].shape()[1], {}, {}};
  if (rows.count * rows.length == 0) return;
  const Dims row{rows.length};
  std::vector<Feed> feeds(inputs.size());
  bool gaps = false;
  const NDArray any =
      *std::find_if(inputs.begin(), inputs.end(), [](const NDArray& x) { return x.defined(); });
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].defined()) {
      inputs[k] = any;
      feeds[k].base = any.host();
      rows.in.push_back(0);
      continue;
    }
    const NDArray x = inputs[k].broadcast_to(out[0].shape());
    prepare(feeds[k], x.select(0, 0), row, impl_->inputs[k]);
    rows.in.push_back(x.strides()[0]);
    gaps = gaps || feeds[k].mode == Feed::Mode::gather;
    // One number a row is not one number.
    gaps = gaps || (feeds[k].mode == Feed::Mode::constant && rows.count > 1 && rows.in[k] != 0);
  }
  for (const NDArray& x : out) {
    gaps = gaps || (rows.length > 1 && x.strides()[1] != 1);
    rows.out.push_back(x.strides()[0]);
  }
  if (!gaps) return impl_->run_chunks(feeds, rows, out);
  const std::vector<NDArray> found = run(inputs);
  for (std::size_t k = 0; k < out.size(); ++k)
    assign(out[k], found[k].broadcast_to(out[k].shape()));
}

namespace {

NDArray clipped_on_grid(const NDArray& x, const std::optional<Scalar>& low,
                        const std::optional<Scalar>& high) {
  if (!has_grid(x)) return {};
  NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  const NDArray* const arrays[] = {&x};
  std::vector<Scalar> numbers;
  for (const std::optional<Scalar>& limit : {low, high})
    if (limit) numbers.push_back(*limit);
  device::Map map;
  map.family = "clip";
  map.key = low.has_value() * 2u + high.has_value();
  map.arrays = arrays;
  map.numbers = numbers;
  map.compute = elem_bytes(x.elem()) == 2 && is_real_float(x.elem()) ? Elem::float32 : x.elem();
  map.value = [&](const std::vector<ir::Expr>& loads, const std::vector<ir::Expr>& c) {
    ir::Expr value = convert_value(loads[0], map.compute);
    if (low) value = row_value(Op::maximum, {value, c[0]});
    if (high) value = row_value(Op::minimum, {value, c.back()});
    return value;
  };
  device::grid_map(out, map);
  return out;
}

}  // namespace

NDArray clipped(const NDArray& x, const std::optional<Scalar>& low,
                const std::optional<Scalar>& high) {
  const Arg whole(x);
  if (std::vector<int> order; !x.is_contiguous() && shared_order(x.shape(), &whole, 1, order))
    return clipped(x.permute(order), low, high).permute(inverse_order(order));
  if (!x.on_host()) return clipped_on_grid(x, low, high);
  if (low && high) {
    if (const ConstantOperandKernel limits = constant_limits_kernel(x.elem(), *low, *high);
        limits.fn) {
      const NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
      run_constant_operand(limits, x.elem(), out, x);
      return out;
    }
  }
  if (has_clipped_words(x, low, high)) return clipped_words(x, low, high);
  // Rows of 16-bit floats are rounded each.
  constexpr std::int64_t kSmall = 4096;
  if ((x.size() <= kSmall || !is_narrow_float(x.elem())) && (low || high)) {
    const NDArray above = low ? apply(Op::maximum, Arg(x), Arg(*low)) : x;
    if (!high) return above;
    if (!low) return apply(Op::minimum, Arg(above), Arg(*high));
    apply_into(Op::minimum, above, Arg(above), Arg(*high));
    return above;
  }
  Lazy value = Lazy::input(0, x.elem(), Dims{});
  if (low) value = apply(Op::maximum, value, *low);
  if (high) value = apply(Op::minimum, value, *high);
  const std::optional<ChunkedMap> map = ChunkedMap::make({value}, 1, false);
  WEFT_CHECK(map && value.elem() == x.elem(), "clipped of ", describe(x));
  return map->run({x})[0];
}

}  // namespace weft
