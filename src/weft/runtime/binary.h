// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a back end produces: bytes, the signatures of the kernels inside, the source it came from,
// and a map from machine pc to program place. One type for every target; the runtime knows no IR.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/dtype.h"
#include "weft/base/json.h"

namespace weft::runtime {

/// tensor: a description of an array for the device's copy engine, made at the launch from the
/// arguments that follow one another: a pointer, `box.size()` extents (innermost first), the
/// strides of all but the innermost axis in elements.
enum class ParamKind : std::uint8_t { pointer, scalar, tensor };

struct KernelParam {
  std::string name;
  ParamKind kind = ParamKind::pointer;
  DType dtype;                      // of the element, or of the scalar
  std::string space = "global";     // memory space a pointer must live in
  std::vector<int> box{}, steps{};  // tensor: what one copy spans on each axis, and every how many
};

struct KernelSignature {
  std::string name;
  std::vector<KernelParam> params;  // tensors first, then pointers, then scalars
  std::vector<std::string>
      axes;  // launch axes in order ("blockIdx.x", "qpu", "pe.x"); may be empty
  std::int64_t scratch_bytes =
      0;  // dynamic on-chip memory per group, when the launch must state it
};

struct DebugEntry {
  std::uint64_t pc = 0;
  std::string block;  // IR block or function
  std::string file;
  int line = 0;
};

struct Binary {
  std::string target;  // canonical target string it was built for
  std::string
      format;  // "elf" "cubin" "c" "opencl-c" "qpu" "vta" "csl" ... understood by the device
  std::string bytes;
  std::string source;  // text for Module::source()
  std::vector<KernelSignature> kernels;
  std::vector<DebugEntry> debug;
  Json metadata;  // the target's own extras

  /// Throws Error(value, "binary.kernel.unknown") listing the kernels present.
  const KernelSignature& kernel(std::string_view name) const;
};

}  // namespace weft::runtime
