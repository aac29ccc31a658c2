// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's functions, found at run time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include "weft/base/error.h"

namespace weft::cuda {

using Pointer = unsigned long long;  // CUdeviceptr
using Handle = void*;

/// CUtensorMap.
struct alignas(64) TensorMap {
  char bytes[128];
};

/// As cuda.h has them: one attribute, whether the launch may begin before the one ahead has ended.
struct LaunchAttribute {
  int id = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  char pad[4] = {};
  alignas(8) char value[64] = {1};
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned count;
};

struct Driver {
  void* library = nullptr;
  std::string reason;
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*memory)(std::size_t*, int) = nullptr;
  int (*retain)(Handle*, int) = nullptr;
  int (*set_current)(Handle) = nullptr;
  int (*synchronize)() = nullptr;
  int (*alloc)(Pointer*, std::size_t) = nullptr;
  int (*free)(Pointer) = nullptr;
  int (*to_device)(Pointer, const void*, std::size_t) = nullptr;
  int (*to_host)(void*, Pointer, std::size_t) = nullptr;
  int (*within)(Pointer, Pointer, std::size_t, Handle) = nullptr;
  int (*load)(Handle*, const void*) = nullptr;
  int (*unload)(Handle) = nullptr;
  int (*function)(Handle*, Handle, const char*) = nullptr;
  int (*set_attribute)(Handle, int, int) = nullptr;
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                Handle, void**, void**) = nullptr;
  int (*launch_early)(const LaunchConfig*, Handle, void**, void**) = nullptr;
  bool records_early = false;  // launches that may begin early, in graphs
  int (*event_create)(Handle*, unsigned) = nullptr;
  int (*event_destroy)(Handle) = nullptr;
  int (*event_record)(Handle, Handle) = nullptr;
  int (*event_wait)(Handle) = nullptr;
  int (*event_elapsed)(float*, Handle, Handle) = nullptr;
  int (*encode)(TensorMap*, int, unsigned, Pointer, const std::uint64_t*, const std::uint64_t*,
                const unsigned*, const unsigned*, int, int, int, int) = nullptr;
  int (*stream_create)(Handle*, unsigned) = nullptr;
  int (*stream_destroy)(Handle) = nullptr;
  int (*capture_begin)(Handle, int) = nullptr;
  int (*capture_end)(Handle, Handle*) = nullptr;
  int (*graph_nodes)(Handle, Handle*, std::size_t*) = nullptr;
  int (*graph_instantiate)(Handle*, Handle, unsigned long long) = nullptr;
  int (*graph_launch)(Handle, Handle) = nullptr;
  int (*graph_destroy)(Handle) = nullptr;
  int (*graph_exec_destroy)(Handle) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*error_text)(int, const char**) = nullptr;

  Driver() {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      reason = "searched libcuda.so.1 on the loader's path: the NVIDIA driver is not installed";
      return;
    }
    bool good = find("cuInit", init) && find("cuDeviceGetCount", count) &&
                find("cuDeviceGet", get) && find("cuDeviceGetName", name) &&
                find("cuDeviceGetAttribute", attribute) && find("cuDeviceTotalMem_v2", memory) &&
                find("cuDevicePrimaryCtxRetain", retain) && find("cuCtxSetCurrent", set_current) &&
                find("cuCtxSynchronize", synchronize) && find("cuMemAlloc_v2", alloc) &&
                find("cuMemFree_v2", free) && find("cuMemcpyHtoD_v2", to_device) &&
                find("cuMemcpyDtoH_v2", to_host) && find("cuMemcpyDtoDAsync_v2", within) &&
                find("cuModuleLoadData", load) && find("cuModuleUnload", unload) &&
                find("cuModuleGetFunction", function) &&
                find("cuFuncSetAttribute", set_attribute) && find("cuLaunchKernel", launch) &&
                find("cuEventCreate", event_create) && find("cuEventDestroy_v2", event_destroy) &&
                find("cuEventRecord", event_record) && find("cuEventSynchronize", event_wait) &&
                find("cuEventElapsedTime", event_elapsed) && find("cuGetErrorName", error_name) &&
                find("cuGetErrorString", error_text) && find("cuStreamCreate", stream_create) &&
                find("cuStreamDestroy_v2", stream_destroy) &&
                find("cuStreamBeginCapture_v2", capture_begin) &&
                find("cuStreamEndCapture", capture_end) && find("cuGraphGetNodes", graph_nodes) &&
                find("cuGraphInstantiateWithFlags", graph_instantiate) &&  // from 11.4 on
                find("cuGraphLaunch", graph_launch) && find("cuGraphDestroy", graph_destroy) &&
                find("cuGraphExecDestroy", graph_exec_destroy);
    if (!good) {
      reason = "libcuda.so.1 lacks a function that is needed";
      library = nullptr;
      return;
    }
    find("cuTensorMapEncodeTiled", encode);  // drivers from 12.0 on
    find("cuLaunchKernelEx", launch_early);
    int (*get_version)(int*) = nullptr;
    int version = 0;
    records_early = find("cuDriverGetVersion", get_version) && get_version(&version) == 0 &&
                    version >= 12030;  // graphs have such edges from 12.3 on
    if (int code = init(0); code != 0) {
      reason = cat("libcuda.so.1 is present but cuInit says ", text(code));
      library = nullptr;
    }
  }
  template <typename F>
  bool find(const char* symbol, F& f) {
    f = reinterpret_cast<F>(dlsym(library, symbol));
    return f != nullptr;
  }
  std::string text(int code) const {
    const char *n = nullptr, *t = nullptr;
    error_name(code, &n);
    error_text(code, &t);
    return cat(n ? n : "error", " (", code, "): ", t ? t : "");
  }
  void check(int code, std::string_view what) const {
    if (code == 0) return;
    if (code == 2)
      throw Error(ErrorKind::memory, "device.memory.exhausted", cat(what, ": ", text(code)));
    throw Error(ErrorKind::device, "cuda.driver", cat(what, " failed: ", text(code)));
  }
};

inline const Driver& driver() {
  static const Driver instance;
  return instance;
}

}  // namespace weft::cuda
