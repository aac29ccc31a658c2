// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels for devices whose target has a grid of groups of threads: a builder of programs that are
// bound to the grid from the start, and the table of built ones. A key is a few integers, a call
// fills a short array of arguments: no text, no checks, no waiting on the launch path.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/devices/program_cache.h"
#include "weft/ir/build.h"
#include "weft/runtime/module.h"
#include "weft/target/target.h"

namespace weft::device {

/// What a device's target and the device itself say about groups of threads.
struct Grid {
  bool present = false;           // it has blocks, threads with a barrier and shared memory
  std::int64_t threads = 0;       // most of a block
  std::int64_t shared_bytes = 0;  // most of a block
  std::int64_t processors = 0;    // blocks run on so many at once
  std::string queue;              // for copies that run beside the arithmetic; "": none
  // Rates for choices between schedules: of the device where it tells them.
  double clocks_per_microsecond = 1500, bytes_per_microsecond = 500e3;
  double tile_sums_per_microsecond = 1;  // of all processors, 16-bit floats; where products are
  double launch_microseconds = 4.5;      // that a kernel more costs an eager operation
  bool double_products = false;          // an instruction multiplies tiles of float64
  bool whole_products = false;  // copies in bulk, and groups multiply tiles (devices/whole.h)
};
/// Known by the device's name and limits. The reference stays valid.
const Grid& grid_of(const Ref<Device>& device);

/// What a kernel is specialised on. The first word names the builder.
using Key = std::array<std::uint64_t, 4>;

/// A program under construction: flat buffers first, then scalars; positions are integers of one
/// width (32 bits where every position fits).
class Builder {
 public:
  explicit Builder(bool narrow) : index_type(narrow ? dtypes::int32 : dtypes::int64) {}
  const DType index_type;

  /// `align` in bytes; 0: an element's.
  ir::Buffer buffer(const std::string& name, Elem elem, int align = 0);
  ir::Expr integer(const std::string& name);            // a scalar of index_type
  ir::Expr size(const std::string& name);               // a scalar of 64 bits
  ir::Expr number(const std::string& name, Elem elem);  // a scalar of an element type
  ir::Var var(const std::string& name) const { return ir::make_var(name, index_type); }
  ir::Expr at(std::int64_t value) const { return ir::make_int(value, index_type); }
  /// `count` integers name0, name1, ...
  std::vector<ir::Expr> integers(const std::string& name, int count);
  /// Loops over the grid's axes; the body gets the position.
  using Body = std::function<ir::Stmt(const ir::Expr&)>;
  ir::Stmt bound(const char* axis, const ir::Expr& extent, const Body& body) const;
  ir::Stmt loop(const char* name, const ir::Expr& extent, const Body& body,
                ir::ForKind kind = ir::ForKind::serial) const;
  ir::Stmt unrolled(const char* name, std::int64_t extent, const Body& body) const {
    return loop(name, at(extent), body, ir::ForKind::unrolled);
  }
  /// `exclusive`: what the kernel writes is read nowhere else. `distinct`: positions that it
  /// computes through arrays differ from thread to thread. `blocks`: that a processor shall have
  /// room for at once.
  ir::PrimFunc finish(const ir::Stmt& body, bool exclusive = false, bool distinct = false,
                      std::int64_t blocks = 0) const;

 private:
  std::vector<ir::Param> buffers_, scalars_;
};

/// Arguments in the order in which the builder made its buffers and scalars.
class Call : public ProgramCall {
 public:
  using ProgramCall::ProgramCall;
  using ProgramCall::run;
  /// Builds on the first use of the key on this device, then launches; hardware is not waited for.
  void run(const Key& key, const std::function<ir::PrimFunc()>& make);
};

/// The type in which sums of products of this type are kept: float32 for 16-bit floats.
inline Elem sum_elem(Elem e) { return arithmetic_elem(e); }
/// A private array of a thread.
ir::Buffer local(const std::string& name, DType type, std::int64_t extent);
ir::Buffer shared(const std::string& name, DType type, std::vector<std::int64_t> shape);

/// Row-major position -> the dot product of coordinates with each set of strides. Extents of the
/// leading axis are not needed.
std::vector<ir::Expr> positions(const ir::Expr& linear, const std::vector<ir::Expr>& extents,
                                const std::vector<std::vector<ir::Expr>>& strides);
/// Whether all positions and sizes, with room for a block more, fit 32 bits.
bool fits_narrow(std::int64_t most);

}  // namespace weft::device
