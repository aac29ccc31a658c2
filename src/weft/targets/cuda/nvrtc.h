// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's run-time compiler, opened when first needed: CUDA C text to a cubin. Needs no card.

#include <future>
#include <optional>
#include <string>

namespace weft::cuda {

/// Where the compiler was looked for, for messages.
std::string nvrtc_searched();
bool nvrtc_available();
/// "13.0", or "" where it is absent.
std::string nvrtc_version();

struct Compiled {
  std::string cubin, log;
};

/// Throws Error(device, "cuda.nvrtc.absent") or Error(emit, "cuda.nvrtc.refused") with the
/// compiler's log. Results are kept in the on-disk kernel cache.
Compiled compile(const std::string& text, const std::string& arch);
/// What the on-disk cache has.
std::optional<std::string> kept_cubin(const std::string& text, const std::string& arch);
/// compile() on another thread; a text that is being compiled already is compiled once.
std::shared_future<std::string> compile_beside(const std::string& text, const std::string& arch);

/// The format of a binary that the device compiles when it loads it: its text is the source, its
/// architecture stands in the metadata.
inline constexpr std::string_view kTextFormat = "cuda-c";

}  // namespace weft::cuda
