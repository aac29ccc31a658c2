// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/math.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>

#include "weft/base/error.h"
#include "weft/base/packaged_library.h"
#include "weft/base/text.h"

namespace weft::cuda {

namespace {

void* opened(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  for (const char* name : names) {  // NVIDIA's packages for pip
    for (const std::string& file : packaged_libraries(cat("nvidia/*/lib/", name))) {
      if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

/// cudaDataType and directions.
constexpr int kReal = 0, kRealWide = 1, kComplex = 4, kComplexWide = 5;
constexpr int kForward = -1, kInverse = 1;

struct Cufft {
  void* library = opened(
      {"libcufft.so.12", "libcufft.so.11", "libcufft.so", "/usr/local/cuda/lib64/libcufft.so"});
  int (*create)(int*) = nullptr;
  int (*destroy)(int) = nullptr;
  int (*make)(int, int, long long*, long long*, long long, long long, int, long long*, long long,
              long long, int, long long, std::size_t*, int) = nullptr;
  int (*exec)(int, void*, void*, int) = nullptr;

  Cufft() {
    if (!library) return;
    bool good = find("cufftCreate", create) && find("cufftDestroy", destroy) &&
                find("cufftXtMakePlanMany", make) && find("cufftXtExec", exec);
    if (!good) library = nullptr;
  }
  template <typename F>
  bool find(const char* name, F& f) {
    f = reinterpret_cast<F>(dlsym(library, name));
    return f != nullptr;
  }
};

const Cufft& cufft() {
  static const Cufft one;
  return one;
}

void check(int code, std::string_view what) {
  if (code == 0) return;
  // CUFFT_ALLOC_FAILED and CUSOLVER_STATUS_ALLOC_FAILED
  if (code == 2)
    throw Error(ErrorKind::memory, "device.memory.exhausted",
                cat(what, " cannot allocate its workspace on the card"));
  throw Error(ErrorKind::device, "cuda.driver", cat(what, " failed with status ", code));
}

constexpr int kLower = 0, kNoTranspose = 0;  // cublasFillMode_t, cublasOperation_t
using Handle = void*;
using Data = void*;

/// The routines of one element type.
struct Routines {
  int (*potrf_size)(Handle, int, int, Data, int, int*) = nullptr;
  int (*potrf)(Handle, int, int, Data, int, Data, int, Data) = nullptr;
  int (*potrf_batched)(Handle, int, int, Data, int, Data, int) = nullptr;
  int (*getrf_size)(Handle, int, int, Data, int, int*) = nullptr;
  int (*getrf)(Handle, int, int, Data, int, Data, Data, Data) = nullptr;
  int (*getrs)(Handle, int, int, int, Data, int, Data, Data, int, Data) = nullptr;
  int (*geqrf_size)(Handle, int, int, Data, int, int*) = nullptr;
  int (*geqrf)(Handle, int, int, Data, int, Data, Data, int, Data) = nullptr;
  int (*orgqr_size)(Handle, int, int, int, Data, int, Data, int*) = nullptr;
  int (*orgqr)(Handle, int, int, int, Data, int, Data, Data, int, Data) = nullptr;
  int (*syevd_size)(Handle, int, int, int, Data, int, Data, int*) = nullptr;
  int (*syevd)(Handle, int, int, int, Data, int, Data, Data, int, Data) = nullptr;
  int (*gesvdj_size)(Handle, int, int, int, int, Data, int, Data, Data, int, Data, int, int*,
                     Handle) = nullptr;
  int (*gesvdj)(Handle, int, int, int, int, Data, int, Data, Data, int, Data, int, Data, int, Data,
                Handle) = nullptr;
  int (*gesvd_size)(Handle, int, int, int*) = nullptr;
  int (*gesvd)(Handle, signed char, signed char, int, int, Data, int, Data, Data, int, Data, int,
               Data, int, Data, Data) = nullptr;
};

struct Cusolver {
  void* library = opened({"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so",
                          "/usr/local/cuda/lib64/libcusolver.so"});
  int (*create)(Handle*) = nullptr;
  int (*create_jacobi)(Handle*) = nullptr;
  std::array<Routines, 4> routines;  // by MathLibrary::Number

  Cusolver() {
    if (!library) return;
    bool good =
        find("cusolverDnCreate", create) && find("cusolverDnCreateGesvdjInfo", create_jacobi);
    constexpr char letters[] = "SDCZ";
    for (std::size_t k = 0; k < routines.size() && good; ++k) {
      const bool complex = k >= 2;
      Routines& r = routines[k];
      auto both = [&](const char* stem, auto& size, auto& work) {
        const std::string name = cat("cusolverDn", letters[k], stem);
        return find(name, work) && find(name + "_bufferSize", size);
      };
      good = both("potrf", r.potrf_size, r.potrf) && both("getrf", r.getrf_size, r.getrf) &&
             find(cat("cusolverDn", letters[k], "potrfBatched"), r.potrf_batched) &&
             find(cat("cusolverDn", letters[k], "getrs"), r.getrs) &&
             both("geqrf", r.geqrf_size, r.geqrf) &&
             both(complex ? "ungqr" : "orgqr", r.orgqr_size, r.orgqr) &&
             both(complex ? "heevd" : "syevd", r.syevd_size, r.syevd) &&
             both("gesvd", r.gesvd_size, r.gesvd) && both("gesvdj", r.gesvdj_size, r.gesvdj);
    }
    if (!good) library = nullptr;
  }
  template <typename F>
  bool find(const std::string& name, F& f) {
    f = reinterpret_cast<F>(dlsym(library, name.c_str()));
    return f != nullptr;
  }
};

const Cusolver& cusolver() {
  static const Cusolver one;
  return one;
}

/// Of one element type: all matrices of a stack at once.
struct Batched {
  int (*getrf)(Handle, int, Data, int, Data, Data, int) = nullptr;
  int (*getrs)(Handle, int, int, int, Data, int, Data, Data, int, int*, int) = nullptr;
};

struct Cublas {
  void* library = opened(
      {"libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"});
  int (*create)(Handle*) = nullptr;
  std::array<Batched, 4> routines;  // by MathLibrary::Number

  Cublas() {
    if (!library) return;
    bool good = find("cublasCreate_v2", create);
    constexpr char letters[] = "SDCZ";
    for (std::size_t k = 0; k < routines.size(); ++k) {
      const std::string stem = cat("cublas", letters[k]);
      good = good && find(stem + "getrfBatched", routines[k].getrf) &&
             find(stem + "getrsBatched", routines[k].getrs);
    }
    if (!good) library = nullptr;
  }
  template <typename F>
  bool find(const std::string& name, F& f) {
    f = reinterpret_cast<F>(dlsym(library, name.c_str()));
    return f != nullptr;
  }
};

const Cublas& cublas() {
  static const Cublas one;
  return one;
}

const Routines& routines(runtime::MathLibrary::Number type) {
  return cusolver().routines[static_cast<std::size_t>(type)];
}

Data at(const runtime::MathLibrary::Place& p) {
  return p.storage ? reinterpret_cast<Data>(p.address()) : nullptr;
}

int narrow(std::int64_t n) {
  WEFT_CHECK(n <= INT_MAX, "an extent of ", n, " for a library that counts in 32 bits");
  return static_cast<int>(n);
}
int leading(std::int64_t m) { return std::max(1, narrow(m)); }

}  // namespace

std::unique_lock<std::mutex> CardMath::in_turn() {
  before_();
  return std::unique_lock(mutex_);
}

bool CardMath::transforms() const { return cufft().library != nullptr; }
bool CardMath::factorisations() const { return cusolver().library != nullptr; }

int CardMath::plan(const Transform& t) {
  constexpr std::size_t kMost = 32;
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if (!(it->transform == t)) continue;
    plans_.splice(plans_.begin(), plans_, it);
    return it->handle;
  }
  const bool from_real = t.kind == Fft::real_forward, to_real = t.kind == Fft::real_inverse;
  const int real = t.wide ? kRealWide : kReal, complex = t.wide ? kComplexWide : kComplex;
  long long n[3], in[3], out[3];
  for (std::size_t k = 0; k < 3; ++k) n[k] = in[k] = out[k] = t.n[k];
  const std::size_t last = static_cast<std::size_t>(t.rank - 1);
  if (to_real) in[last] = n[last] / 2 + 1;
  if (from_real) out[last] = n[last] / 2 + 1;
  const Cufft& lib = cufft();
  int handle = 0;
  std::size_t bytes = 0;
  check(lib.create(&handle), "cufftCreate");
  try {
    check(lib.make(handle, t.rank, n, in, t.in_step, t.in_next, from_real ? real : complex, out,
                   t.out_step, t.out_next, to_real ? real : complex, t.count, &bytes, complex),
          cat("cufftXtMakePlanMany of ", t.count, " transforms over ", t.rank,
              " axes, the first of ", t.n[0]));
  } catch (...) {
    lib.destroy(handle);
    throw;
  }
  plans_.push_front({t, handle});
  if (plans_.size() > kMost) {
    device_.synchronize();  // its workspace may be in use
    lib.destroy(plans_.back().handle);
    plans_.pop_back();
  }
  return handle;
}

void CardMath::fft(const Transform& t, Place in, Place out) {
  const auto turn = in_turn();
  const int handle = plan(t);
  const bool back = t.kind == Fft::inverse || t.kind == Fft::real_inverse;
  check(cufft().exec(handle, at(in), at(out), back ? kInverse : kForward), "cufftXtExec");
}

bool CardMath::batches() const { return factorisations() && cublas().library != nullptr; }

void* CardMath::products() {
  if (!products_) check(cublas().create(&products_), "cublasCreate");
  return products_;
}

void CardMath::lu_of_all(Number type, std::int64_t n, std::int64_t count, Place addresses,
                         Place pivots, Place status) {
  const auto turn = in_turn();
  check(
      cublas().routines[static_cast<std::size_t>(type)].getrf(
          products(), narrow(n), at(addresses), leading(n), at(pivots), at(status), narrow(count)),
      "getrfBatched");
}

void CardMath::lu_solve_all(Number type, std::int64_t n, std::int64_t k, std::int64_t count,
                            Place addresses, Place pivots, Place b_addresses) {
  const auto turn = in_turn();
  int refused = 0;
  check(cublas().routines[static_cast<std::size_t>(type)].getrs(
            products(), kNoTranspose, narrow(n), narrow(k), at(addresses), leading(n), at(pivots),
            at(b_addresses), leading(n), &refused, narrow(count)),
        "getrsBatched");
}

void CardMath::cholesky_of_all(Number type, std::int64_t n, std::int64_t count, Place addresses,
                               Place status) {
  const auto turn = in_turn();
  check(routines(type).potrf_batched(solver(), kLower, narrow(n), at(addresses), leading(n),
                                     at(status), narrow(count)),
        "potrfBatched");
}

void* CardMath::solver() {
  if (!solver_) check(cusolver().create(&solver_), "cusolverDnCreate");
  return solver_;
}

Ref<runtime::Storage> CardMath::workspace(Number type, int elements) {
  constexpr runtime::Bytes bytes[] = {4, 8, 8, 16};
  return device_.allocate(static_cast<runtime::Bytes>(std::max(1, elements)) *
                          bytes[static_cast<std::size_t>(type)]);
}

// Workspaces go back to the device's pool at once: its next user comes later on the same stream.

void CardMath::cholesky(Number type, std::int64_t n, Place a, Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  int size = 0;
  check(r.potrf_size(solver(), kLower, narrow(n), at(a), leading(n), &size), "potrf_bufferSize");
  auto work = workspace(type, size);
  check(r.potrf(solver(), kLower, narrow(n), at(a), leading(n), at({work.get()}), size, at(status)),
        "potrf");
}

void CardMath::lu(Number type, std::int64_t n, Place a, Place pivots, Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  int size = 0;
  check(r.getrf_size(solver(), narrow(n), narrow(n), at(a), leading(n), &size), "getrf_bufferSize");
  auto work = workspace(type, size);
  check(r.getrf(solver(), narrow(n), narrow(n), at(a), leading(n), at({work.get()}), at(pivots),
                at(status)),
        "getrf");
}

void CardMath::lu_solve(Number type, std::int64_t n, std::int64_t k, Place a, Place pivots, Place b,
                        Place status) {
  const auto turn = in_turn();
  check(routines(type).getrs(solver(), kNoTranspose, narrow(n), narrow(k), at(a), leading(n),
                             at(pivots), at(b), leading(n), at(status)),
        "getrs");
}

void CardMath::qr(Number type, std::int64_t m, std::int64_t n, Place a, Place tau, Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  int size = 0;
  check(r.geqrf_size(solver(), narrow(m), narrow(n), at(a), leading(m), &size), "geqrf_bufferSize");
  auto work = workspace(type, size);
  check(r.geqrf(solver(), narrow(m), narrow(n), at(a), leading(m), at(tau), at({work.get()}), size,
                at(status)),
        "geqrf");
}

void CardMath::orthogonal(Number type, std::int64_t m, std::int64_t columns, std::int64_t k,
                          Place a, Place tau, Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  int size = 0;
  check(r.orgqr_size(solver(), narrow(m), narrow(columns), narrow(k), at(a), leading(m), at(tau),
                     &size),
        "orgqr_bufferSize");
  auto work = workspace(type, size);
  check(r.orgqr(solver(), narrow(m), narrow(columns), narrow(k), at(a), leading(m), at(tau),
                at({work.get()}), size, at(status)),
        "orgqr");
}

void CardMath::eigh(Number type, bool vectors, std::int64_t n, Place a, Place values,
                    Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  int size = 0;
  check(r.syevd_size(solver(), vectors, kLower, narrow(n), at(a), leading(n), at(values), &size),
        "syevd_bufferSize");
  auto work = workspace(type, size);
  check(r.syevd(solver(), vectors, kLower, narrow(n), at(a), leading(n), at(values),
                at({work.get()}), size, at(status)),
        "syevd");
}

void CardMath::svd(Number type, std::int64_t m, std::int64_t n, bool full, Place a, Place s,
                   Place u, Place vh, Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  int size = 0;
  check(r.gesvd_size(solver(), narrow(m), narrow(n), &size), "gesvd_bufferSize");
  auto work = workspace(type, size), superdiagonal = workspace(type, narrow(n));
  const signed char left = !u.storage ? 'N' : full ? 'A' : 'S', right = vh.storage ? 'S' : 'N';
  check(r.gesvd(solver(), left, right, narrow(m), narrow(n), at(a), leading(m), at(s), at(u),
                leading(m), at(vh), leading(n), at({work.get()}), size, at({superdiagonal.get()}),
                at(status)),
        "gesvd");
}

void CardMath::svd_jacobi(Number type, std::int64_t m, std::int64_t n, Place a, Place s, Place u,
                          Place v, Place status) {
  const auto turn = in_turn();
  const Routines& r = routines(type);
  if (!jacobi_) check(cusolver().create_jacobi(&jacobi_), "cusolverDnCreateGesvdjInfo");
  const int vectors = u.storage ? 1 : 0;
  int size = 0;
  check(r.gesvdj_size(solver(), vectors, 1, narrow(m), narrow(n), at(a), leading(m), at(s), at(u),
                      leading(m), at(v), leading(n), &size, jacobi_),
        "gesvdj_bufferSize");
  auto work = workspace(type, size);
  check(r.gesvdj(solver(), vectors, 1, narrow(m), narrow(n), at(a), leading(m), at(s), at(u),
                 leading(m), at(v), leading(n), at({work.get()}), size, at(status), jacobi_),
        "gesvdj");
}

}  // namespace weft::cuda
