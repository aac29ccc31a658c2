// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels for devices whose target has a grid of groups of threads: what the device says of itself,
// and a builder of programs that are bound to the grid from the start.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/devices/program_cache.h"
#include "weft/ir/build.h"
#include "weft/rules/facts.h"
#include "weft/runtime/module.h"

namespace weft::device {

/// A device's table as array operations ask it.
class Grid : public rules::Facts {
 public:
  explicit Grid(const TargetInfo& table);
  /// It has blocks, threads with a barrier and shared memory, and says how many threads.
  bool present() const { return present_; }
  /// Most threads of a block: no kernel of arrays wants more than 1024.
  std::int64_t threads() const { return threads_; }
  /// For copies that run beside the arithmetic; "": none.
  std::string queue() const { return copies_ahead() ? table().copy_queue()->name : ""; }
  /// Copies in bulk, and groups multiply tiles (devices/warp_specialized.h).
  bool whole_products() const {
    return warp_products() && table().limit(limits::kTensorMaps, 0) > 0;
  }

 private:
  bool present_;
  std::int64_t threads_;
};
/// What a kernel more costs an eager operation, in microseconds.
inline constexpr double kLaunchMicroseconds = 4.5;
/// The reference stays valid.
const Grid& grid_of(const Ref<Device>& device);

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
  /// What was made so far, for programs whose loops a rule binds.
  std::vector<ir::Param> params() const;
  /// `exclusive`: what the kernel writes is read nowhere else. `distinct`: positions that it
  /// computes through arrays differ from thread to thread. `blocks`: that a processor shall have
  /// room for at once.
  ir::PrimFunc finish(const ir::Stmt& body, bool exclusive = false, bool distinct = false,
                      std::int64_t blocks = 0) const;

 private:
  std::vector<ir::Param> buffers_, scalars_;
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
