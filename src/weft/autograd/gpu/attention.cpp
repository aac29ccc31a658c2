// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/gpu/attention.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/devices/tuned_decisions.h"
#include "weft/operators/attention.h"
#include "weft/operators/attention_tiles.h"

namespace weft::device {

namespace {

using operators::AttentionSpec;
using Mask = AttentionSpec::Mask;

constexpr std::int64_t kWidest = 256;
constexpr std::int64_t kLanes = 4;  // float32 that are copied at once
/// Shared memory that a compiler may add to a block's own.
constexpr std::int64_t kReserved = 1024;

struct Tile {
  int rows, columns;  // scores of a thread
};
/// Largest first: more scores of a thread read less shared memory for each, and need registers,
/// beside those of the results of `width` / 16 columns.
constexpr Tile kForward64[] = {{8, 8}, {8, 4}, {4, 4}, {2, 4}, {1, 1}},
               kForward128[] = {{8, 4}, {4, 4}, {2, 4}, {1, 1}},
               kForward256[] = {{4, 4}, {4, 2}, {2, 1}, {1, 1}},
               kBackward64[] = {{8, 4}, {4, 4}, {2, 4}, {1, 1}},
               kBackward128[] = {{4, 4}, {2, 4}, {1, 1}}, kBackward256[] = {{4, 2}, {2, 1}, {1, 1}};

std::span<const Tile> tiles_for(int width, bool backward) {
  if (width <= 64) return backward ? std::span<const Tile>(kBackward64) : kForward64;
  if (width <= 128) return backward ? std::span<const Tile>(kBackward128) : kForward128;
  return backward ? std::span<const Tile>(kBackward256) : kForward256;
}

std::vector<Tile> fitting_tiles(const AttentionSpec& spec, const Grid& grid, bool backward) {
  std::vector<Tile> out;
  for (const Tile& tile : tiles_for(std::max(spec.width, spec.value_width), backward)) {
    AttentionSpec trial = spec;
    trial.rows = tile.rows, trial.columns = tile.columns;
    if (operators::attention_shared(trial, backward) * 4 + kReserved <= grid.shared_bytes())
      out.push_back(tile);
  }
  return out;
}

enum class Pass : std::uint8_t { forward, queries, keys };  // gradients of q; of k and v

/// The tile that a tuner found, else the largest that fits and leaves a block for each processor.
void choose_tile(AttentionSpec& spec, const NDArray& q, std::int64_t planes, std::int64_t length,
                 std::int64_t other, Pass pass) {
  const Grid& grid = grid_of(q.device());
  const std::vector<Tile> fit = fitting_tiles(spec, grid, pass != Pass::forward);
  WEFT_CHECK(!fit.empty(), "no tile fits");
  const auto enough = std::find_if(fit.begin(), fit.end(), [&](const Tile& tile) {
    return ceil_div(length, 16 * tile.rows) * planes >= grid.processors();
  });
  Tile taken = enough == fit.end() ? fit.back() : *enough;
  const std::int64_t facts[] = {planes,
                                length,
                                other,
                                static_cast<int>(q.elem()),
                                spec.width,
                                spec.value_width,
                                static_cast<int>(spec.mask),
                                spec.band,
                                spec.padding,
                                spec.lengths,
                                spec.dropout,
                                static_cast<int>(pass)};
  constexpr std::uint64_t kExtents = 0b111;
  const Decision* found = tuned_decision({"attention.tile", q.device(), facts, kExtents}, [&] {
    std::vector<Decision> out{{taken.rows, taken.columns}};
    for (const Tile& tile : fit) {
      if (Decision option{tile.rows, tile.columns}; option != out[0]) out.push_back(option);
    }
    return out;
  });
  if (found) taken = {static_cast<int>((*found)[0]), static_cast<int>((*found)[1])};
  spec.rows = taken.rows, spec.columns = taken.columns;
}

AttentionSpec spec_of(const NDArray& q, const NDArray& v, const AttentionOptions& o) {
  AttentionSpec spec;
  spec.type = std::string(name_of(q.elem()));
  spec.width = static_cast<int>(q.shape()[3]), spec.value_width = static_cast<int>(v.shape()[3]);
  if (o.mask.defined()) {
    spec.mask = o.mask.elem() == Elem::boolean ? Mask::allowed : Mask::added;
    spec.mask_type = std::string(name_of(o.mask.elem()));
  }
  spec.band = o.band, spec.padding = o.padding.defined(), spec.lengths = o.lengths.defined();
  spec.dropout = o.dropout > 0;
  return spec;
}

ProgramKey key_of(std::string_view name, const AttentionSpec& s, const NDArray& q,
                  const AttentionOptions& o) {
  return {name,
          {static_cast<int>(q.elem()), s.width, s.value_width, s.rows, s.columns,
           static_cast<int>(s.mask), o.mask.defined() ? static_cast<int>(o.mask.elem()) : 0, s.band,
           s.padding, s.lengths, s.dropout, s.narrow, !s.queue.empty()}};
}

/// Rows whose elements follow one another.
NDArray in_rows(const NDArray& x) {
  return x.strides()[3] == 1 || x.shape()[3] == 1 ? x : x.contiguous();
}

std::int64_t reach(const NDArray& x) {
  std::int64_t most = 0;
  for (int i = 0; i < x.ndim(); ++i)
    most += (x.shape()[i] + (i == 2 ? 256 : 0)) * std::abs(x.strides()[i]);
  return most;
}

void dropout_numbers(ProgramCall& call, const AttentionOptions& o) {
  if (o.dropout <= 0) return;
  call.integer(static_cast<std::int64_t>(o.seed & 0xffffffff));
  call.integer(static_cast<std::int64_t>(o.seed >> 32));
  call.integer(static_cast<std::int64_t>(std::min(o.dropout * 0x1p32, 4294967295.0)));
  call.real(1 / (1 - o.dropout));
}

/// What a program passes over can be copied beside the arithmetic: rows of float32 in whole
/// vectors.
bool in_vectors(const NDArray& x) {
  bool fits = x.elem() == Elem::float32 && x.shape()[3] % 16 == 0 && begins_at(x, 16);
  for (int i = 0; i < 3; ++i) fits = fits && (x.shape()[i] == 1 || x.strides()[i] % kLanes == 0);
  return fits;
}
std::string queue_for(const NDArray& first, const NDArray& second) {
  return in_vectors(first) && in_vectors(second) ? grid_of(first.device()).queue() : std::string();
}

struct Operands {
  NDArray q, k, v, g;
  const AttentionOptions& o;
  bool narrow() const {
    std::int64_t most = std::max({reach(q), reach(k), reach(v)});
    if (g.defined()) most = std::max(most, reach(g));
    if (o.mask.defined()) most = std::max(most, reach(o.mask));
    const Dims &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
    most = std::max(most, sq[0] * sq[1] * (sq[2] + 256) * std::max(sq[3], sv[3]));
    return fits_narrow(std::max(most, sk[0] * sk[1] * (sk[2] + 256) * std::max(sk[3], sv[3])));
  }
  void arrays(ProgramCall& call) const {
    call.array(q).array(k).array(v);
    if (g.defined()) call.array(g);
    for (const NDArray* x : {&o.mask, &o.padding, &o.lengths})
      if (x->defined()) call.array(*x);
  }
  /// `vectors`: bits of 1 for q and g, 2 for k and v, whose strides count vectors.
  void numbers(ProgramCall& call, std::int64_t blocks, std::int64_t tiles, int vectors) const {
    const std::int64_t heads = q.shape()[1], n = q.shape()[2], m = k.shape()[2];
    call.integer(blocks).integer(tiles).integer(heads).integer(heads / k.shape()[1]);
    call.integer(n).integer(m);
    for (const NDArray* x : {&q, &k, &v, &g}) {
      const std::int64_t unit = vectors & (x == &q || x == &g ? 1 : 2) ? kLanes : 1;
      for (int i = 0; x->defined() && i < 3; ++i) call.integer(x->strides()[i] / unit);
    }
    for (int i = 0; o.mask.defined() && i < 4; ++i) call.integer(o.mask.strides()[i]);
    const std::int64_t far = n + m;
    if (o.band) call.integer(std::clamp(o.low, -far, far)).integer(std::clamp(o.high, -far, far));
    call.real(o.scale);
    dropout_numbers(call, o);
  }
};

// ---- products of whole tiles

using operators::AttentionTiles;

constexpr std::int64_t kPiece = 64;  // columns of a swizzled tile

/// Rows that the copy engine can read: each begins at a multiple of 16 bytes.
bool reads_rows(const NDArray& x) {
  bool fits = begins_at(x, 16) && (x.strides()[3] == 1 || x.shape()[3] == 1);
  for (int i = 0; i < 3; ++i)
    fits = fits && (x.shape()[i] == 1 || (x.strides()[i] > 0 && x.strides()[i] % 8 == 0));
  return fits;
}

/// Programs of tiles know the device, the type and the sizes.
bool has_tiles(const NDArray& q, const NDArray& k, const NDArray& v, const AttentionOptions& o) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 4096;
  const std::int64_t planes = q.shape()[0] * q.shape()[1];
  return grid_of(q.device()).whole_products() &&
         (q.elem() == Elem::float16 || q.elem() == Elem::bfloat16) && o.scale > 0 &&
         q.shape()[3] % 8 == 0 && v.shape()[3] % 8 == 0 &&
         (!o.mask.defined() || std::abs(o.mask.strides()[3]) < kMost) &&
         std::max(q.shape()[2], k.shape()[2]) < kMost &&
         planes * ceil_div(std::max(q.shape()[2], k.shape()[2]), kPiece) < kMost;
}

/// All gradients in one pass, whose sums have no fixed order.
bool gradients_together(const NDArray& q, const NDArray& v) {
  return std::max(q.shape()[3], v.shape()[3]) <= 2 * kPiece && !is_deterministic();
}

NDArray for_copies(const NDArray& x) {
  if (reads_rows(x)) return x;
  const NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  assign(out, x);
  return out;
}

AttentionTiles tiles_of(const NDArray& q, const NDArray& v, const AttentionOptions& o) {
  AttentionTiles s;
  s.type = std::string(name_of(q.elem()));
  s.width = static_cast<int>(q.shape()[3]), s.value_width = static_cast<int>(v.shape()[3]);
  const int widest = std::max(s.width, s.value_width);
  s.columns = widest > 2 * kPiece ? 64 : 128;
  s.stages = widest > kPiece ? 2 : 3;
  s.band = o.band, s.lengths = o.lengths.defined(), s.padding = o.padding.defined();
  s.dropout = o.dropout > 0;
  if (o.mask.defined()) {
    s.mask = o.mask.elem() == Elem::boolean ? Mask::allowed : Mask::added;
    s.mask_type = std::string(name_of(o.mask.elem()));
  }
  // Narrow sums leave registers for more groups, unless options need them.
  s.groups = 2;
  if (widest <= kPiece && !s.padding && !s.dropout && !o.mask.defined())
    s.groups = 4, s.columns = 64;
  return s;
}

ProgramKey key_of(std::string_view name, const AttentionTiles& s, const AttentionOptions& o) {
  return {name,
          {s.type == "float16", s.width, s.value_width, s.groups, s.columns, s.stages, s.band,
           s.lengths, static_cast<int>(s.sums), s.turns, s.padding, s.dropout,
           static_cast<int>(s.mask), o.mask.defined() ? static_cast<int>(o.mask.elem()) : 0}};
}

void tile_arrays(ProgramCall& call, const AttentionOptions& o) {
  for (const NDArray* x : {&o.mask, &o.padding, &o.lengths})
    if (x->defined()) call.array(*x);
}

/// What all programs of tiles take behind their arrays; `last`: dout or out.
void tile_numbers(ProgramCall& call, const AttentionOptions& o, std::int64_t tiles,
                  std::int64_t planes, const NDArray& q, const NDArray& k, const NDArray& v,
                  const NDArray& last) {
  const std::int64_t n = q.shape()[2], m = k.shape()[2], heads = q.shape()[1];
  call.integer(tiles * planes).integer(tiles).integer(q.shape()[0]).integer(heads);
  call.integer(heads / k.shape()[1]).integer(n).integer(m);
  // The stride of an axis of one element is never used, but must be legal.
  for (const NDArray* x : {&q, &k, &v, &last})
    for (int i = 0; i < 3; ++i) call.integer(x->shape()[i] == 1 ? 8 : x->strides()[i]);
  for (int i = 0; o.mask.defined() && i < 4; ++i) call.integer(o.mask.strides()[i]);
  const std::int64_t far = n + m;
  if (o.band) call.integer(std::clamp(o.low, -far, far)).integer(std::clamp(o.high, -far, far));
  call.real(o.scale);
  dropout_numbers(call, o);
}

AttentionResult forward_by_tiles(const NDArray& q_in, const NDArray& k_in, const NDArray& v_in,
                                 const AttentionOptions& o, AttentionResult result) {
  const NDArray q = for_copies(q_in), k = for_copies(k_in), v = for_copies(v_in);
  const AttentionTiles spec = tiles_of(q, v, o);
  const std::int64_t tiles = ceil_div(q.shape()[2], kPiece * spec.groups);
  ProgramCall call(q.device());
  call.array(q).array(k).array(v);
  tile_arrays(call, o);
  call.array(result.out).array(result.sums);
  tile_numbers(call, o, tiles, q.shape()[0] * q.shape()[1], q, k, v, result.out);
  call.run(key_of("attention.tiles", spec, o), [&] { return attention_tiles(spec); });
  return result;
}

/// Gradients by products of tiles. Together: all by one program, whose sums of dq have no fixed
/// order, and one that rounds them.
void backward_by_tiles(const NDArray& g_in, const NDArray& q_in, const NDArray& k_in,
                       const NDArray& v_in, const AttentionResult& result,
                       const AttentionOptions& o, const std::array<NDArray, 3>& out) {
  const NDArray g = for_copies(g_in), q = for_copies(q_in), k = for_copies(k_in),
                v = for_copies(v_in), forward = for_copies(result.out.contiguous());
  const bool together = gradients_together(q, v);
  AttentionTiles spec = tiles_of(q, v, o);
  spec.groups = 2, spec.columns = 64, spec.turns = false;
  const int widest = std::max(spec.width, spec.value_width);
  spec.stages = widest > 2 * kPiece ? 1 : 2;
  const std::int64_t heads = q.shape()[1], n = q.shape()[2], planes = q.shape()[0] * heads,
                     parts = ceil_div(n, kPiece), key_planes = k.shape()[0] * k.shape()[1],
                     key_tiles = ceil_div(k.shape()[2], 2 * kPiece);
  const NDArray stats = NDArray::empty(q.device(), Elem::float32, Dims{planes, parts, 2 * kPiece});
  NDArray added;
  if (together)
    added = NDArray::empty(q.device(), Elem::float32,
                           Dims{planes, parts, kPiece, ceil_div(widest, kPiece) * kPiece});
  {
    ProgramCall call(q.device());
    call.array(g).array(forward).array(result.sums.contiguous()).array(stats);
    if (together) call.array(added);
    call.integer(planes * parts).integer(heads).integer(n);
    for (int i = 0; i < 3; ++i) call.integer(g.strides()[i]);
    ProgramKey key = key_of("attention.tiles_stats", spec, o);
    key.add(together);
    call.run(key, [&] { return attention_tiles_stats(spec, together); });
  }
  auto arrays = [&](ProgramCall& call) {
    call.array(q).array(k).array(v).array(g);
    tile_arrays(call, o);
    call.array(stats);
  };
  if (together) {
    ProgramCall call(q.device());
    arrays(call);
    call.array(added).array(out[1]).array(out[2]);
    tile_numbers(call, o, key_tiles, key_planes, q, k, v, g);
    call.run(key_of("attention.tiles_gradient", spec, o),
             [&] { return attention_tiles_gradient(spec); });
    ProgramCall last(q.device());
    last.array(added).array(out[0]).integer(planes * parts * 2).integer(n).real(o.scale);
    return last.run(key_of("attention.tiles_dq", spec, o),
                    [&] { return attention_tiles_dq(spec); });
  }
  {
    const std::int64_t tiles = ceil_div(n, kPiece * spec.groups);
    ProgramCall call(q.device());
    arrays(call);
    call.array(out[0]);
    tile_numbers(call, o, tiles, planes, q, k, v, g);
    call.run(key_of("attention.tiles_queries", spec, o),
             [&] { return attention_tiles_queries(spec); });
  }
  using Sums = AttentionTiles::Sums;
  auto keys = [&](Sums which) {
    spec.sums = which;
    ProgramCall call(q.device());
    arrays(call);
    if (which != Sums::values) call.array(out[1]);
    if (which != Sums::keys) call.array(out[2]);
    tile_numbers(call, o, key_tiles, key_planes, q, k, v, g);
    call.run(key_of("attention.tiles_keys", spec, o), [&] { return attention_tiles_keys(spec); });
  };
  if (widest <= 2 * kPiece) return keys(Sums::both);
  keys(Sums::keys), keys(Sums::values);
}

}  // namespace

bool has_attention(const NDArray& q, const NDArray&, const NDArray& v, const AttentionOptions& o) {
  const Grid& grid = grid_of(q.device());
  const bool types =
      q.elem() == Elem::float32 || q.elem() == Elem::float16 || q.elem() == Elem::bfloat16;
  const bool mask = !o.mask.defined() || o.mask.elem() == Elem::boolean ||
                    o.mask.elem() == q.elem() || o.mask.elem() == Elem::float32;
  if (!grid.present() || grid.threads() < operators::kAttentionThreads || !types || !mask ||
      q.shape()[3] > kWidest || v.shape()[3] > kWidest || o.dropout >= 1)
    return false;
  const AttentionSpec spec = spec_of(q, v, o);
  return !fitting_tiles(spec, grid, false).empty() && !fitting_tiles(spec, grid, true).empty();
}

AttentionResult grid_attention(const NDArray& q, const NDArray& k, const NDArray& v,
                               const AttentionOptions& o) {
  const std::int64_t batch = q.shape()[0], heads = q.shape()[1], n = q.shape()[2];
  AttentionResult result{NDArray::empty(q.device(), q.elem(), Dims{batch, heads, n, v.shape()[3]}),
                         NDArray::empty(q.device(), Elem::float32, Dims{batch, heads, n})};
  if (has_tiles(q, k, v, o)) return forward_by_tiles(q, k, v, o, result);
  AttentionSpec spec = spec_of(q, v, o);
  choose_tile(spec, q, batch * heads, n, k.shape()[2], Pass::forward);
  const Operands operands{in_rows(q), in_rows(k), in_rows(v), {}, o};
  spec.narrow = operands.narrow();
  spec.queue = queue_for(operands.k, operands.v);
  const std::int64_t tiles = ceil_div(n, 16 * spec.rows);
  ProgramCall call(q.device());
  operands.arrays(call);
  call.array(result.out).array(result.sums);
  operands.numbers(call, tiles * batch * heads, tiles, spec.queue.empty() ? 0 : 2);
  call.run(key_of("attention.forward", spec, q, o), [&] { return attention_forward(spec); });
  return result;
}

std::array<NDArray, 3> grid_attention_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                               const NDArray& v, const AttentionResult& result,
                                               const AttentionOptions& o) {
  const std::int64_t batch = q.shape()[0], heads = q.shape()[1], n = q.shape()[2], m = k.shape()[2],
                     planes = batch * heads, key_planes = batch * k.shape()[1];
  auto like = [&](const NDArray& x) { return NDArray::empty(x.device(), x.elem(), x.shape()); };
  std::array<NDArray, 3> out{like(q), like(k), like(v)};
  if (has_tiles(q, k, v, o)) {
    backward_by_tiles(g, q, k, v, result, o, out);
    return out;
  }
  const Operands operands{in_rows(q), in_rows(k), in_rows(v), in_rows(g), o};
  AttentionSpec spec = spec_of(q, v, o);
  spec.narrow = operands.narrow();
  const NDArray delta = NDArray::empty(q.device(), Elem::float32, Dims{batch, heads, n});
  {
    ProgramCall call(q.device());
    call.array(operands.g).array(result.out.contiguous()).array(delta);
    call.integer(ceil_div(planes * n, 32)).integer(planes * n).integer(heads).integer(n);
    for (int i = 0; i < 3; ++i) call.integer(operands.g.strides()[i]);
    call.run({"attention.delta", {static_cast<int>(q.elem()), spec.value_width, spec.narrow}},
             [&] { return attention_delta(spec); });
  }
  const NDArray sums = result.sums.contiguous();
  // One pass computes scores once; devices with a queue for copies add float32 atomically.
  const std::string queue = queue_for(operands.q, operands.g);
  const bool together =
      !queue.empty() && gradients_together(q, v) && std::max(q.shape()[3], v.shape()[3]) <= kPiece;
  if (!together) {
    choose_tile(spec, q, planes, n, m, Pass::queries);
    const std::int64_t tiles = ceil_div(n, 16 * spec.rows);
    ProgramCall call(q.device());
    operands.arrays(call);
    call.array(sums).array(delta).array(out[0]);
    spec.queue = queue_for(operands.k, operands.v);
    operands.numbers(call, tiles * planes, tiles, spec.queue.empty() ? 0 : 2);
    call.run(key_of("attention.queries", spec, q, o), [&] { return attention_queries(spec); });
  }
  choose_tile(spec, q, key_planes, m, n, Pass::keys);
  const std::int64_t tiles = ceil_div(m, 16 * spec.rows);
  ProgramCall call(q.device());
  operands.arrays(call);
  call.array(sums).array(delta);
  if (together) {
    out[0] = full(q.device(), Elem::float32, q.shape(), Scalar(0));
    call.array(out[0]);
  }
  call.array(out[1]).array(out[2]);
  spec.queue = queue;
  operands.numbers(call, tiles * key_planes, tiles, spec.queue.empty() ? 0 : 1);
  if (together)
    call.run(key_of("attention.gradient", spec, q, o), [&] { return attention_gradient(spec); });
  else call.run(key_of("attention.keys", spec, q, o), [&] { return attention_keys(spec); });
  return out;
}

}  // namespace weft::device
