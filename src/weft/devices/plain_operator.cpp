// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/plain_operator.h"

#include <map>

#include "weft/base/text.h"
#include "weft/devices/machine.h"
#include "weft/devices/program_cache.h"
#include "weft/target/rules.h"

namespace weft {

using operators::axes_of;
using operators::PlainArray;
using operators::PlainNest;

namespace {

/// What the axes' names stand for in this call.
struct Extents {
  std::map<std::string, std::int64_t> of;
  Dims batch;

  std::int64_t batches() const {
    std::int64_t n = 1;
    for (std::int64_t b : batch) n *= b;
    return n;
  }
  Dims shape(std::string_view axes) const {
    Dims out = batch;
    for (const std::string& axis : axes_of(axes)) out.push_back(of.at(axis));
    return out;
  }
  /// Axes with a batch of several as one in front.
  Dims flat(std::string_view axes) const {
    Dims out;
    if (batches() != 1) out.push_back(batches());
    for (const std::string& axis : axes_of(axes)) out.push_back(of.at(axis));
    return out;
  }
};

[[noreturn]] void wrong_shapes(const char* name, const std::vector<PlainArray>& operands,
                               std::span<const NDArray> arrays) {
  std::vector<std::string> given, legal;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    given.push_back(cat(operands[k].name, " of shape ", to_string(arrays[k].shape())));
    legal.push_back(cat(operands[k].name, " (..., ", join(axes_of(operands[k].axes)), ")"));
  }
  throw Error(ErrorKind::shape, cat("array.", name, ".shape"),
              cat(name, " of ", join(given, " and ")))
      .note(cat("legal: ", join(legal, " and "), "; equal names and ... are equal extents"));
}

Extents extents_of(const char* name, const std::vector<PlainArray>& operands,
                   std::span<const NDArray> arrays) {
  Extents out;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::vector<std::string> axes = axes_of(operands[k].axes);
    const Dims& shape = arrays[k].shape();
    const int front = shape.size() - static_cast<int>(axes.size());
    if (front < 0) wrong_shapes(name, operands, arrays);
    Dims batch;
    for (int i = 0; i < front; ++i) batch.push_back(shape[i]);
    if (k == 0) out.batch = batch;
    bool equal = batch == out.batch;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::int64_t n = shape[front + static_cast<int>(i)];
      equal = equal && out.of.emplace(axes[i], n).first->second == n;
    }
    if (!equal) wrong_shapes(name, operands, arrays);
  }
  return out;
}

runtime::CallArg argument(const NDArray& a, const Dims& shape) {
  runtime::CallArg arg;
  arg.storage = a.handle().get();
  arg.byte_offset = static_cast<runtime::Bytes>(a.offset() * elem_bytes(a.elem()));
  arg.dtype = a.dtype();
  arg.shape.assign(shape.begin(), shape.end());
  return arg;
}

/// `part`: 0 for the operator itself, k + 1 for the gradient of operand k.
NDArray run(const char* name, std::int64_t part, const std::vector<PlainArray>& operands,
            const std::vector<PlainNest>& nests, std::span<const NDArray> arrays) {
  const Extents extents = extents_of(name, operands, arrays);
  const Ref<Device>& device = arrays[0].device();
  const Elem elem = arrays[0].elem();
  for (const NDArray& a : arrays) {
    check_same_device(arrays[0], a, name);
    if (is_real_float(a.elem()) && a.elem() == elem) continue;
    throw Error(ErrorKind::dtype, cat("array.", name, ".type"),
                cat(name, " of ", describe(arrays[0]), " and ", describe(a)))
        .note("legal: arrays of one floating type")
        .help("convert with astype");
  }
  const NDArray out = NDArray::empty(device, elem, extents.shape(nests.back().to.axes));
  if (out.size() == 0) return out;
  const TargetInfo* info = target_info_of(*device);
  if (!info) refuse_remote(device, name);
  operators::PlainSpec spec;
  spec.type = std::string(name_of(elem));
  spec.sums = std::string(name_of(arithmetic_elem(elem)));
  spec.batch = extents.batches() != 1;
  ProgramKey key(name, {part, static_cast<std::int64_t>(elem), spec.batch});
  if (!info->symbolic_shapes) {
    if (spec.batch) spec.extents.emplace_back("", extents.batches());
    spec.extents.insert(spec.extents.end(), extents.of.begin(), extents.of.end());
    for (const auto& [axis, n] : spec.extents) key.add(n);
  }
  const Ref<runtime::Function> function =
      built_program(device, key, [&] { return operators::plain_program(operands, nests, spec); });
  std::vector<NDArray> held;  // until the launch is in order
  std::vector<runtime::CallArg> args;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    held.push_back(arrays[k].contiguous());
    args.push_back(argument(held.back(), extents.flat(operands[k].axes)));
  }
  args.push_back(argument(out, extents.flat(nests.back().to.axes)));
  runtime::Event event = function->call(args);
  if (device->info().kind != runtime::DeviceKind::hardware) event.wait();
  return out;
}

}  // namespace

NDArray plain_run(const operators::PlainOperator& op, std::span<const NDArray> operands) {
  return run(op.name, 0, op.operands, op.nests, operands);
}

NDArray plain_gradient(const operators::PlainOperator& op, std::size_t k,
                       std::span<const NDArray> operands, const NDArray& out, const NDArray& g) {
  std::vector<PlainArray> names = op.operands;
  std::vector<NDArray> arrays(operands.begin(), operands.end());
  for (const char* name : {"out", "g"}) names.push_back({name, op.nests.back().to.axes});
  arrays.insert(arrays.end(), {out, g});
  return run(op.name, static_cast<std::int64_t>(k) + 1, names, op.gradients[k], arrays);
}

}  // namespace weft
