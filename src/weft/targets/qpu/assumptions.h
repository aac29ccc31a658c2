// SPDX-License-Identifier: Apache-2.0
#pragma once
// What no hardware-backed source confirms, in one place, so that it can be changed when a chip
// answers. Everything else in this folder follows the architecture guide or measurements on chips.

#include <cstdint>

namespace weft::qpu::hw::assume {

/// fmul rounds toward zero as fadd does (only the adder was measured).
inline constexpr bool kMulRoundsTowardZero = true;
/// A sum or product beyond the range gives the largest finite number, as rounding toward zero
/// implies.
inline constexpr bool kOverflowIsLargestFinite = true;
/// mul24 sets C when the product needs more than 32 bits (another reading: more than 24).
inline constexpr std::uint64_t kMul24CarryLimit = 0xffffffffull;
/// A uniform addressed through both register files in one instruction is consumed once.
inline constexpr bool kBothUniformPortsConsumeOnce = true;
/// Write conditions of a rotated result are those of the destination lane.
inline constexpr bool kRotateConditionInDestination = true;
/// VPM reads of 8 and 16 bits are zero extended.
inline constexpr bool kVpmSubwordZeroExtends = true;
/// Bit 16 of the VDW stride set-up makes no difference for the shapes we accept.
inline constexpr bool kBlockModeInert = true;
/// The SFU's results are the correctly rounded ones with the low mantissa bits cleared.
inline constexpr int kSfuClearedBits = 10;
/// Inf + -Inf, Inf - Inf: -Inf; -Inf - -Inf: +Inf.
inline constexpr bool kInfMinusInfIsInf = true;
/// Packing a float to 8 bits (pm = 1) truncates f * 255.
inline constexpr bool kColourPackTruncates = true;
/// Outstanding TMU requests per unit that are safe on chips (the guide says 8 slots).
inline constexpr int kTmuFifoDepth = 4;

}  // namespace weft::qpu::hw::assume
