// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of 16-bit floats by products of whole tiles. Threads have roles: one starts bulk copies
// of tiles of keys and values into rings, groups of 128 multiply, each 64 queries: the product of
// the weights of one tile with its values runs while the scores of the next one become weights.
// Weights never leave registers.

#include <string>

#include "weft/ir/node.h"
#include "weft/operators/attention.h"

namespace weft::operators {

struct AttentionTiles {
  std::string type;                    // float16 or bfloat16
  int width = 128, value_width = 128;  // at most 256
  int groups = 2, columns = 128, stages = 2;
  bool band = false, lengths = false, padding = false, dropout = false;
  AttentionSpec::Mask mask = AttentionSpec::Mask::none;
  std::string mask_type;  // of an added mask
  /// Of attention_tiles_keys: wide gradients fit a thread's registers one at a time.
  enum class Sums : std::uint8_t { both, keys, values } sums = Sums::both;
  bool turns = true;  // groups start their products one after the other
  bool bulk = false;  // of attention_tiles_gradient: dq is added up by bulk copies
};

/// (q, k, v, [mask], [padding], [lengths], out, sums), then integers of 64 bits: blocks, tiles (of
/// 64 * groups queries), batches, heads, group, n, m, [together], the strides of batch, head and
/// row of q, k, v and out, [of the mask's axes, the last of 32 bits], [low, high of 32 bits], scale
/// (float32, above 0), [dropout's numbers]. Meanings as in attention.h; the last axes have stride
/// 1, the other strides and the addresses are multiples of 16 bytes.
ir::PrimFunc attention_tiles(const AttentionTiles& spec);
/// The same with `together`: a block takes every blocks-th tile, of `together` planes (heads of a
/// batch) at once, the longest tiles first.
ir::PrimFunc attention_tiles_persistent(const AttentionTiles& spec);

/// What gradients need of queries: (dout, out, sums, stats, [dqa, where gradients are made
/// together]), integers of 64 bits: blocks, heads, n and the strides of batch, head and row of
/// dout. A block for each 64 queries (`parts` of a plane). stats[plane, part, 128] receives the
/// base-2 logarithms of their sums (inf where a query sees nothing) and the sums of dout * out, as
/// a swizzled copy expects them; dqa[plane, part, pieces, 4096] receives zeros.
ir::PrimFunc attention_tiles_stats(const AttentionTiles& spec, bool together);

/// Gradients in tiles of 64 columns, each in one order: (q, k, v, dout, [mask], [padding],
/// [lengths], stats, dq) and (..., dk, dv); the integers of attention_tiles
/// with the strides of dout in the place of out's. Compact results.
ir::PrimFunc attention_tiles_queries(const AttentionTiles& spec);
ir::PrimFunc attention_tiles_keys(const AttentionTiles& spec);

/// All gradients at once, for widths up to 128: a block stays with 128 keys, dk and dv lie in
/// registers, dq is added up in memory in no fixed order.
/// (q, k, v, dout, [mask], [padding], [lengths], stats, dqa, dk, dv), integers as above.
ir::PrimFunc attention_tiles_gradient(const AttentionTiles& spec);
/// (dqa, dq), integers of 64 bits: blocks, n, then scale: what was added up becomes dq.
ir::PrimFunc attention_tiles_dq(const AttentionTiles& spec);

}  // namespace weft::operators
