// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of float32 by tiles of bfloat16. A float32 is, to its last bit, the sum of three
// bfloat16 pieces; of the nine products of pieces the six largest give a product of two numbers to
// 2^-25 of it. Tile instructions cut off what a sum does not hold, so that sums of 64 terms are
// added by threads, rounded to nearest.

#include "weft/devices/warp_specialized.h"

namespace weft::device {

/// Planes of pieces that one array holds: 0 has the first pieces, those of numbers that are not
/// finite too; 1 and 2 what is left of finite numbers; 3 the first pieces of finite numbers, 0 for
/// others, so that infinity times a second piece of 0 is asked by no product.
inline constexpr int kPiecePlanes = 4;
/// Columns of tiles are multiples of it: fewer kernels serve all shapes.
inline constexpr std::int64_t kPieceColumns = 64;
/// The plane of a and of b in each product, least ones first.
inline constexpr int kPieceOfA[rules::kPieceProducts] = {2, 1, 3, 1, 3, 0};
inline constexpr int kPieceOfB[rules::kPieceProducts] = {3, 1, 2, 3, 1, 0};

/// Each product shares an operand with the one before it if they go in another order, still with
/// the largest one last: which of the planes in kPieceOrder each of them takes. Sums of 64 terms
/// hold what lies 2^-8 below a larger term to 2^-32 of it.
inline constexpr int kPieceOrderA[kPiecePlanes] = {2, 1, 3, 0};
inline constexpr int kPieceOrderB[kPiecePlanes] = {3, 1, 2, 0};
inline constexpr int kPieceUseA[rules::kPieceProducts] = {0, 1, 1, 2, 2, 3};
inline constexpr int kPieceUseB[rules::kPieceProducts] = {0, 0, 1, 1, 2, 3};
/// planes[pair], a digit of one number, which proofs need not look into.
ir::Expr piece_plane(const ir::Expr& pair, const int* planes);

/// An operand as products read it: rows along the axis `inner`; in pieces, the first plane, and the
/// elements from one plane to the next.
struct TileOperand {
  NDArray x;
  int inner = 0;
  std::int64_t plane = 0;
};
/// The planes of a float32 array as one array [kPiecePlanes, ...] in order, rows along its last
/// axis at multiples of 32 bytes.
NDArray piece_planes(const NDArray& x);
/// [kPiecePlanes, n, columns, rows] of x[n, rows, columns].
NDArray turned_piece_planes(const NDArray& x);
/// The program of the latter, of even rows whose columns lie side by side.
ir::PrimFunc turned_pieces_program(bool narrow);
/// The planes of an operand in the order that its elements lie in.
TileOperand pieces_of(const NDArray& x);
/// Whether neighbours along the last axis but one lie together rather than those along the last.
bool lies_turned(const NDArray& x);

/// Whether float32 operands in pieces are expected to take less time than multiplications by
/// threads.
bool prefers_pieces(const NDArray& out, const NDArray& a, const NDArray& b);

}  // namespace weft::device
