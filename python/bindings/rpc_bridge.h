// SPDX-License-Identifier: Apache-2.0
#pragma once
// What weft._core and weft._rpc hand each other: C++ values in capsules whose name tells the type.
// Both are built together, from one set of headers.

#include <nanobind/nanobind.h>

#include <functional>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/patient_lock.h"
#include "weft/runtime/module.h"

namespace weft::py {

inline constexpr const char* kDeviceCapsule = "weft.Ref<Device>";
inline constexpr const char* kArgsCapsule = "weft.vector<CallArg>";
inline constexpr const char* kOpenerCapsule = "weft.OpenDevice";
inline constexpr const char* kInterruptCapsule = "weft.interrupt_slot";

template <typename T>
nanobind::capsule to_capsule(T value, const char* name) {
  return nanobind::capsule(new T(std::move(value)), name,
                           [](void* p) noexcept { delete static_cast<T*>(p); });
}

/// The value, owned by the capsule. Throws Error(internal) for a capsule of another type.
template <typename T>
T& from_capsule(const nanobind::capsule& capsule, const char* name) {
  void* p = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!p) throw nanobind::python_error();
  return *static_cast<T*>(p);
}

/// Waits for a lock without the interpreter's, whose holder may need that (patient_lock.h). Whether
/// this thread holds it is asked without PyGILState_Check, which says yes where it does not know.
inline void wait_without_interpreter(const std::function<void()>& wait) {
  PyThreadState* const mine = Py_IsInitialized() ? PyGILState_GetThisThreadState() : nullptr;
  if (!mine || mine != _PyThreadState_UncheckedGet()) return wait();
  nanobind::gil_scoped_release release;
  wait();
}

}  // namespace weft::py
