// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of a fabric's PEs. What one PE needs is made at about the same time and lies together, in
// large pages where the system has them: a rectangle of thousands of PEs is visited in no order
// that small pages or caches could follow. Nothing is given back before the fabric ends.

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// A vector in an arena, which it is told when it grows. 16 bytes.
template <class T>
class ArenaVector {
 public:
  ArenaVector() = default;
  ArenaVector(const ArenaVector&) = delete;
  ~ArenaVector() { std::destroy_n(data_, size_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t k) { return data_[k]; }
  const T& operator[](std::size_t k) const { return data_[k]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void reserve(std::size_t n, Arena& arena) {
    if (n <= capacity_) return;
    T* data = static_cast<T*>(arena.allocate(n * sizeof(T), alignof(T)));
    std::uninitialized_move_n(data_, size_, data);
    data_ = data;
    capacity_ = static_cast<std::uint32_t>(n);
  }
  /// What is new is value-initialized.
  void resize(std::size_t n, Arena& arena) {
    if (n > capacity_) reserve(std::max<std::size_t>(n, capacity_ * 2), arena);
    if (n > size_) std::uninitialized_value_construct_n(data_ + size_, n - size_);
    size_ = static_cast<std::uint32_t>(n);
  }
  /// A new last element, value-initialized. Its members are written where they stay: a copy of
  /// members just written would wait until they have reached the cache.
  T& add(Arena& arena) {
    resize(size_ + std::size_t{1}, arena);
    return back();
  }

 private:
  T* data_ = nullptr;
  std::uint32_t size_ = 0, capacity_ = 0;
};

}  // namespace weft::wse
