// SPDX-License-Identifier: Apache-2.0
#pragma once
// Extents or strides of an array: a short vector of int64 that lives inline up to eight entries, so
// that making a view allocates nothing.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// More dimensions than this are refused ("array.ndim.limit").
inline constexpr int kMaxDims = 64;

class Dims {
 public:
  static constexpr int kInline = 8;
  Dims() = default;
  explicit Dims(int size) { resize(size); }
  Dims(int size, std::int64_t value) {
    resize(size);
    for (int i = 0; i < size; ++i) (*this)[i] = value;
  }
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(values.begin(), static_cast<int>(values.size())) {}
  Dims(const std::int64_t* values, int size) {
    resize(size);
    if (size) std::memcpy(data(), values, sizeof(std::int64_t) * static_cast<std::size_t>(size));
  }
  Dims(const std::vector<std::int64_t>& values)
      : Dims(values.data(), static_cast<int>(values.size())) {}
  Dims(const Dims& other) : Dims(other.data(), other.size_) {}
  Dims(Dims&& other) noexcept { steal(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) {
      resize(other.size_);
      if (size_)
        std::memcpy(data(), other.data(), sizeof(std::int64_t) * static_cast<std::size_t>(size_));
    }
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    if (this != &other) {
      delete[] heap_;
      steal(other);
    }
    return *this;
  }
  ~Dims() { delete[] heap_; }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t* data() { return heap_ ? heap_ : inline_; }
  const std::int64_t* data() const { return heap_ ? heap_ : inline_; }
  std::int64_t& operator[](int i) { return data()[i]; }
  std::int64_t operator[](int i) const { return data()[i]; }
  std::int64_t* begin() { return data(); }
  std::int64_t* end() { return data() + size_; }
  const std::int64_t* begin() const { return data(); }
  const std::int64_t* end() const { return data() + size_; }
  void push_back(std::int64_t value) {
    resize(size_ + 1);
    (*this)[size_ - 1] = value;
  }
  /// Keeps the leading entries; new ones are unset.
  void resize(int size) {
    if (size > kInline && size > capacity_) {
      std::int64_t* grown = new std::int64_t[static_cast<std::size_t>(size) * 2];
      std::memcpy(grown, data(), sizeof(std::int64_t) * static_cast<std::size_t>(size_));
      delete[] heap_;
      heap_ = grown;
      capacity_ = size * 2;
    }
    size_ = size;
  }
  bool operator==(const Dims& other) const {
    return size_ == other.size_ &&
           std::memcmp(data(), other.data(),
                       sizeof(std::int64_t) * static_cast<std::size_t>(size_)) == 0;
  }
  std::vector<std::int64_t> vector() const { return {begin(), end()}; }

 private:
  void steal(Dims& other) noexcept {
    size_ = other.size_;
    heap_ = std::exchange(other.heap_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
    if (!heap_) {
      for (int i = 0; i < size_; ++i) inline_[i] = other.inline_[i];
    }
    other.size_ = 0;
  }
  std::int64_t* heap_ = nullptr;
  std::int32_t size_ = 0;
  std::int32_t capacity_ = 0;  // of heap_
  std::int64_t inline_[kInline];
};

/// "(2, 3)", "(4,)", "()".
std::string to_string(const Dims& dims);

}  // namespace weft
