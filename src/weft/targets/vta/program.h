// SPDX-License-Identifier: Apache-2.0
#pragma once
// Instruction streams as they are recorded, stored and run. DRAM addresses are relative to a
// parameter of the kernel (or to the program's own micro-operations), so one stream serves any
// arguments: the base is added at launch. The binary's format is "vta".

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/runtime/binary.h"
#include "weft/targets/vta/host_copy.h"
#include "weft/targets/vta/isa.h"

namespace weft::vta {

inline constexpr std::uint16_t kAbsolute = 0xffff;  // DRAM address as written
inline constexpr std::uint16_t kUopArena = 0xfffe;  // relative to the program's micro-operations

/// One kernel: instructions, and for each what its DRAM address is relative to.
struct Stream {
  std::vector<Insn> insns;
  std::vector<std::uint16_t> base;
};

struct Kernel {
  runtime::KernelSignature signature;  // pointer parameters only
  Stream stream;
  std::vector<HostCopy> host;  // not empty: the host does these instead, and there is no stream
};

struct Program {
  Config config;
  std::vector<std::uint32_t> uops;  // the arena that LOAD UOP reads
  std::vector<Kernel> kernels;
};

/// `source` becomes Binary::source (a listing is made when empty).
runtime::Binary to_binary(const Program& program, std::string target);
/// Throws Error(emit, "vta.binary.*") on damage, another version, or words that are no
/// instructions.
Program from_binary(const runtime::Binary& binary);

enum class ListingParts : std::uint8_t { instructions = 2, uops = 4, barriers = 8 };
/// Instructions with their micro-operations and tokens. `parts`: bits of ListingParts; 2 | 4 is
/// what upstream calls debug_flag 0x6.
std::string listing(const Program& program, unsigned parts = 2 | 4);

}  // namespace weft::vta
