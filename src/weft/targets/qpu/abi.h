// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel finds in its uniforms: read from a binary's metadata ("uniforms": a list of "me",
// "count", "p<i>" for pointer i, "s<i>" for integer scalar i, "f<i>" for float scalar i, "spill",
// or a number; "spill_bytes" per QPU), filled in at a launch. The emulator and the driver share it.

#include <cstdint>
#include <span>
#include <vector>

#include "weft/runtime/binary.h"
#include "weft/targets/qpu/isa.h"

namespace weft::qpu::hw {

enum class UniformKind : std::uint8_t { me, count, pointer, integer, real, spill, constant };

struct Uniform {
  UniformKind kind = UniformKind::constant;
  std::uint32_t value = 0;
};

struct Abi {
  std::vector<Uniform> uniforms;
  std::uint64_t spill_bytes = 0;
};

/// One binary per kernel. Binaries of several kernels list them in the metadata: "programs", with
/// the first word, the number of words and the metadata of each. Throws Error(emit,
/// "qpu.binary.size").
std::vector<runtime::Binary> kernels_of(const runtime::Binary& binary);

/// Throws Error(value, "qpu.launch.kernel") unless kernel < count.
void check_kernel(std::size_t kernel, std::size_t count);

/// Throws Error(emit, "qpu.binary.uniform").
Abi parse_abi(const runtime::Binary& binary);

/// The instruction words. Throws Error(emit, "qpu.binary.size").
std::vector<std::uint64_t> words_of(const runtime::Binary& binary);

/// What they mean. Throws Error(emit, "qpu.binary.empty" | "qpu.binary.word").
std::vector<Instr> decode_words(std::span<const Code> words);

/// Uniforms of `active` QPUs one after the other; spill addresses are left 0. `limit`: QPUs of the
/// device. Throws Error(value, "qpu.launch.qpus" | ".unbound" | ".null" | ".align" | ".range").
std::vector<std::uint32_t> fill_uniforms(const Abi& abi, std::span<const std::uint64_t> pointers,
                                         std::span<const std::int64_t> scalars, std::int64_t active,
                                         int limit);

}  // namespace weft::qpu::hw
