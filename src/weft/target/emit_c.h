// SPDX-License-Identifier: Apache-2.0
#pragma once
// The shared emitter of C-like text. Targets differ by a CSpelling: keywords, thread indices,
// vector types, barriers and the names of functions. Kernels are PrimFuncs as split_host_device
// makes them.
//
// Values of 16-bit floats are held as float and rounded after every operation; in memory they are
// 16-bit words. bool is one byte in memory. Vectors are written lane by lane, whole vectors move
// only in loads and stores of consecutive elements.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"
#include "weft/runtime/binary.h"

namespace weft {

enum class VectorStyle : std::uint8_t {
  loops,    // no vector types: loops over lanes
  members,  // float4 with .x .y .z .w, constructed by make_float4(...), moved through pointer casts
  load_store,  // vload4 / vstore4, constructed by (float4)(...)
  casts,       // float4(...) and pointer casts
  gnu,         // vectors of GCC and Clang: whole values with operators, loose loads and stores
};

struct CSpelling {
  std::string target;           // for messages
  std::string prelude;          // typedefs and includes, printed first
  std::string function_prefix;  // before helper functions
  std::string kernel_prefix;    // before the kernel's name
  std::string launch_bounds;    // "__launch_bounds__(%) " with % for the threads; or ""
  std::map<std::string, std::string>
      types;                          // dtype name -> C name (of values; 16-bit floats are float)
  std::string global, shared, local;  // address space words, with a trailing blank
  std::string restrict_word;
  bool shared_at_top = true;             // shared arrays are declared at the start of the kernel
  std::int64_t static_shared_bytes = 0;  // above this, shared memory is one dynamic array; 0: never
  std::map<std::string, std::string> axes;  // "blockIdx.x" -> "((int)blockIdx.x)"
  std::string barrier_shared, barrier_global;
  VectorStyle vectors = VectorStyle::loops;
  int vector_bytes = 0;  // of VectorStyle::gnu: longer vectors are loops over lanes
  std::string int64_suffix = "LL";
  std::string unroll = "#pragma unroll";
  /// Intrinsic name -> function for float32, and for float64 when it differs; "" means it is
  /// missing.
  std::map<std::string, std::pair<std::string, std::string>> functions;
  std::string half_helpers;    // definitions of weft_half_to_float and weft_float_to_half
  std::string bfloat_helpers;  // the same for bfloat16; "": by the bits
  std::string infinity = "INFINITY", nan = "NAN";
  bool indexed_parameters =
      false;  // "[[buffer(i)]]" after each parameter, scalars by constant reference
  std::string extra_parameters;  // after the kernel's own
  bool pointer_offsets = false;  // each pointer comes with an offset in elements
  bool signed_wraps = false;     // compilers are told that signed arithmetic wraps (-fwrapv)
  bool host_entry = false;       // host functions: parallel loops, status results
  bool unpacks = true;           // of host functions also an entry of the host kernel ABI
  /// Function or macro (pointer, value) that stores past the caches; "": ordinary stores, with a
  /// comment in the text. stream_end orders them before the end of a host function.
  std::string stream, stream_helpers, stream_end;
  /// Function or macro (address, 1 to write, locality 0 to 3) that asks for a line of memory, and
  /// its definition; "": the hint is left out.
  std::string prefetch, prefetch_helper;
  /// Asynchronous copies to shared memory: bytes -> function (shared pointer, global pointer), what
  /// ends a group of them, and the wait with % for the groups that may be outstanding. Empty: none.
  std::map<int, std::string> async_copies;
  /// Bytes -> function (shared pointer, global pointer, condition): zeros where the condition is
  /// false, and nothing is read then.
  std::map<int, std::string> async_guarded;
  std::string async_helpers, async_commit, async_wait;
  /// The definition of a function that the intrinsic "instruction" calls; null: there are none.
  std::string (*instruction)(std::string_view name) = nullptr;
  /// Atomic updates: dtype, or "dtype@shared" where shared memory needs another, -> function
  /// (pointer, value) and its definition, "" where the language has it. Absent: refused.
  using Atomics = std::map<std::string, std::pair<std::string, std::string>>;
  Atomics atomic_add, atomic_max;
  /// Queues whose work is started in groups: what stands before the work, what ends a group, and
  /// the wait with % for the groups that may be outstanding.
  struct Queue {
    std::string begin, commit, wait;
  };
  std::map<std::string, Queue> queues;
  /// A parameter that describes an array for bulk copies, with % for its name; "": there are none.
  std::string tensor_param, tensor_helpers;
  std::string cluster_bounds;  // "__cluster_dims__(%, 1, 1) ", % blocks; "": there are none
  std::string alone_bounds;    // launch_bounds of kernels whose roles state registers
  std::string trap;            // statement that stops a kernel whose assertion failed; "": refuse
};

struct EmittedSource {
  std::string text;
  std::vector<runtime::KernelSignature> kernels;
  /// Per kernel: messages of its assertions; a host kernel returns the index + 1.
  Json metadata;
};

EmittedSource emit_c(const std::vector<ir::PrimFunc>& kernels, const CSpelling& spelling);

/// Refuses ("lower.shared.limit") kernels that need more shared memory than a group has.
void check_shared_bytes(const EmittedSource& source, std::int64_t limit, const std::string& target);

/// The name as an identifier that no C-like language reserves.
std::string c_identifier(std::string_view name);

}  // namespace weft
