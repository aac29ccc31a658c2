// SPDX-License-Identifier: Apache-2.0
// Matrix products and everything that is one (convolutions by implicit windows): every group of
// axes at its own strides, so that views, windows and batches need no copies. Here a product gets
// its tile and parts; product_program.cpp has the program.

#include <algorithm>

#include "weft/base/integers.h"
#include "weft/devices/grid.h"
#include "weft/devices/product.h"
#include "weft/devices/tuned_decisions.h"

namespace weft::device {

namespace {

std::int64_t product(const Dims& d) {
  std::int64_t p = 1;
  for (std::int64_t v : d) p *= v;
  return p;
}

/// Joins neighbouring axes of a group where both operands that have it allow it.
void collapse(Dims& shape, Dims& first, Dims& second) {
  int kept = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = kept > 0 && first[kept - 1] == first[i] * shape[i] &&
                 second[kept - 1] == second[i] * shape[i];
    if (joins) --kept;
    shape[kept] = joins ? shape[kept] * shape[i] : shape[i];
    first[kept] = first[i];
    second[kept] = second[i];
    ++kept;
  }
  if (kept == 0) {
    shape = Dims{1};
    first = second = Dims{1};
    return;
  }
  shape.resize(kept);
  first.resize(kept);
  second.resize(kept);
}

std::int64_t reach(const Dims& shape, const Dims& steps) {
  std::int64_t r = 0;
  for (int i = 0; i < shape.size(); ++i) r += shape[i] * std::abs(steps[i]);
  return r;
}

std::int64_t largest(const Dims& steps) {
  std::int64_t most = 0;
  for (std::int64_t s : steps) most = std::max(most, std::abs(s));
  return most;
}

/// Neighbours along which axis lie together, and whether whole vectors of them can be read.
Read read_of(const NDArray& x, Elem compute, const Dims& outer, const Dims& steps,
             const Dims& summed, const Dims& summed_steps, const Dims& batch_steps, bool vectors,
             bool instruction) {
  auto fastest = [](const Dims& d) { return std::abs(d[d.size() - 1]); };
  // Along the sum a thread has several rows or columns, and would divide the place of each among
  // several axes in every step.
  const bool along_summed =
      product(summed) > 1 &&
      (product(outer) == 1 || (outer.size() == 1 && fastest(summed_steps) < fastest(steps)));
  const std::int64_t lanes = vector_of(x.elem());
  auto whole = [&](const Dims& d) {
    return std::all_of(d.begin(), d.end(), [&](std::int64_t v) { return v % lanes == 0; });
  };
  // Vectors of converted elements, or of more than four, are not moved as one.
  const bool wide =
      vectors && x.elem() == compute && lanes <= 4 && begins_at(x, 16) && whole(batch_steps);
  /// Neighbours along the last axis lie together, and every other step keeps whole vectors.
  auto lies = [&](const Dims& extents, const Dims& axes, const Dims& other) {
    const int last = extents.size() - 1;
    return wide && axes[last] == 1 && extents[last] % lanes == 0 &&
           whole(Dims(axes.data(), last)) && whole(other);
  };
  if (along_summed) {
    return instruction && summed.size() == 1 && lies(summed, summed_steps, steps) ? Read::terms
                                                                                  : Read::summed;
  }
  return lies(outer, steps, summed_steps) ? Read::wide : Read::rows;
}

/// Whether results can be stored in vectors of 16 bytes.
bool stores_vectors(const NDArray& out, const ContractSpec& spec, const Contraction& c,
                    const Steps& steps, bool vectors) {
  const std::int64_t lanes = vector_of(spec.store);
  auto whole = [&](std::int64_t v) { return v % lanes == 0; };
  auto all = [&](const Dims& d, int count) {
    return std::all_of(d.data(), d.data() + count, whole);
  };
  const int last = c.n.size() - 1;
  const rules::RatedTile& t = spec.tile;
  const std::int64_t neighbours = t.instruction ? 2 : std::min<std::int64_t>(4, t.each_n);
  // Conversions are not made in vectors, and a thread must have whole ones.
  return vectors && neighbours % lanes == 0 && spec.store == spec.out && lanes <= 4 &&
         begins_at(out, 16) && steps.inner[last] == 1 && whole(c.n[last]) &&
         all(steps.inner, last) && all(steps.outer, steps.outer.size()) &&
         all(steps.batch, steps.batch.size());
}

bool in_vectors(Read read) { return read == Read::wide || read == Read::terms; }
rules::TileReads tile_reads(const ContractSpec& spec, const Contraction& c) {
  if (spec.read_a == Read::summed && spec.read_b == Read::summed && c.k.size() == 1)
    return rules::TileReads::along_sum;
  return static_cast<rules::TileReads>(in_vectors(spec.read_a) + in_vectors(spec.read_b));
}

constexpr std::int64_t kMostBlocks = 65535;  // along the second and the third axis of a grid

/// A product with more blocks than one grid has, by halves of its rows or batches.
void contract_halves(const NDArray& out, const NDArray& a, const NDArray& b, const Contraction& c,
                     const NDArray* bias, bool rows) {
  Contraction part = c;
  Dims& extents = rows ? part.m : part.batch;
  int axis = 0;
  while (extents[axis] == 1) ++axis;
  const std::int64_t all = extents[axis], half = all / 2;
  auto from = [](const NDArray& x, std::int64_t elements) {
    return x.as_strided(Dims{1}, Dims{1}, x.offset() + elements);
  };
  for (const std::int64_t first : {std::int64_t{0}, half}) {
    extents[axis] = first ? all - half : half;
    auto at = [&](const Steps& s) { return first * (rows ? s.outer : s.batch)[axis]; };
    grid_contract(from(out, at(c.out)), from(a, at(c.a)),
                  from(b, rows ? 0 : first * c.b.batch[axis]), part, bias);
  }
}

/// What a tuner found for this product on this device, else the choice of least expected time.
rules::TileChoice tile_choice(const Ref<Device>& device, std::int64_t bytes,
                              const rules::ProductSize& s, rules::TileReads reads,
                              bool instruction) {
  const Grid& grid = grid_of(device);
  const std::int64_t facts[] = {bytes,      s.batch, s.m, s.n, s.k, static_cast<int>(reads),
                                instruction};
  constexpr std::uint64_t kExtents = 0b11110;  // batch, m, n, k
  const Decision* found = tuned_decision({"product.tile", device, facts, kExtents}, [&] {
    std::vector<Decision> out;
    for (const rules::TileChoice& c : rules::tile_options(grid, bytes, s, reads, instruction))
      out.push_back({static_cast<std::int64_t>(c.tile), c.parts, c.stages});
    return out;
  });
  if (!found) return rules::choose_tile(grid, bytes, s, reads, instruction);
  return {static_cast<std::size_t>((*found)[0]), (*found)[1], (*found)[2]};
}

constexpr std::int64_t kShortSum = 512;  // whose time the stores decide

/// Steps as numbers of vectors.
void divide(Elem elem, std::initializer_list<Dims*> all) {
  for (Dims* steps : all) {
    for (std::int64_t& s : *steps) s /= vector_of(elem);
  }
}
/// All but the last, along which vectors lie.
void divide_others(Elem elem, Dims& steps) {
  for (int i = 0; i + 1 < steps.size(); ++i) steps[i] /= vector_of(elem);
}

}  // namespace

void grid_contract(const NDArray& out, const NDArray& a, const NDArray& b, const Contraction& in,
                   const NDArray* bias) {
  Contraction c = in;
  collapse(c.m, c.a.outer, c.out.outer);
  collapse(c.n, c.b.inner, c.out.inner);
  collapse(c.k, c.a.inner, c.b.outer);
  const std::int64_t m = product(c.m), n = product(c.n), k = product(c.k), batch = product(c.batch);
  const Grid& grid = grid_of(out.device());
  // Vectors of 16 bytes wherever the steps allow them, unless a measurement says otherwise.
  const bool vectors = in.tile < 0 || (in.variant & 2);
  ContractSpec spec;
  spec.out = sum_elem(out.elem()), spec.a = a.elem(), spec.b = b.elem();
  const bool instruction =
      spec.out == Elem::float64 && (grid.double_products() || (in.variant & 4));
  spec.read_a =
      read_of(a, spec.out, c.m, c.a.outer, c.k, c.a.inner, c.a.batch, vectors, instruction);
  spec.read_b =
      read_of(b, spec.out, c.n, c.b.inner, c.k, c.b.outer, c.b.batch, vectors, instruction);
  const std::int64_t bytes = elem_bytes(spec.out);
  rules::TileChoice choice =
      tile_choice(out.device(), bytes, {batch, m, n, k}, tile_reads(spec, c), instruction);
  if (in.tile >= 0) {
    choice.tile = static_cast<std::size_t>(in.tile);
    choice.parts = in.parts;
    choice.stages = std::max<std::int64_t>(
        1, stages_of(grid, rules::rated_tiles(bytes, instruction)[choice.tile], bytes));
  }
  const rules::RatedTile& tile = rules::rated_tiles(bytes, instruction)[choice.tile];
  const std::int64_t blocks_m = ceil_div(m, tile.rows), blocks_n = ceil_div(n, tile.columns);
  const std::int64_t part = ceil_div(ceil_div(k, choice.parts), tile.depth) * tile.depth;
  const std::int64_t parts = ceil_div(k, part);
  if (blocks_m > kMostBlocks || batch * parts > kMostBlocks)
    return contract_halves(out, a, b, in, bias, blocks_m > kMostBlocks);
  NDArray target = out;
  Steps steps_out = c.out;
  if (parts > 1) {
    target = NDArray::empty(out.device(), spec.out, Dims{parts, batch, m, n});
    steps_out.batch = NDArray::compact_strides(c.batch);
    for (std::int64_t& s : steps_out.batch) s *= m * n;
    steps_out.outer = NDArray::compact_strides(c.m);
    for (std::int64_t& s : steps_out.outer) s *= n;
    steps_out.inner = NDArray::compact_strides(c.n);
  }
  // A few steps behind the end are asked for and left out.
  const std::int64_t beyond = (choice.stages + 3) * tile.depth;
  spec.narrow = fits_narrow(std::max(
      {reach(c.m, c.a.outer) + reach(c.k, c.a.inner) + reach(c.batch, c.a.batch) +
           beyond * largest(c.a.inner) + tile.rows * largest(c.a.outer),
       reach(c.k, c.b.outer) + reach(c.n, c.b.inner) + reach(c.batch, c.b.batch) +
           beyond * largest(c.b.outer) + tile.columns * largest(c.b.inner),
       reach(c.m, steps_out.outer) + reach(c.n, steps_out.inner) + reach(c.batch, steps_out.batch) +
           tile.rows * largest(steps_out.outer) + tile.columns * largest(steps_out.inner),
       target.size(), m + n + k + beyond, blocks_m * blocks_n * parts * batch}));
  spec.rank_m = c.m.size(), spec.rank_n = c.n.size(), spec.rank_k = c.k.size();
  spec.rank_batch = c.batch.size();
  spec.tile = tile;
  spec.store = target.elem();
  spec.wide_store = stores_vectors(target, spec, c, steps_out, vectors);
  // Threads that have four neighbours each store them in as many requests, of which each reaches a
  // quarter of what it touches. Short sums are bound by that, long ones by reading vectors.
  spec.spread = !spec.wide_store && !instruction && part <= kShortSum;
  if (spec.spread) spec.tile = along_columns(tile);
  spec.stages = choice.stages, spec.bias = bias != nullptr;
  WEFT_CHECK(!bias || (c.n.size() == 1 && bias->elem() == spec.out && bias->size() == n),
             "numbers of ", n, " columns");
  if (spec.wide_store) {
    divide(spec.store, {&steps_out.outer, &steps_out.batch});
    divide_others(spec.store, steps_out.inner);
  }
  if (spec.read_a == Read::wide)
    divide(a.elem(), {&c.a.inner, &c.a.batch}), divide_others(a.elem(), c.a.outer);
  if (spec.read_a == Read::terms) divide(a.elem(), {&c.a.outer, &c.a.batch});
  if (spec.read_b == Read::wide)
    divide(b.elem(), {&c.b.outer, &c.b.batch}), divide_others(b.elem(), c.b.inner);
  if (spec.read_b == Read::terms) divide(b.elem(), {&c.b.inner, &c.b.batch});
  const ProgramKey key{"product",
                       {static_cast<int>(spec.out), static_cast<int>(spec.a),
                        static_cast<int>(spec.b), static_cast<int>(spec.store), spec.narrow,
                        static_cast<int>(spec.read_a), static_cast<int>(spec.read_b), spec.rank_m,
                        spec.rank_n, spec.rank_k, spec.rank_batch, static_cast<int>(choice.tile),
                        instruction, spec.stages, spec.wide_store, spec.spread, spec.bias}};
  ProgramCall call(out.device());
  call.array(target).array(a).array(b);
  if (bias) call.array(*bias);
  const operators::ProductSpec p = product_spec(spec);
  call.integer(batch).integer(parts).integer(part / tile.depth);
  call.integer(m / p.unit_m()).integer(n / p.unit_n()).integer(k / p.unit_k());
  Dims rows = c.m, columns = c.n;
  rows[rows.size() - 1] /= p.unit_m(), columns[columns.size() - 1] /= p.unit_n();
  call.integer(batch * m * n / (spec.wide_store ? vector_of(spec.store) : 1));
  for (const Dims* d :
       {&rows, &columns, &c.k, &c.batch, &c.a.outer, &c.a.inner, &c.a.batch, &c.b.outer, &c.b.inner,
        &c.b.batch, &steps_out.outer, &steps_out.inner, &steps_out.batch}) {
    for (std::int64_t v : *d) call.integer(v);
  }
  call.run(key, [&] { return product_kernel(spec); });
  if (parts == 1) return;
  // The parts are added up in their order; the result may have any layout.
  Dims shape = c.batch, steps = c.out.batch;
  for (std::int64_t v : c.m) shape.push_back(v);
  for (std::int64_t v : c.n) shape.push_back(v);
  for (std::int64_t v : c.out.outer) steps.push_back(v);
  for (std::int64_t v : c.out.inner) steps.push_back(v);
  NDArray view = out.as_strided(shape, steps, out.offset());
  if (view.is_contiguous()) {
    grid_reduce(ReduceOp::sum, spec.out, view.reshape(Dims{batch * m * n}),
                target.reshape(Dims{parts, batch * m * n}), 1);
  } else {
    NDArray sum = NDArray::empty(out.device(), out.elem(), Dims{batch * m * n});
    grid_reduce(ReduceOp::sum, spec.out, sum, target.reshape(Dims{parts, batch * m * n}), 1);
    assign(view, sum.reshape(shape));
  }
}

}  // namespace weft::device
