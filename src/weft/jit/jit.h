// SPDX-License-Identifier: Apache-2.0
#pragma once
// LLVM text in, function pointers out. libLLVM (15 to 19) is opened at run time at the first
// compile through its C API; nothing here needs its headers. Compiling gives a relocatable object;
// a small loader makes it callable, so objects from the disk cache load without LLVM.
//
// Text rules (measured): emit conservative text that 15 to 19 parse; opaque `ptr`; set `contract`
// on floating arithmetic that may fuse; emit vectors yourself; accumulators as SSA values.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/ref.h"

namespace weft::jit {

struct Availability {
  bool available = false;
  int major = 0;       // 19
  std::string path;    // of the library opened
  std::string reason;  // what was searched, when not available
};

/// Which library WEFT_LLVM asks for: a major number, "oldest", or nothing, which is the newest.
std::string wanted_llvm();
/// Opens libLLVM at the first call (12 to 170 ms). Never throws.
const Availability& llvm();
/// Whether llvm() has been called with success: true means that the library is loaded.
bool llvm_opened();

struct CompileOptions {
  std::string passes;  // new pass manager text, e.g. "default<O2>", "function(sroa)"; empty: none
  int codegen_level = 2;          // 0 to 3
  std::string cpu = "host";       // LLVM's name of the processor
  std::string features = "host";  // "+avx2,-fma"
  std::string triple = "host";
};

/// An ELF relocatable object. Throws Error(emit, "jit.llvm.absent" | "jit.llvm.parse" |
/// "jit.llvm.emit").
std::string compile_to_object(std::string_view llvm_text, const CompileOptions& options = {});
/// Assembly text of the same.
std::string compile_to_assembly(std::string_view llvm_text, const CompileOptions& options = {});

/// Names what compiled code depends on: processor model and feature bits, and the library that
/// WEFT_LLVM asks for. Does not open LLVM.
std::string host_fingerprint();

/// Loaded machine code; stays mapped while a Ref lives.
class Code : public RefCounted {
 public:
  ~Code() override;
  /// Address of a global function or object; null when absent.
  void* find(std::string_view symbol) const;
  template <typename F>
  F* function(std::string_view symbol) const {
    return reinterpret_cast<F*>(find(symbol));
  }
  std::size_t size_bytes() const;

 private:
  friend Ref<Code> load_object(std::string_view, const std::function<void*(std::string_view)>&);
  struct Image;
  std::unique_ptr<Image> image_;
  Code();
};

/// Maps and relocates an object. External symbols are asked of `resolve` first, then of a short
/// list of libc and libm functions that code generators call (memcpy, memset, fmaf, expf ...), then
/// of the C library's vector mathematics.
/// Throws Error(emit, "jit.load.symbol" | "jit.load.format").
Ref<Code> load_object(std::string_view object,
                      const std::function<void*(std::string_view)>& resolve = {});

/// compile_to_object, then load_object.
Ref<Code> compile(std::string_view llvm_text, const CompileOptions& options = {},
                  const std::function<void*(std::string_view)>& resolve = {});

}  // namespace weft::jit
