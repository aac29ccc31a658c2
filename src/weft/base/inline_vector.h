// SPDX-License-Identifier: Apache-2.0
#pragma once
// A vector whose first N elements need no memory of their own, for the short lists that arithmetic
// on indices makes by the thousand.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

template <typename T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;
  InlineVector() = default;
  InlineVector(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }
  template <typename Range>
  requires(!std::is_same_v<std::remove_cvref_t<Range>, InlineVector>)
      InlineVector(const Range& items) {
    for (const T& item : items) push_back(item);
  }
  InlineVector(const InlineVector&) = default;
  InlineVector& operator=(const InlineVector&) = default;
  InlineVector(InlineVector&& other) noexcept
      : first_(std::move(other.first_)),
        all_(std::move(other.all_)),
        size_(std::exchange(other.size_, 0)) {}
  InlineVector& operator=(InlineVector&& other) noexcept {
    first_ = std::move(other.first_);
    all_ = std::move(other.all_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  void push_back(T item) {
    if (size_ == N) all_.assign(first_.begin(), first_.end());
    if (size_ < N) first_[size_] = std::move(item);
    else all_.push_back(std::move(item));
    ++size_;
  }
  void append(const InlineVector& other) {
    for (const T& item : other) push_back(item);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return size_ > N ? all_.data() : first_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return size_ > N ? all_.data() : first_.data(); }
  const T* end() const { return begin() + size_; }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }
  T& back() { return begin()[size_ - 1]; }

 private:
  std::array<T, N> first_{};
  std::vector<T> all_;  // all elements where they are more than N
  std::size_t size_ = 0;
};

}  // namespace weft
