// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention, softmax(scale q k' + mask) v, for blocks of 16 x 16 threads that multiply in
// registers. A block takes a tile of queries past all tiles of keys and keeps, for each query, the
// running maximum and sum of its weights: no array of queries by keys exists. The gradients compute
// the weights again from the logarithms of the sums; dq is summed over tiles of keys by a block of
// queries, dk and dv over tiles of queries by a block of keys, so sums have one order.
//
// Arrays are [batch, heads, length, width]; the last axis of q, k, v and dout has stride 1, out,
// sums, delta and gradients are compact. k and v may have fewer heads than q.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct AttentionSpec {
  enum class Mask : std::uint8_t { none, allowed, added };
  std::string type;                  // of q, k, v, out and gradients
  int width = 64, value_width = 64;  // of q and k; of v
  int rows = 4, columns = 4;         // scores of a thread
  Mask mask = Mask::none;
  std::string mask_type;  // of an added mask; an allowed one is bool
  bool band = false;      // query i sees keys i + low to i + high
  bool padding = false;   // which keys of each batch may be seen
  bool lengths = false;   // of the keys of each batch
  bool dropout = false;
  bool narrow = true;  // positions fit 32 bits
  /// The queue on which keys and values are copied while the others are multiplied; "": none. With
  /// one, elements are float32, widths multiples of 16, and strides of k and v count vectors of
  /// four.
  std::string queue;
};
inline constexpr int kAttentionThreads = 256;

/// Elements of shared memory (float32) of a block.
std::int64_t attention_shared(const AttentionSpec& spec, bool backward);

/// Arrays, then integers: blocks, tiles (of the axis that blocks share), heads, group (heads of q
/// that share one of k), n, m (lengths of q and k), the strides of batch, head and row of q, k, v
/// (and dout, mask; the mask's column too), low, high, then scale (float32), dropout's seed (two
/// uint32), threshold (uint32: below it a weight is dropped) and factor of what is kept (float32).
///
/// (q, k, v, [mask], [padding], [lengths], out, sums): sums is the natural logarithm of the sum of
/// exponentials, -inf where a query sees no key; its out is 0.
ir::PrimFunc attention_forward(const AttentionSpec& spec);
/// (dout, out, delta): delta = sum of dout * out along rows; (blocks, rows, heads, n, strides of
/// dout).
ir::PrimFunc attention_delta(const AttentionSpec& spec);
/// (q, k, v, dout, [mask], [padding], [lengths], sums, delta, dq)
ir::PrimFunc attention_queries(const AttentionSpec& spec);
/// (q, k, v, dout, [mask], [padding], [lengths], sums, delta, dk, dv)
ir::PrimFunc attention_keys(const AttentionSpec& spec);
/// (q, k, v, dout, [mask], [padding], [lengths], sums, delta, dq, dk, dv): all gradients in one
/// pass over the scores. dq, float32 and zero at the beginning, is added up in no fixed order.
ir::PrimFunc attention_gradient(const AttentionSpec& spec);

}  // namespace weft::operators
