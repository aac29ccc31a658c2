// SPDX-License-Identifier: Apache-2.0
// Element-wise maps of arrays as programs of one loop over elements, or of two: over vectors, and
// over the neighbours of one. Extents and strides are arguments; the rules choose the schedule.

#include <algorithm>
#include <numeric>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/devices/reciprocal.h"
#include "weft/devices/transpose.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/regions.h"
#include "weft/ir/share.h"
#include "weft/rules/facts.h"

namespace weft::device {

using ir::Expr;
using ir::Exprs;
using ir::Var;

namespace {

constexpr std::size_t kMostArrays = 26;
constexpr std::int64_t kVectorBytes = 16, kMostLanes = 8;
constexpr std::int64_t kFar = 4096;  // the expected step of what does not lie side by side

/// How an array moves along the innermost axis. `vectors`: by neighbours, and all its other steps
/// and its address are multiples of a vector. `backwards`: by those before, likewise.
enum class Moves : std::uint8_t { not_at_all, vectors, backwards, any };
constexpr std::int64_t kMoves = 4;

bool in_whole_vectors(Moves m) { return m == Moves::vectors || m == Moves::backwards; }

/// What the program of a map is specialised on.
struct Specialisation {
  bool narrow = true;      // positions fit 32 bits
  std::int64_t lanes = 1;  // neighbours of the inner loop
  bool flat = false;       // one axis along which every array moves by neighbours
  int rank = 1;
  std::int64_t order = 10;   // the program is meant for about 2 to the power of this iterations
  std::vector<Moves> moves;  // of the results, then of the inputs
};

/// The arrays of a map: its results, then its inputs.
struct MapArrays {
  std::span<const NDArray> outs;
  std::span<const NDArray* const> inputs;
  std::size_t size() const { return outs.size() + inputs.size(); }
  const NDArray& operator[](std::size_t k) const {
    return k < outs.size() ? outs[k] : *inputs[k - outs.size()];
  }
};

/// The axes of a map, merged.
struct MapAxes {
  Dims shape;
  std::vector<Dims> steps;  // of the results, then of the inputs
  std::int64_t reach = 0;   // beyond all positions

  explicit MapAxes(const MapArrays& arrays) : shape(arrays[0].shape()) {
    for (std::size_t k = 0; k < arrays.size(); ++k)
      steps.push_back(broadcast_strides(arrays[k], shape));
    collapse_axes(shape, steps);
    for (const Dims& s : steps) {
      std::int64_t most = 0;
      for (int i = 0; i < shape.size(); ++i) most += std::abs(s[i]) * shape[i];
      reach = std::max(reach, most);
    }
  }
  std::int64_t inner() const { return shape[shape.size() - 1]; }
  std::int64_t step(std::size_t array) const { return steps[array][shape.size() - 1]; }
};

/// Whether an array can be read or written in vectors of so many elements, forwards or backwards.
bool in_vectors(const MapAxes& axes, std::size_t which, const NDArray& a, std::int64_t lanes) {
  const std::int64_t bytes = elem_bytes(a.elem()), step = axes.step(which);
  const std::uint64_t first =
      a.handle()->address() +
      static_cast<std::uint64_t>((a.offset() - (step < 0 ? lanes - 1 : 0)) * bytes);
  bool fits = std::abs(step) == 1 && first % static_cast<std::uint64_t>(lanes * bytes) == 0;
  for (int i = 0; i + 1 < axes.shape.size(); ++i) fits = fits && axes.steps[which][i] % lanes == 0;
  return fits;
}

Specialisation specialise(const MapAxes& axes, const MapArrays& arrays) {
  Specialisation s;
  s.rank = axes.shape.size();
  const std::size_t outs = arrays.outs.size();
  std::int64_t widest = 1;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    if (k < outs || std::abs(axes.step(k)) == 1)
      widest = std::max<std::int64_t>(widest, elem_bytes(arrays[k].elem()));
  }
  const std::int64_t lanes = std::min(kMostLanes, kVectorBytes / widest);
  auto all = [&](std::size_t count) {
    bool fits = true;
    for (std::size_t k = 0; k < count; ++k)
      fits = fits && axes.step(k) > 0 && in_vectors(axes, k, arrays[k], lanes);
    return fits;
  };
  s.flat = s.rank == 1 && all(arrays.size());
  if (lanes > 1 && axes.inner() % lanes == 0 && all(outs)) s.lanes = lanes;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const bool forwards = axes.step(k) > 0;
    const bool vectors =
        (s.lanes > 1 || (s.flat && forwards)) && in_vectors(axes, k, arrays[k], lanes);
    s.moves.push_back(vectors             ? forwards ? Moves::vectors : Moves::backwards
                      : axes.step(k) == 0 ? Moves::not_at_all
                                          : Moves::any);
  }
  const std::int64_t size = arrays[0].size();
  // Room for what rounding up to whole groups of threads adds.
  s.narrow = fits_narrow(2 * std::max(axes.reach, size) + (1 << 20));
  const std::int64_t iterations = size / s.lanes;
  s.order = iterations < (1 << 16) ? 10 : iterations < (1 << 20) ? 16 : 24;
  return s;
}

/// The program under construction: buffers, then the number of iterations, extents, steps, numbers.
class MapWriter {
 public:
  MapWriter(const Map& map, const MapArrays& given, const MapValues& values,
            const Specialisation& s)
      : map_(map), given_(given), values_(values), s_(s), p_(s.narrow) {}

  ir::PrimFunc write() {
    const std::size_t outs = given_.outs.size();
    std::vector<ir::Buffer> arrays;
    for (std::size_t k = 0; k < given_.size(); ++k) {
      const std::string name = k >= outs ? cat("a", k - outs) : k ? cat("out", k) : "out";
      arrays.push_back(p_.buffer(name, given_[k].elem()));
    }
    const Expr count = p_.integer("n");
    const Var element = p_.var("element"), lane = p_.var("lane");
    const Exprs at = places(element, lane);
    Exprs numbers, loads;
    for (std::size_t k = 0; k < map_.numbers.size(); ++k)
      numbers.push_back(p_.number(cat("c", k), map_.compute));
    if (map_.numbered) {
      const bool alone = s_.moves[0] == Moves::not_at_all;  // every point computes it
      numbers.push_back(alone          ? p_.at(0)
                        : s_.lanes > 1 ? element * s_.lanes + Expr(lane)
                                       : Expr(element));
    }
    for (std::size_t k = outs; k < arrays.size(); ++k)
      loads.push_back(ir::load(arrays[k], {at[k]}));
    const ir::Stmt body = ir::with_values(loads, [&](const Exprs& loaded) {
      Exprs values = values_(loaded, numbers);
      for (std::size_t k = 0; k < outs; ++k) values[k] = convert_value(values[k], given_[k].elem());
      return ir::with_shared(values, [&](const Exprs& v) {
        std::vector<ir::Stmt> stores;
        for (std::size_t k = 0; k < outs; ++k)
          stores.push_back(ir::store(arrays[k], v[k], {at[k]}));
        return stores.size() == 1 ? stores[0] : ir::seq(stores);
      });
    });
    hints_["n"] = std::int64_t{1} << s_.order;
    return ir::make_func("main", p_.params(), ir::root_block(nest(body, count, element, lane)),
                         ir::with_annotation({}, rules::kSizeHints, std::move(hints_)));
  }

 private:
  /// position / extent. In 32 bits by a multiplication and a shift, which the caller has found
  /// (reciprocal_of).
  Expr divided(const Expr& position, const Expr& extent, int axis) {
    // At least one, so that quotients may be computed ahead of conditions.
    if (!s_.narrow) return ir::div(position, ir::max(extent, p_.at(1)));
    const Expr factor = p_.size(cat("f", axis)), shift = p_.size(cat("h", axis));
    const Expr product = ir::cast(dtypes::int64, position) * factor;
    return ir::cast(p_.index_type, ir::call("shift_right", {product, shift}));
  }
  /// Where iteration `element`, `lane` finds each array. The innermost extent, and the other steps
  /// of what moves in vectors, count vectors.
  Exprs places(const Var& element, const Var& lane) {
    Exprs coordinates(static_cast<std::size_t>(s_.rank));
    Expr rest = element;
    for (int i = s_.rank; i-- > 0;) {
      Expr& x = coordinates[static_cast<std::size_t>(i)];
      x = rest;
      if (i == 0) continue;
      const Expr extent = p_.integer(cat("d", i));
      const Expr quotient = divided(rest, extent, i);
      x = rest - quotient * extent;
      rest = quotient;
    }
    Exprs out;
    for (std::size_t k = 0; k < s_.moves.size(); ++k) {
      const Moves moves = s_.moves[k];
      Expr at = p_.at(0);
      for (int i = 0; i < s_.rank; ++i) {
        const Expr& x = coordinates[static_cast<std::size_t>(i)];
        const bool inner = i + 1 == s_.rank;
        if (inner && moves == Moves::not_at_all) continue;
        if (inner && moves == Moves::vectors) {
          at = at + (s_.lanes > 1 ? x * s_.lanes + Expr(lane) : x);
          continue;
        }
        if (inner && moves == Moves::backwards) {  // from the first element of the first vector
          at = at + (p_.at(s_.lanes - 1) - Expr(lane)) - x * s_.lanes;
          continue;
        }
        const std::string name = cat("s", k, "_", i);
        const Expr step = p_.integer(name);
        hints_[name] = kFar;
        if (inner) at = at + (s_.lanes > 1 ? x * s_.lanes + Expr(lane) : x) * step;
        else at = at + x * step * (in_whole_vectors(moves) ? s_.lanes : 1);
      }
      out.push_back(at);
    }
    return out;
  }
  ir::Stmt nest(const ir::Stmt& body, const Expr& count, const Var& element, const Var& lane) {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = "map";
    const Expr zero = p_.at(0);
    Exprs values;
    std::vector<std::pair<Var, Expr>> loops;
    auto axis = [&](const Var& v, const char* name, const Expr& extent) {
      block->iters.push_back({v, {zero, extent}, ir::IterKind::spatial});
      loops.emplace_back(p_.var(name), extent);
      values.push_back(loops.back().first);
    };
    axis(element, "i", count);
    if (s_.lanes > 1) axis(lane, "v", p_.at(s_.lanes));
    block->body = body;
    ir::AccessRegions found = ir::detect_block_regions(*block);
    block->reads = std::move(found.reads);
    block->writes = std::move(found.writes);
    ir::Stmt out = ir::block_realize(values, ir::make_bool(true), block);
    for (std::size_t i = loops.size(); i-- > 0;)
      out = ir::make_for(loops[i].first, zero, loops[i].second, out);
    return out;
  }

  const Map& map_;
  const MapArrays& given_;
  const MapValues& values_;
  const Specialisation& s_;
  Builder p_;
  Json hints_ = Json::object();
};

}  // namespace

namespace {

/// The order of the axes in memory, that of the largest steps first; empty where it is their own.
std::vector<int> memory_order(const NDArray& out) {
  std::vector<int> order;
  if (out.is_contiguous()) return order;
  order.resize(static_cast<std::size_t>(out.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    return std::abs(out.strides()[i]) > std::abs(out.strides()[j]);
  });
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  return order;
}

}  // namespace

void grid_map(const NDArray& result, const Map& given) {
  grid_map(std::span(&result, 1), given, [&](const Exprs& loads, const Exprs& numbers) -> Exprs {
    return {given.value(loads, numbers)};
  });
}

void grid_map(std::span<const NDArray> results, const Map& given, const MapValues& values) {
  WEFT_CHECK(given.arrays.size() + results.size() <= kMostArrays, "a map of ", given.arrays.size(),
             " arrays");
  const NDArray& result = results[0];
  if (result.size() == 0) return;
  // Work goes along the result's memory. Operands that lie transposed beside it are turned first:
  // reads that step from line to line cost more than another pass along memory.
  const std::vector<int> order = memory_order(result);
  WEFT_CHECK(!given.numbered || order.empty(), "numbers of elements that are not compact");
  std::vector<NDArray> turned;
  for (const NDArray& x : results)
    if (!order.empty()) turned.push_back(x.permute(order));
  const std::span<const NDArray> outs = order.empty() ? results : turned;
  const NDArray& out = outs[0];
  std::vector<NDArray> ready;
  std::vector<const NDArray*> operands;
  for (const NDArray* a : given.arrays)
    ready.push_back(
        transposed_for(out, order.empty() ? *a : a->broadcast_to(result.shape()).permute(order)));
  for (const NDArray& a : ready) operands.push_back(&a);
  const MapArrays arrays{outs, operands};
  const MapAxes axes(arrays);
  const Specialisation s = specialise(axes, arrays);
  ProgramKey key(
      given.family,
      {static_cast<std::int64_t>(given.key), static_cast<std::int64_t>(given.compute),
       static_cast<std::int64_t>(given.numbers.size()), static_cast<std::int64_t>(outs.size()),
       s.narrow, s.flat, s.lanes, s.rank, s.order});
  // Types and moves of four arrays are one fact.
  ProgramCall call(out.device());
  std::int64_t kinds = 0;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const std::int64_t bytes = elem_bytes(arrays[k].elem());
    kinds = (kinds * kMoves + static_cast<std::int64_t>(s.moves[k])) * kElems +
            static_cast<std::int64_t>(arrays[k].elem());
    const std::int64_t before = s.moves[k] == Moves::backwards ? s.lanes - 1 : 0;
    call.pointer(arrays[k].handle().get(),
                 static_cast<std::uint64_t>((arrays[k].offset() - before) * bytes));
    if (k % 4 != 3 && k + 1 != arrays.size()) continue;
    key.add(kinds);
    kinds = 0;
  }
  static_assert(kMoves * kMoves * kMoves * kMoves * kElems * kElems * kElems * kElems < INT32_MAX);
  call.integer(out.size() / s.lanes);
  const int last = s.rank - 1;
  for (int i = last; i > 0; --i) {
    const std::int64_t extent = i == last ? axes.shape[i] / s.lanes : axes.shape[i];
    call.integer(extent);
    if (!s.narrow) continue;
    const Reciprocal r = reciprocal_of(extent);
    call.integer(r.factor).integer(r.shift);
  }
  for (std::size_t k = 0; k < s.moves.size(); ++k) {
    for (int i = 0; i <= last; ++i) {
      if (i == last && s.moves[k] != Moves::any) continue;
      const bool vectors = i < last && in_whole_vectors(s.moves[k]);
      call.integer(vectors ? axes.steps[k][i] / s.lanes : axes.steps[k][i]);
    }
  }
  for (const Scalar& n : given.numbers) call.number(n, given.compute);
  call.run(key, [&] { return MapWriter(given, arrays, values, s).write(); });
}

}  // namespace weft::device
