/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_RUNTIME_ABI_H_
#define WEFT_RUNTIME_ABI_H_
/* The kernel ABI, plain C. A host-callable kernel has the type weft_kernel: it gets data pointers
 * with the views' offsets folded in, the scalars it uses (extents, strides, scalar arguments;
 * floats as the bits of a double), and a context table through which it reaches everything outside
 * itself, so that its object code has no external symbols. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor argument as users pass it: DLTensor's fields. strides may be null (compact row-major).
 */
typedef struct weft_arg {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t dtype_code;
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  const int64_t* shape;
  const int64_t* strides;
  uint64_t byte_offset;
} weft_arg;

struct weft_context;
typedef int32_t (*weft_parallel_body)(int64_t begin, int64_t end, void* closure);

/* Services of the host to a kernel. `size` is the struct's size, for versions to come. */
typedef struct weft_context {
  uint64_t size;
  /* Runs body over [0, n) in chunks on the thread pool; returns the first non-zero result. */
  int32_t (*parallel_for)(const struct weft_context* ctx, int64_t n, weft_parallel_body body,
                          void* closure);
  void* (*workspace_alloc)(const struct weft_context* ctx, uint64_t bytes, uint64_t align);
  void (*workspace_free)(const struct weft_context* ctx, void* pointer);
  /* math[i] is the address of the scalar function with index i (runtime/math_table.h). */
  void* const* math;
  void* user;
} weft_context;

/* 0 is success; any other value names an assertion of the kernel (index into its message table +
 * 1). */
typedef int32_t (*weft_kernel)(void* const* pointers, const int64_t* scalars,
                               const weft_context* ctx);

#ifdef __cplusplus
}
#endif
#endif
