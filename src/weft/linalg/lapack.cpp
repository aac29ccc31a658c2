// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/lapack.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "weft/base/fork_safe_mutex.h"

namespace weft::linalg {

namespace {

constexpr const char* kLibraries[] = {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so",
                                      "liblapack.so",     "libmkl_rt.so.2", "libflexiblas.so.3"};

void* opened(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

/// The kernels that OpenBLAS should take where it did not know this processor's model, which came
/// after it, and took those of its oldest one; null where it did, or whoever runs the program
/// chose.
const char* better_kernels(void* library) {
#if defined(__x86_64__)
  using Name = char*();
  auto* name = reinterpret_cast<Name*>(dlsym(library, "openblas_get_corename"));
  if (!name || std::getenv("OPENBLAS_CORETYPE")) return nullptr;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return nullptr;
  constexpr std::string_view kWithVectors[] = {"haswell", "zen", "skylakex", "cooperlake",
                                               "sapphirerapids"};
  std::string taken = name();
  std::transform(taken.begin(), taken.end(), taken.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (std::count(std::begin(kWithVectors), std::end(kWithVectors), taken)) return nullptr;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? "SkylakeX" : "Haswell";
#else
  (void)library;
  return nullptr;
#endif
}

}  // namespace

void* lapack() {
  static void* handle = [] {
    for (const char* name : kLibraries) {
      void* h = opened(name);
      if (!h) continue;
      const char* const kernels = better_kernels(h);
      if (!kernels) return h;
      // It reads the choice while it is loaded. Where others hold it, it stays as it is.
      dlclose(h);
      setenv("OPENBLAS_CORETYPE", kernels, 1);
      h = opened(name);
      unsetenv("OPENBLAS_CORETYPE");
      if (h) return h;
    }
    return static_cast<void*>(nullptr);
  }();
  return handle;
}

namespace {

/// The library's own number of threads, which all who call it share.
struct Threads {
  int (*get)() = nullptr;
  void (*set)(int) = nullptr;
  ForkSafeMutex mutex;
  int users = 0, before = 0;

  Threads() {
    if (!lapack()) return;
    get = reinterpret_cast<int (*)()>(dlsym(lapack(), "openblas_get_num_threads"));
    set = reinterpret_cast<void (*)(int)>(dlsym(lapack(), "openblas_set_num_threads"));
  }
};
Threads& threads() {
  static Threads all;
  return all;
}

}  // namespace

OneThread::OneThread(std::int64_t rows) {
  constexpr std::int64_t kFew = 128;
  if (rows > kFew) return;
  Threads& all = threads();
  if (!all.get || !all.set) return;
  const std::lock_guard hold(all.mutex);
  if (all.users == 0) {
    all.before = all.get();
    if (all.before <= 1) return;
    all.set(1);
  }
  ++all.users;
  counted_ = true;
}

OneThread::~OneThread() {
  if (!counted_) return;
  Threads& all = threads();
  const std::lock_guard hold(all.mutex);
  if (--all.users == 0) all.set(all.before);
}

void lapack_absent(const char* name) {
  std::vector<std::string> searched(std::begin(kLibraries), std::end(kLibraries));
  throw Error(ErrorKind::device, "array.lapack.absent", cat("no LAPACK library offers ", name))
      .note("searched: " + join(searched))
      .help("install liblapack3 or libopenblas0");
}

void need_matrix(const NDArray& a, std::string_view name, bool square) {
  if (a.ndim() < 2 || (square && a.shape()[a.ndim() - 1] != a.shape()[a.ndim() - 2])) {
    throw Error(ErrorKind::shape, cat("array.", name, ".shape"),
                cat(name, " needs ", square ? "square matrices" : "matrices",
                    " in the last two axes, got ", describe(a)));
  }
  if (!is_inexact(a.elem())) {
    throw Error(ErrorKind::dtype, cat("array.", name, ".dtype"),
                cat(name, " is not defined for ", name_of(a.elem())));
  }
}

NDArray columns(const NDArray& a) {
  NDArray t = a.transpose(-2, -1);
  return t.astype(wide_of(a.elem()));
}

std::int64_t batch_of(const NDArray& a) {
  std::int64_t n = 1;
  for (int i = 0; i + 2 < a.ndim(); ++i) n *= a.shape()[i];
  return n;
}

Dims batch_shape(const NDArray& a, std::initializer_list<std::int64_t> tail) {
  Dims out(a.shape().data(), a.ndim() - 2);
  for (std::int64_t n : tail) out.push_back(n);
  return out;
}

}  // namespace weft::linalg
