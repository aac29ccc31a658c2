// SPDX-License-Identifier: Apache-2.0
#pragma once
// Intrusive shared ownership: one word per handle, count inside the object. Used where handles are
// copied on hot paths (IR nodes, storage). Counts are atomic; objects are otherwise not
// synchronised.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace weft {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) {}
  RefCounted& operator=(const RefCounted&) { return *this; }
  virtual ~RefCounted() = default;
  void add_ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      const_cast<RefCounted*>(this)->dispose();
  }
  std::uint32_t ref_count() const { return refs_.load(std::memory_order_relaxed); }

 protected:
  /// Called when the last handle goes; pools override it.
  virtual void dispose() { delete this; }

 private:
  mutable std::atomic<std::uint32_t> refs_{0};
};

template <typename T>
class Ref {
 public:
  using element_type = T;
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(T* object) : object_(object) {
    if (object_) object_->add_ref();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other) : Ref(other.get()) {}
  template <typename U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U>&& other)
  noexcept : object_(other.release()) {}
  ~Ref() {
    if (object_) object_->drop_ref();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  bool operator<(const Ref& other) const { return object_ < other.object_; }
  /// Gives the reference away without dropping it.
  T* release() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace weft

template <typename T>
struct std::hash<weft::Ref<T>> {
  std::size_t operator()(const weft::Ref<T>& ref) const noexcept {
    return std::hash<T*>()(ref.get());
  }
};
