// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants of the timing model, in V3D clocks. They were fixed before any kernel was measured.
// Sources: AG = VideoCore IV architecture guide; BRIEF = BCM2835 product brief; PI = figures
// measured on a Raspberry Pi 3.

#include <cstdint>

namespace weft::qpu::hw::timing {

inline constexpr double kClockHz = 300e6;  // V3D of a Raspberry Pi 3B at its defaults
inline constexpr int kIssue = 4;           // one instruction, four quads (AG 3)
inline constexpr int kTmuVector =
    16;  // one word per clock and TMU: 1.5 Gtexel/s = 6 TMUs x 250 MHz (BRIEF)
inline constexpr int kTmuHit = 36;  // 9 instructions from request to data, TMU cache (PI)
inline constexpr int kL2Hit = 48;   // 12 instructions, L2 cache (PI)
inline constexpr int kMemory =
    160;                          // from SDRAM: the vector-by-vector GEMV with one row request in
                                  // flight took 158 clocks per step (29.6 ms for 56250 steps, PI)
inline constexpr int kLine = 64;  // bytes, TMU cache and L2 (AG 4)
inline constexpr int kTmuLines = 64;              // 4 KB per TMU (AG 4)
inline constexpr int kL2Sets = 512, kL2Ways = 4;  // 128 KB (BCM2835 L2)
inline constexpr int kSdramBytesPerClock =
    8;  // 2.4 GB/s of the 3.6 GB/s of 32-bit LPDDR2-900 at 300 MHz
inline constexpr int kLineClocks = kLine / kSdramBytesPerClock;
inline constexpr int kDmaStart = 40;         // from the address write to the first beat
inline constexpr int kDmaRow = 4;            // per row of a transfer
inline constexpr int kVpmBytesPerClock = 8;  // VDR/VDW to VPM
inline constexpr int kLineStore = kDmaRow + kLine / kVpmBytesPerClock;  // of the engine's time
inline constexpr int kQuantum = 2048;  // clocks a QPU may run ahead of the others

}  // namespace weft::qpu::hw::timing
