/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_QPU_EXTENSION_ABI_H_
#define WEFT_QPU_EXTENSION_ABI_H_
/* What an extension module hands to Python: a table of operators in plain C, read through ctypes by
 * python/weft/qpu.py. A change here changes WEFT_QPU_MODULE_VERSION there and here. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_QPU_MODULE_VERSION 2

enum weft_qpu_kind {
  WEFT_QPU_NONE = 0,
  WEFT_QPU_FLOATS = 1, /* a contiguous row-major tensor of float32 */
  WEFT_QPU_INTS = 2,   /* the same of int32 */
  WEFT_QPU_INTEGER = 3,
  WEFT_QPU_REAL = 4
};

typedef struct weft_qpu_value {
  int32_t kind;
  int32_t ndim;
  const int64_t* shape;
  void* data;
  int64_t integer;
  double real;
  void* owner; /* results: given to release() */
} weft_qpu_value;

typedef struct weft_qpu_operator {
  const char* name;
  const char* doc;
  /* Kinds of the arguments, then of the result. */
  const int32_t* kinds;
  int32_t arguments;
  void* closure;
  /* 0: *result is set. Otherwise *error is a text that release_text() frees. */
  int32_t (*call)(void* closure, const weft_qpu_value* arguments, weft_qpu_value* result,
                  char** error);
} weft_qpu_operator;

typedef struct weft_qpu_table {
  int32_t version;
  int32_t count;
  const char* name;
  const char* doc;
  const weft_qpu_operator* operators;
  void (*release)(weft_qpu_value* result);
  void (*release_text)(char* text);
  /* From now on calls of this thread ask `check` about every 50 ms; other than 0, the call ends
   * with the error qpu.module.stopped, and the device goes on afterwards. 0: nothing is asked. */
  void (*watch)(int32_t (*check)(void));
} weft_qpu_table;

#ifdef __cplusplus
}
#endif
#endif
