// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a tensor program of f32 arrays through the one front door.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/ir/text.h"
#include "weft/runtime/module.h"
#include "weft/target/backend.h"

namespace weft::wse {

using Floats = std::vector<float>;

/// Builds `text` for `target`, runs it on tensors of the given shapes; the last one is the result.
inline std::string run(const std::string& text, const std::string& target,
                       std::vector<std::pair<std::vector<std::int64_t>, Floats*>> tensors) {
  ir::IRModule m = ir::parse_module(text);
  Ref<runtime::Module> module = build(m, target);
  Ref<runtime::Device> device = open_device(target);
  runtime::Function f(module, module->plans()[0].name, device);
  std::vector<Ref<runtime::Storage>> keep;
  std::vector<runtime::CallArg> args;
  for (auto& [shape, values] : tensors) {
    keep.push_back(device->allocate(values->size() * 4));
    device->upload(*keep.back(), 0, values->data(), values->size() * 4);
    runtime::CallArg a;
    a.storage = keep.back().get();
    a.dtype = dtypes::float32;
    a.shape = shape;
    args.push_back(a);
  }
  f.call(args).wait();
  device->download(tensors.back().second->data(), *keep.back(), 0,
                   tensors.back().second->size() * 4);
  return module->source();
}

inline Floats random_floats(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  Floats v(n);
  for (float& x : v) x = std::uniform_real_distribution<float>(-1, 1)(rng);
  return v;
}

}  // namespace weft::wse
