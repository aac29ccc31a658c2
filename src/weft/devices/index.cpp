// SPDX-License-Identifier: Apache-2.0
// Reading and writing at positions that arrays name, on devices with a grid.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "weft/base/fork_safe_mutex.h"
#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/devices/pending_checks.h"
#include "weft/operators/gather.h"
#include "weft/operators/labels.h"
#include "weft/runtime/recording.h"

namespace weft {

namespace {

using operators::PositionSpec;
using operators::PositionUse;

/// Two numbers on the device that programs set; 0 between uses. Kept for the next use.
class Flags {
 public:
  explicit Flags(const Ref<Device>& device)
      : device_(device), recording_(runtime::recording_on(device)) {
    if (recording_) {  // set by any replay, cleared by nobody but the host
      runtime::MemoryPool::Scope outside(nullptr);  // earlier work of a replay may use the pool's
      array_ = NDArray::empty(device, Elem::int32, Dims{2});
      recording_->watch(array_.handle().get());
      return;
    }
    {
      std::lock_guard lock(mutex());
      auto& free = pool()[device.get()];
      if (!free.empty()) {
        array_ = free.back();
        free.pop_back();
        return;
      }
    }
    array_ = full(device, Elem::int32, Dims{2}, Scalar(0));
  }
  const NDArray& array() const { return array_; }
  /// Waits for the programs that set them. While work is recorded the host knows nothing: positions
  /// may come twice, and whoever replays asks for faults later.
  std::pair<bool, bool> read() {
    if (recording_) return {false, true};
    std::int32_t values[2] = {};
    array_.read(values);
    if (values[0] || values[1]) assign(array_, full(device_, Elem::int32, Dims{}, Scalar(0)));
    std::lock_guard lock(mutex());
    pool()[device_.get()].push_back(array_);
    return {values[0] != 0, values[1] != 0};
  }

 private:
  static ForkSafeMutex& mutex() {
    static ForkSafeMutex one;
    return one;
  }
  static std::map<const Device*, std::vector<NDArray>>& pool() {
    static auto& one = *new std::map<const Device*, std::vector<NDArray>>;
    return one;
  }
  Ref<Device> device_;
  runtime::Recording* recording_;
  NDArray array_;
};

std::int64_t lone_number(const NDArray& scalar) {
  std::int64_t v = 0;
  scalar.astype(Elem::int64).read_element(0, &v);
  return v;
}

/// Index arrays along x's leading axes, compact and of one type. In the result, `outer` of the axes
/// behind them come before them.
class Tuples {
 public:
  Tuples(const NDArray& x, std::span<const NDArray> indices, int outer = 0) : x_(x), outer_(outer) {
    std::vector<const Dims*> shapes;
    bool small = true;
    for (const NDArray& index : indices) {
      if (!is_integer(index.elem())) {
        throw Error(ErrorKind::index, "array.index.dtype",
                    cat("an array index must be of integers, not ", name_of(index.elem())));
      }
      check_same_device(x, index, "index");
      shapes.push_back(&index.shape());
      small = small && index.elem() == Elem::int32;
    }
    shape = broadcast_shapes(shapes, "index");
    count = 1;
    for (std::int64_t extent : shape) count *= extent;
    index_elem_ = small ? Elem::int32 : Elem::int64;
    for (const NDArray& index : indices) {
      NDArray wide = index.broadcast_to(shape);
      at.push_back(wide.elem() == index_elem_ ? wide.contiguous() : wide.astype(index_elem_));
    }
    used = static_cast<int>(indices.size());
    places = rest = 1;
    for (int i = 0; i < x.ndim(); ++i) {
      if (i == used + outer)
        for (std::int64_t extent : shape) result.push_back(extent);
      (i < used ? places : i < used + outer ? outer_places : rest) *= x.shape()[i];
      if (i >= used) result.push_back(x.shape()[i]);
    }
    if (x.ndim() == used + outer)
      for (std::int64_t extent : shape) result.push_back(extent);
    if (places == 0 && count > 0) outside();
  }

  /// What finds the position outside its axis and throws; it needs the positions alone.
  std::function<void()> explanation() const {
    return [at = at, shape = x_.shape(), what = describe(x_)] {
      for (std::size_t k = 0; k < at.size(); ++k) {
        const std::int64_t n = shape[static_cast<int>(k)];
        const std::int64_t low = lone_number(reduce(ReduceOp::min, at[k])),
                           high = lone_number(reduce(ReduceOp::max, at[k]));
        if (low >= -n && high < n) continue;
        throw Error(ErrorKind::index, "array.index.range",
                    cat("index ", low < -n ? low : high, " is outside axis ", k, " of ", what))
            .note(cat("legal: ", -n, " to ", n - 1));
      }
    };
  }
  [[noreturn]] void outside() const {
    explanation()();
    throw Error(ErrorKind::index, "array.index.range",
                cat("an index was outside its axis of ", describe(x_), " and has changed since"));
  }

  /// Some axes behind those of the positions, merged where the layout allows it.
  void merged_axes(int from, int to, Dims& extents, Dims& steps) const {
    for (int i = from; i < to; ++i) {
      if (x_.shape()[i] == 1) continue;
      const int last = extents.size() - 1;
      if (last >= 0 && steps[last] == x_.strides()[i] * x_.shape()[i]) {
        extents[last] *= x_.shape()[i];
        steps[last] = x_.strides()[i];
      } else {
        extents.push_back(x_.shape()[i]);
        steps.push_back(x_.strides()[i]);
      }
    }
  }

  /// Whether all offsets, sizes and axes fit 32 bits.
  bool narrow() const {
    std::int64_t reach = 1;
    for (int i = 0; i < x_.ndim(); ++i) {
      reach += std::abs(x_.strides()[i]) * x_.shape()[i];
      reach = std::max(reach, x_.shape()[i]);
    }
    return device::fits_narrow(
        std::max(reach, count * std::max<std::int64_t>(rest * outer_places, 1)));
  }

  PositionSpec spec(PositionUse use, const std::string& element, int rest_rank,
                    int outer_rank = 0) const {
    PositionSpec out;
    out.use = use;
    out.element = element;
    out.index_type = std::string(name_of(index_elem_));
    out.indices = used;
    out.rest_rank = rest_rank;
    out.outer_rank = outer_rank;
    out.narrow = narrow();
    return out;
  }

  /// x with values at the positions, or the other way round. `same`: the tuples share the values.
  /// `order`, `place`: of sorted uses; `order` alone: the tuples that claimed places.
  void use(PositionUse what, const NDArray& values, bool same = false,
           const NDArray* flag = nullptr, const NDArray* order = nullptr,
           const NDArray* place = nullptr) const {
    Dims extents, steps, before, before_steps;
    merged_axes(used, used + outer_, before, before_steps);
    merged_axes(used + outer_, x_.ndim(), extents, steps);
    const bool adds = what == PositionUse::add || what == PositionUse::add_sorted;
    // Elements that are only moved are words; several are one word where the layout allows it.
    std::int64_t unit = elem_bytes(x_.elem()), wide = 1;
    const int last = extents.size() - 1;
    while (!adds && last >= 0 && unit * wide < 8 && steps[last] == 1 &&
           fits_words(extents, steps, before_steps, 2 * wide, values))
      wide *= 2;
    auto in_words = [&](std::int64_t v) { return v / wide; };
    if (wide > 1) extents[last] /= wide;
    const std::string element =
        adds ? std::string(name_of(x_.elem())) : cat("uint", 8 * unit * wide);
    PositionSpec spec = this->spec(what, element, extents.size(), before.size());
    spec.same = same;
    const bool claimed = what == PositionUse::put_claimed;
    const std::int64_t inner = (claimed ? places : count) * in_words(rest),
                       size = inner * outer_places;
    spec.narrow = spec.narrow && device::fits_narrow(size);
    const std::int64_t tile = place ? operators::kPositionThreads
                                    : operators::kPositionThreads * operators::kPositionItems;
    ProgramCall call(x_.device());
    call.array(x_).array(values);
    for (const NDArray& index : at)
      if (!claimed) call.array(index);
    if (flag) call.array(*flag);
    if (order) call.array(*order);
    if (place) call.array(*place);
    call.integer(ceil_div(size, tile)).integer(size).integer(in_words(rest));
    for (int k = 0; k < used; ++k) call.integer(x_.shape()[k]).integer(in_words(x_.strides()[k]));
    for (int i = 0; i < extents.size(); ++i)
      call.integer(extents[i]).integer(i == last ? (wide > 1 ? 1 : steps[i]) : in_words(steps[i]));
    if (before.size() > 0) call.integer(inner);
    for (int i = 0; i < before.size(); ++i)
      call.integer(before[i]).integer(in_words(before_steps[i]));
    call.run(
        {"positions",
         {static_cast<int>(what), adds ? static_cast<int>(x_.elem()) : 64 + unit * wide,
          static_cast<int>(index_elem_), used, extents.size(), before.size(), spec.narrow, same}},
        [&] { return use_positions(spec); });
  }

  /// The last tuple that names each place, -1 where none does, in row-major order; checks all.
  NDArray claims() const {
    const NDArray last = full(x_.device(), Elem::int32, Dims{places}, Scalar(-1));
    PositionSpec spec = this->spec(PositionUse::claim, "int32", 0);
    spec.narrow = device::fits_narrow(std::max(places, count));
    Flags flags(x_.device());
    ProgramCall call(x_.device());
    call.array(last);
    for (const NDArray& index : at) call.array(index);
    call.array(flags.array());
    call.integer(ceil_div(count, operators::kPositionThreads * operators::kPositionItems));
    call.integer(count).integer(1);
    std::int64_t step = places;
    for (int k = 0; k < used; ++k) {
      step /= x_.shape()[k];
      call.integer(x_.shape()[k]).integer(step);
    }
    call.run({"positions.claim", {static_cast<int>(index_elem_), used, spec.narrow}},
             [&] { return use_positions(spec); });
    if (flags.read().first) outside();
    return last;
  }

  /// Checks all; true when no place is named twice for certain. `place`: row-major places; without
  /// it nothing is known of them.
  bool check(const NDArray* place) const {
    const PositionSpec spec = this->spec(PositionUse::put, "", 0);
    Flags flags(x_.device());
    ProgramCall call(x_.device());
    for (const NDArray& index : at) call.array(index);
    if (place) call.array(*place);
    call.array(flags.array());
    call.integer(ceil_div(count, operators::kPositionThreads)).integer(count);
    for (int k = 0; k < used; ++k) call.integer(x_.shape()[k]);
    call.run(
        {"positions.check", {static_cast<int>(index_elem_), used, spec.narrow, place != nullptr}},
        [&] { return check_positions(spec, place != nullptr); });
    const auto [bad, unordered] = flags.read();
    if (bad) outside();
    return place && !unordered;
  }

  /// Whether every tuple gets the same of these values.
  bool share(const NDArray& source) const {
    const int behind = result.size() - shape.size();
    if (source.ndim() > result.size()) return false;
    for (int i = 0; i < source.ndim() - behind; ++i) {
      const std::int64_t extent = source.shape()[i];
      const bool whole = extent == result[result.size() - source.ndim() + i];
      if (extent != 1 && !(source.strides()[i] == 0 && whole)) return false;
    }
    return true;
  }

  Dims shape, result;  // of the tuples; with the axes behind
  std::vector<NDArray> at;
  int used;
  std::int64_t count, places, rest, outer_places = 1;

 private:
  bool fits_words(const Dims& extents, const Dims& steps, const Dims& before_steps,
                  std::int64_t wide, const NDArray& values) const {
    const int last = extents.size() - 1;
    auto divides = [&](std::int64_t v) { return v % wide == 0; };
    bool fits = divides(extents[last]) && divides(x_.offset()) && divides(values.offset()) &&
                x_.handle()->address() % 8 == 0 && values.handle()->address() % 8 == 0;
    for (int i = 0; i < last; ++i) fits = fits && divides(steps[i]);
    for (std::int64_t step : before_steps) fits = fits && divides(step);
    for (int k = 0; k < used; ++k) fits = fits && divides(x_.strides()[k]);
    return fits;
  }
  const NDArray& x_;
  int outer_;
  Elem index_elem_;
};

std::atomic<bool>& deterministic_flag() {
  static std::atomic<bool> on{false};
  return on;
}

/// The type in which elements are added in one step.
Elem atomic_elem(Elem e) {
  switch (e) {
    case Elem::int8:
    case Elem::int16: return Elem::int32;
    case Elem::uint8:
    case Elem::uint16: return Elem::uint32;
    case Elem::float8_e4m3fn:
    case Elem::float8_e5m2:
    case Elem::float16:
    case Elem::bfloat16: return Elem::float32;
    default: return e;
  }
}

}  // namespace

void set_deterministic(bool on) { deterministic_flag() = on; }
bool is_deterministic() { return deterministic_flag(); }

NDArray grid_gather(const NDArray& x, std::span<const NDArray> indices, int outer) {
  const Tuples tuples(x, indices, outer);
  NDArray out = NDArray::empty(x.device(), x.elem(), tuples.result);
  if (tuples.count == 0) return out;
  if (out.size() == 0) {  // nothing is read, but positions are still checked
    tuples.check(nullptr);
    return out;
  }
  if (runtime::recording_on(x.device())) {  // whoever replays asks for faults
    const Flags flags(x.device());
    tuples.use(PositionUse::gather, out, false, &flags.array());
    return out;
  }
  const NDArray flag = pending_flag(x.device());
  tuples.use(PositionUse::gather, out, false, &flag);
  std::int64_t bytes = 0;
  for (const NDArray& index : tuples.at) bytes += index.nbytes();
  add_pending(x.device(), tuples.explanation(), bytes);
  return out;
}

NDArray grid_label_positions(const NDArray& labels, std::int64_t classes, const Error& outside) {
  const NDArray given = labels.contiguous();
  NDArray out = NDArray::empty(labels.device(), Elem::int64, labels.shape());
  if (out.size() == 0) return out;
  const std::string type(name_of(given.elem()));
  ProgramCall call(out.device());
  call.array(given).array(out).array(pending_flag(out.device()));
  call.integer(ceil_div(out.size(), operators::kLabelThreads)).integer(out.size()).integer(classes);
  call.run({"label.positions", {static_cast<int>(given.elem())}},
           [&] { return operators::label_positions(type); });
  add_label_check(given, classes, outside);
  return out;
}

void add_label_check(const NDArray& labels, std::int64_t classes, const Error& outside) {
  add_pending(
      labels.device(),
      [labels, classes, outside] {
        const std::int64_t low = lone_number(reduce(ReduceOp::min, labels)),
                           high = lone_number(reduce(ReduceOp::max, labels));
        if (low < 0 || high >= classes) throw outside;
      },
      labels.nbytes());
}

void grid_scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                  bool accumulate, Checked checked) {
  if (accumulate && x.elem() == Elem::boolean) {
    throw Error(ErrorKind::dtype, "array.scatter.dtype",
                cat("cannot add up ", name_of(x.elem()), " at indices"));
  }
  const Elem sum = accumulate ? atomic_elem(x.elem()) : x.elem();
  if (sum != x.elem()) {
    NDArray sums = full(x.device(), sum, x.shape(), Scalar(0));
    grid_scatter(sums, indices, value.astype(sum), true, checked);
    assign(x, apply(Op::add, x, sums).astype(x.elem()));
    return;
  }
  const Tuples tuples(x, indices);
  NDArray source = value;
  while (source.ndim() > tuples.result.size() && source.shape()[0] == 1)
    source = source.select(0, 0);
  const bool same = !accumulate && tuples.count > 0 && tuples.share(source);
  Dims shape = tuples.result;
  if (same) {
    shape = Dims(shape.data() + tuples.shape.size(), shape.size() - tuples.shape.size());
    while (source.ndim() > shape.size()) source = source.select(0, 0);
  }
  NDArray packed = source;
  if (source.elem() != x.elem() || !(source.shape() == shape) || !source.is_contiguous() ||
      may_overlap(source, x)) {
    packed = NDArray::empty(x.device(), x.elem(), shape);
    assign(packed, source);
  }
  if (tuples.count == 0) return;
  const bool any_order = accumulate && (!is_real_float(x.elem()) || !is_deterministic());
  if (any_order && checked == Checked::yes && packed.size() > 0)
    return tuples.use(PositionUse::add, packed);
  if (same || any_order) {
    tuples.check(nullptr);
    if (packed.size() == 0) return;
    return tuples.use(any_order ? PositionUse::add : PositionUse::put, packed, same);
  }
  // One number for each place costs less than sorting the tuples while places are not many more.
  constexpr std::int64_t kMostPlaces = 4;
  if (!accumulate && tuples.count <= INT32_MAX && tuples.places <= kMostPlaces * tuples.count) {
    const NDArray last = tuples.claims();
    if (packed.size() > 0) tuples.use(PositionUse::put_claimed, packed, false, nullptr, &last);
    return;
  }
  const NDArray place = NDArray::empty(x.device(), Elem::int64, Dims{tuples.count});
  const bool distinct = tuples.check(&place);
  if (packed.size() == 0) return;
  if (distinct) return tuples.use(accumulate ? PositionUse::add : PositionUse::put, packed);
  const NDArray order = grid_order(place, tuples.places);
  tuples.use(accumulate ? PositionUse::add_sorted : PositionUse::put_sorted, packed, false, nullptr,
             &order, &place);
}

NDArray grid_take_along(const NDArray& x, const NDArray& indices, int axis) {
  if (!is_integer(indices.elem())) {
    throw Error(ErrorKind::index, "array.index.dtype",
                cat("an array index must be of integers, not ", name_of(indices.elem())));
  }
  check_same_device(x, indices, "index");
  const bool held = indices.elem() == Elem::int32 || indices.elem() == Elem::int64;
  const NDArray at = held ? indices.contiguous() : indices.astype(Elem::int64);
  const NDArray out = NDArray::empty(x.device(), x.elem(), at.shape());
  if (out.size() == 0) return out;
  const std::int64_t n = x.shape()[axis];
  auto explain = [at, n, axis, what = describe(x)] {
    const std::int64_t low = lone_number(reduce(ReduceOp::min, at)),
                       high = lone_number(reduce(ReduceOp::max, at));
    if (low >= -n && high < n) return;
    throw Error(ErrorKind::index, "array.index.range",
                cat("index ", low < -n ? low : high, " is outside axis ", axis, " of ", what))
        .note(cat("legal: ", -n, " to ", n - 1));
  };
  if (n == 0) explain();
  Dims extents, steps;
  std::int64_t reach = out.size();
  for (int i = 0; i < x.ndim(); ++i) {
    const std::int64_t step = i == axis ? 0 : x.strides()[i], extent = at.shape()[i];
    const int last = extents.size() - 1;
    reach = std::max(reach, 1 + std::abs(x.strides()[i]) * x.shape()[i]);
    if (last >= 0 && steps[last] == step * extent) {
      extents[last] *= extent;
      steps[last] = step;
    } else {
      extents.push_back(extent);
      steps.push_back(step);
    }
  }
  PositionSpec spec;
  spec.element = cat("uint", 8 * elem_bytes(x.elem()));
  spec.index_type = std::string(name_of(at.elem()));
  spec.outer_rank = extents.size();
  spec.along = true;
  spec.narrow = device::fits_narrow(reach * x.ndim());
  const bool recorded = runtime::recording_on(x.device());  // whoever replays asks for faults
  const NDArray flag = recorded ? Flags(x.device()).array() : pending_flag(x.device());
  ProgramCall call(x.device());
  call.array(x).array(out).array(at).array(flag);
  call.integer(ceil_div(out.size(), operators::kPositionThreads * operators::kPositionItems));
  call.integer(out.size()).integer(1).integer(n).integer(x.strides()[axis]).integer(1);
  for (int i = 0; i < extents.size(); ++i) call.integer(extents[i]).integer(steps[i]);
  call.run({"positions.along",
            {elem_bytes(x.elem()), static_cast<int>(at.elem()), extents.size(), spec.narrow}},
           [&] { return use_positions(spec); });
  if (!recorded) add_pending(x.device(), explain, at.nbytes());
  return out;
}

}  // namespace weft
