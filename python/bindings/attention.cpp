// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/attention.h"

#include <optional>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array_type.h"
#include "weft/ir/text.h"
#include "weft/operators/attention.h"
#include "weft/operators/attention_tiles.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::py {

namespace {

using Band = std::optional<std::pair<std::int64_t, std::int64_t>>;

AttentionOptions options_of(const std::optional<NDArray>& mask,
                            const std::optional<NDArray>& padding,
                            const std::optional<NDArray>& lengths, const Band& band, double scale,
                            double dropout, std::uint64_t seed) {
  AttentionOptions o;
  if (mask) o.mask = *mask;
  if (padding) o.padding = *padding;
  if (lengths) o.lengths = *lengths;
  if (band) o.band = true, o.low = band->first, o.high = band->second;
  o.scale = scale, o.dropout = dropout, o.seed = seed;
  return o;
}

}  // namespace

static void bind_attention_programs(nb::module_& m);

void bind_attention(nb::module_& m) {
  m.def(
      "_attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& added,
         const std::optional<NDArray>& mask, const std::optional<NDArray>& padding,
         const std::optional<NDArray>& lengths, const Band& band, double scale, double dropout,
         std::uint64_t seed) {
        return attention(q, k, v, added ? *added : Tensor(),
                         options_of(mask, padding, lengths, band, scale, dropout, seed));
      },
      "q"_a, "k"_a, "v"_a, "added"_a = nb::none(), "mask"_a = nb::none(), "padding"_a = nb::none(),
      "lengths"_a = nb::none(), "band"_a = nb::none(), "scale"_a = 1.0, "dropout"_a = 0.0,
      "seed"_a = 0);
  m.def(
      "_attention_forward",
      [](const NDArray& q, const NDArray& k, const NDArray& v, const std::optional<NDArray>& mask,
         const Band& band, double scale, bool want_sums) {
        AttentionResult r =
            attention_forward(q, k, v, options_of(mask, {}, {}, band, scale, 0, 0), want_sums);
        return std::pair(r.out, r.sums.defined() ? std::optional(r.sums) : std::nullopt);
      },
      "q"_a, "k"_a, "v"_a, "mask"_a = nb::none(), "band"_a = nb::none(), "scale"_a = 1.0,
      "want_sums"_a = true,
      "Attention and the natural logarithms of the sums of exponentials, which may be None unless "
      "wanted.");
  m.def(
      "_attention_backward",
      [](const NDArray& g, const NDArray& q, const NDArray& k, const NDArray& v, const NDArray& out,
         const NDArray& sums, const std::optional<NDArray>& mask, const Band& band, double scale) {
        return attention_backward(g, q, k, v, {out, sums},
                                  options_of(mask, {}, {}, band, scale, 0, 0));
      },
      "g"_a, "q"_a, "k"_a, "v"_a, "out"_a, "sums"_a, "mask"_a = nb::none(), "band"_a = nb::none(),
      "scale"_a = 1.0, "The gradients of q, k and v.");
  bind_attention_programs(m);
}

static void bind_attention_programs(nb::module_& m) {
  m.def(
      "_attention_program",
      [](const std::string& kind, const std::string& type, int width, int value_width, int rows,
         int columns, const std::string& mask, bool band, bool padding, bool lengths, bool dropout,
         const std::string& queue) {
        operators::AttentionSpec s;
        s.type = type, s.width = width, s.value_width = value_width;
        s.rows = rows, s.columns = columns;
        using Mask = operators::AttentionSpec::Mask;
        s.mask = mask.empty() ? Mask::none : mask == "bool" ? Mask::allowed : Mask::added;
        s.mask_type = mask;
        s.band = band, s.padding = padding, s.lengths = lengths, s.dropout = dropout;
        s.queue = queue;
        return ir::print(kind == "forward"    ? attention_forward(s)
                         : kind == "delta"    ? attention_delta(s)
                         : kind == "queries"  ? attention_queries(s)
                         : kind == "gradient" ? attention_gradient(s)
                                              : attention_keys(s));
      },
      "kind"_a, "type"_a, "width"_a, "value_width"_a, "rows"_a = 4, "columns"_a = 4, "mask"_a = "",
      "band"_a = false, "padding"_a = false, "lengths"_a = false, "dropout"_a = false,
      "queue"_a = "", "The text of a program of attention for cards, for tests.");
  m.def(
      "_attention_tiles",
      [](const std::string& kind, const std::string& type, int width, int value_width, int groups,
         int columns, int stages, bool band, bool lengths, bool turns, int sums,
         const std::string& mask, bool padding, bool dropout, bool bulk) {
        operators::AttentionTiles s;
        s.type = type, s.width = width, s.value_width = value_width;
        s.groups = groups, s.columns = columns, s.stages = stages;
        s.band = band, s.lengths = lengths, s.turns = turns;
        s.sums = static_cast<operators::AttentionTiles::Sums>(sums);
        s.padding = padding, s.dropout = dropout, s.mask_type = mask, s.bulk = bulk;
        using Mask = operators::AttentionSpec::Mask;
        s.mask = mask.empty() ? Mask::none : mask == "bool" ? Mask::allowed : Mask::added;
        return ir::print(kind == "forward"      ? attention_tiles(s)
                         : kind == "persistent" ? attention_tiles_persistent(s)
                         : kind == "gradient"   ? attention_tiles_gradient(s)
                         : kind == "stats"      ? attention_tiles_stats(s, sums == 0)
                         : kind == "dq"         ? attention_tiles_dq(s)
                         : kind == "queries"    ? attention_tiles_queries(s)
                                                : attention_tiles_keys(s));
      },
      "kind"_a, "type"_a, "width"_a, "value_width"_a, "groups"_a = 2, "columns"_a = 128,
      "stages"_a = 2, "band"_a = false, "lengths"_a = false, "turns"_a = true, "sums"_a = 0,
      "mask"_a = "", "padding"_a = false, "dropout"_a = false, "bulk"_a = false,
      "The same by products of tiles.");
}

}  // namespace weft::py
