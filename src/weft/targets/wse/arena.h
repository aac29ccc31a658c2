// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of a fabric's PEs. What one PE needs is made at about the same time and lies together, in
// large pages where the system has them: a rectangle of thousands of PEs is visited in no order
// that small pages or caches could follow. Nothing is given back before the fabric ends.

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <utility>
#include <vector>

namespace weft::wse {

class Arena final : public std::pmr::memory_resource {
 public:
  Arena() = default;
  ~Arena() override;
  Arena(const Arena&) = delete;

  std::size_t bytes() const { return bytes_; }
  template <class T, class... Args>
  T* make(Args&&... args) {
    return new (allocate(sizeof(T), alignof(T) > 8 ? alignof(T) : 8))
        T(std::forward<Args>(args)...);
  }

 private:
  void* do_allocate(std::size_t bytes, std::size_t align) override;
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  std::vector<void*> chunks_;
  std::byte *at_ = nullptr, *end_ = nullptr;
  std::size_t chunk_ = std::size_t{1} << 15, bytes_ = 0;
};

/// An object in an arena: destroyed by its owner, its memory stays.
template <class T>
struct Destroy {
  void operator()(T* object) const { object->~T(); }
};
template <class T>
using Placed = std::unique_ptr<T, Destroy<T>>;

}  // namespace weft::wse
