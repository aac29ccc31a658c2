// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuFFT, cuSOLVER and cuBLAS's factorisations of stacks, opened at run time like the driver;
// nothing of them is linked.

#include <functional>
#include <list>
#include <mutex>
#include <utility>

#include "weft/runtime/math_library.h"

namespace weft::cuda {

/// For one card. Calls go to the stream of its launches.
class CardMath final : public runtime::MathLibrary {
 public:
  /// `before` runs before each call: it hands the card what waits for its kernels to be compiled,
  /// which the libraries do not know of, and makes the card's context current.
  CardMath(runtime::Device& device, std::function<void()> before)
      : device_(device), before_(std::move(before)) {}
  bool transforms() const override;
  bool factorisations() const override;
  bool batches() const override;
  void fft(const Transform& transform, Place in, Place out) override;
  void cholesky(Number type, std::int64_t n, Place a, Place status) override;
  void lu(Number type, std::int64_t n, Place a, Place pivots, Place status) override;
  void lu_solve(Number type, std::int64_t n, std::int64_t k, Place a, Place pivots, Place b,
                Place status) override;
  void qr(Number type, std::int64_t m, std::int64_t n, Place a, Place tau, Place status) override;
  void orthogonal(Number type, std::int64_t m, std::int64_t columns, std::int64_t k, Place a,
                  Place tau, Place status) override;
  void eigh(Number type, bool vectors, std::int64_t n, Place a, Place values,
            Place status) override;
  void svd(Number type, std::int64_t m, std::int64_t n, bool full, Place a, Place s, Place u,
           Place vh, Place status) override;
  void svd_jacobi(Number type, std::int64_t m, std::int64_t n, Place a, Place s, Place u, Place v,
                  Place status) override;
  void lu_of_all(Number type, std::int64_t n, std::int64_t count, Place addresses, Place pivots,
                 Place status) override;
  void lu_solve_all(Number type, std::int64_t n, std::int64_t k, std::int64_t count,
                    Place addresses, Place pivots, Place b_addresses) override;
  void cholesky_of_all(Number type, std::int64_t n, std::int64_t count, Place addresses,
                       Place status) override;

 private:
  struct Plan {
    Transform transform;
    int handle = 0;
  };
  /// Waits for its turn: all launches so far are with the card, and no other thread is in the
  /// libraries.
  std::unique_lock<std::mutex> in_turn();
  int plan(const Transform& transform);
  void* solver();
  void* products();
  /// Elements of the type that a routine works in.
  Ref<runtime::Storage> workspace(Number type, int elements);

  runtime::Device& device_;
  std::function<void()> before_;
  std::mutex mutex_;
  std::list<Plan> plans_;  // the last used one first
  void *solver_ = nullptr, *products_ = nullptr, *jacobi_ = nullptr;
};

}  // namespace weft::cuda
