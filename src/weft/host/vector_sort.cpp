// SPDX-License-Identifier: Apache-2.0
// hwy::Sorter of libhwy_contrib, opened at run time: the symbols of the C++ class itself, which its
// versions from 1.0 on share.

#include "weft/host/vector_sort.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <type_traits>

#include "weft/base/fork_safe_mutex.h"
#include "weft/base/text.h"

namespace weft {

namespace {

struct Order {};  // hwy::SortAscending and hwy::SortDescending are empty
template <typename T>
using SortFn = void (*)(const void* sorter, T* keys, std::size_t n, Order);

/// The library, if it has the class and this needs no workspace of its own.
struct Library {
  void* handle = dlopen("libhwy_contrib.so.1", RTLD_NOW | RTLD_LOCAL);
  void* sorter = nullptr;  // the class' one member

  Library() {
    void* make = handle ? dlsym(handle, "_ZN3hwy6SorterC1Ev") : nullptr;
    if (make) reinterpret_cast<void (*)(void*)>(make)(&sorter);
    // A sorter with a workspace serves one thread at a time only.
    if (!make || sorter) handle = nullptr;
  }
};

const Library& library() {
  static const Library all;
  return all;
}

template <typename T>
constexpr char letter() {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? 'f' : 'd';
  else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? 's' : 't';
  else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? 'i' : 'j';
  else if constexpr (std::is_same_v<T, long>) return 'l';
  else if constexpr (std::is_same_v<T, unsigned long>) return 'm';
  else return std::is_signed_v<T> ? 'x' : 'y';
}

/// The library is opened under a lock that fork() waits for: a child that is forked while another
/// thread makes a local static waits for that thread, which it does not have.
ForkSafeMutex opening;

template <typename T>
SortFn<T> find(const char* order) {
  if (!library().handle) return nullptr;
  if constexpr (std::is_same_v<T, double>) {  // not on all processors
    void* has = dlsym(library().handle, "_ZN3hwy6Sorter11HaveFloat64Ev");
    if (!has || !reinterpret_cast<bool (*)()>(has)()) return nullptr;
  }
  const std::string name =
      cat("_ZNK3hwy6SorterclEP", letter<T>(),
          std::is_same_v<std::size_t, unsigned long> ? 'm' : 'j', "NS_", order, "E");
  return reinterpret_cast<SortFn<T>>(dlsym(library().handle, name.c_str()));
}

/// Zen 3 and 4 store compressed vectors by microcode, which the library's partitions of 512 bits
/// take for keys of 4 bytes: digits take a fifth of the time then.
bool stores_compressed_slowly() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  static const bool slow = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f");
  }();
  return slow;
#else
  return false;
#endif
}

template <typename T>
SortFn<T> routine(bool descending) {
  static std::atomic<bool> known{false};
  static SortFn<T> up = nullptr, down = nullptr;
  if (!known.load(std::memory_order_acquire)) {
    std::lock_guard lock(opening);
    if (!known.load(std::memory_order_relaxed)) {
      up = find<T>("13SortAscending"), down = find<T>("14SortDescending");
      known.store(true, std::memory_order_release);
    }
  }
  return descending ? down : up;
}

}  // namespace

template <typename T>
bool vector_sort(T* data, std::int64_t n, bool descending) {
  if constexpr (sizeof(T) == 1) {
    return false;
  } else {
    constexpr std::int64_t kNetwork = 256;  // up to here the library exchanges and parts nothing
    if (sizeof(T) <= 4 && n > kNetwork && stores_compressed_slowly()) return false;
    const SortFn<T> sort = routine<T>(descending);
    if (sort) sort(&library().sorter, data, static_cast<std::size_t>(n), Order{});
    return sort != nullptr;
  }
}

template bool vector_sort(std::int8_t*, std::int64_t, bool);
template bool vector_sort(std::uint8_t*, std::int64_t, bool);
template bool vector_sort(std::int16_t*, std::int64_t, bool);
template bool vector_sort(std::uint16_t*, std::int64_t, bool);
template bool vector_sort(std::int32_t*, std::int64_t, bool);
template bool vector_sort(std::uint32_t*, std::int64_t, bool);
template bool vector_sort(std::int64_t*, std::int64_t, bool);
template bool vector_sort(std::uint64_t*, std::int64_t, bool);
template bool vector_sort(float*, std::int64_t, bool);
template bool vector_sort(double*, std::int64_t, bool);

}  // namespace weft
