// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/nvrtc.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "weft/base/error.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/base/packaged_library.h"
#include "weft/runtime/background.h"
#include "weft/runtime/cache.h"

namespace weft::cuda {

namespace {

using Program = void*;

constexpr char kPackaged[] =
    "nvidia/*/lib/libnvrtc.so.1?";  // what pip install nvidia-cuda-nvrtc brings

struct Nvrtc {
  void* library = nullptr;
  int major = 0, minor = 0;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  const char* (*error)(int) = nullptr;

  /// Whether it can leave out the declarations of textures and of the run-time library: the same
  /// cubin, 5 of 27 to 33 ms sooner.
  bool minimal() const { return major > 12 || (major == 12 && minor >= 4); }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                                 "/usr/local/cuda/lib64/libnvrtc.so"};
    return all;
  }

  Nvrtc() {
    for (const std::string& name : names()) {
      library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library) break;
    }
    if (!library) library = packaged();
    if (!library) return;
    bool good = find("nvrtcVersion", version) && find("nvrtcCreateProgram", create) &&
                find("nvrtcDestroyProgram", destroy) && find("nvrtcCompileProgram", compile) &&
                find("nvrtcGetProgramLogSize", log_size) && find("nvrtcGetProgramLog", log) &&
                find("nvrtcGetCUBINSize", cubin_size) && find("nvrtcGetCUBIN", cubin) &&
                find("nvrtcGetErrorString", error);
    if (!good) library = nullptr;
    else version(&major, &minor);
  }
  /// Of pip's package. NVRTC opens its built-in functions by name, which the loader does not find
  /// there unless they are open already.
  static void* packaged() {
    const auto folder = [](const std::string& file) { return file.substr(0, file.rfind('/')); };
    for (const std::string& file : packaged_libraries(kPackaged)) {
      for (const std::string& beside : packaged_libraries("nvidia/*/lib/libnvrtc-builtins.so.1*")) {
        if (folder(beside) == folder(file)) dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
      }
      if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
    return nullptr;
  }
  template <typename F>
  bool find(const char* name, F& f) {
    f = reinterpret_cast<F>(dlsym(library, name));
    return f != nullptr;
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc instance;
  return instance;
}

}  // namespace

std::string nvrtc_searched() {
  return cat(join(Nvrtc::names()), " on the loader's path, ", kPackaged, " in Python's packages");
}

bool nvrtc_available() { return nvrtc().library != nullptr; }

std::string nvrtc_version() {
  return nvrtc_available() ? cat(nvrtc().major, ".", nvrtc().minor) : "";
}

namespace {

runtime::CacheKey key_of(const std::string& text, const std::string& arch) {
  return runtime::CacheKey::of(cat("cuda 1\n", nvrtc_version(), "\n", arch, "\n", text));
}

std::string compile_fresh(const Nvrtc& lib, const std::string& text, const std::string& arch,
                          std::string& log) {
  Program program = nullptr;
  auto check = [&](int code, const char* what) {
    if (code != 0)
      throw Error(ErrorKind::emit, "cuda.nvrtc.failed", cat(what, " failed: ", lib.error(code)));
  };
  check(lib.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  struct Guard {
    const Nvrtc& lib;
    Program& program;
    ~Guard() { lib.destroy(&program); }
  } guard{lib, program};
  std::string gpu = "--gpu-architecture=" + arch;
  const char* options[] = {gpu.c_str(), "--std=c++17", "-default-device", "-minimal"};
  int code = lib.compile(program, lib.minimal() ? 4 : 3, options);
  std::size_t size = 0;
  lib.log_size(program, &size);
  log.resize(size);
  if (size > 0) lib.log(program, log.data());
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (code != 0) {
    throw Error(ErrorKind::emit, "cuda.nvrtc.refused",
                cat("NVRTC refused the generated CUDA C for ", arch, ": ", lib.error(code)))
        .note(log.substr(0, 4000));
  }
  check(lib.cubin_size(program, &size), "nvrtcGetCUBINSize");
  if (size == 0) {
    throw Error(ErrorKind::emit, "cuda.nvrtc.arch",
                cat("\"", arch, "\" names no real architecture"))
        .help("use sm_90, not compute_90");
  }
  std::string cubin(size, '\0');
  check(lib.cubin(program, cubin.data()), "nvrtcGetCUBIN");
  return cubin;
}

}  // namespace

Compiled compile(const std::string& text, const std::string& arch) {
  const Nvrtc& lib = nvrtc();
  if (!lib.library) {
    throw Error(
        ErrorKind::device, "cuda.nvrtc.absent",
        cat("NVIDIA's run-time compiler is needed to build for ", arch, " and was not found"))
        .note(cat("searched: ", nvrtc_searched()))
        .help("pip install nvidia-cuda-nvrtc, or install the CUDA toolkit");
  }
  Compiled out;
  out.cubin = runtime::FileCache::shared().get(
      key_of(text, arch), [&] { return compile_fresh(lib, text, arch, out.log); });
  return out;
}

std::optional<std::string> kept_cubin(const std::string& text, const std::string& arch) {
  try {
    return runtime::FileCache::shared().load(key_of(text, arch));
  } catch (const Error&) {
    return std::nullopt;  // damaged: compile() makes it again
  }
}

namespace {

/// Texts that are compiled now, by what they are kept under.
struct Running {
  ForkSafeMutex mutex;
  std::map<std::string, std::shared_future<std::string>> texts;
};
Running& running() {
  static auto& all = *new Running;  // threads may outlive static objects
  return all;
}

}  // namespace

std::shared_future<std::string> compile_beside(const std::string& text, const std::string& arch) {
  nvrtc();  // opened here: at the process's end it goes after its users
  // A forked child has the entries but not the threads.
  const std::string key = cat(key_of(text, arch).text(), " ", getpid());
  // Programs of different sizes often have one text, and threads ask for them at once.
  std::unique_lock lock(running().mutex);
  if (auto it = running().texts.find(key); it != running().texts.end()) return it->second;
  auto task = std::make_shared<std::packaged_task<std::string()>>(
      [text, arch] { return compile(text, arch).cubin; });
  std::shared_future<std::string> out = task->get_future().share();
  running().texts.emplace(key, out);
  lock.unlock();
  runtime::run_beside([task, key] {
    (*task)();
    std::lock_guard held(running().mutex);
    running().texts.erase(key);
  });
  return out;
}

}  // namespace weft::cuda
