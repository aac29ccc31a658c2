// SPDX-License-Identifier: Apache-2.0
#include "weft/host/kernel_lists.h"

#include <bit>
#include <type_traits>

#include "weft/host/copy_kernels.h"
#include "weft/host/levels.h"
#include "weft/host/roots_avx512.h"
#include "weft/host/sort_kernels.h"
#include "weft/host/vector_kernels.h"

namespace weft {

#define WEFT_GROUPS(X, level) \
  X(integers, level)          \
  WEFT_ROW_GROUPS(X, level)   \
  X(reals, level)             \
  X(complex, level)           \
  X(complex_products, level)  \
  X(booleans, level) X(random, level) X(casts, level) X(places, level) X(vectors, level)
#define WEFT_DECLARE_LIST(group, level) \
  extern "C" const KernelEntry weft_kernels_##group##_##level[];
#define WEFT_DECLARE(level) WEFT_GROUPS(WEFT_DECLARE_LIST, level)
WEFT_LEVELS(WEFT_DECLARE)
#undef WEFT_DECLARE
#undef WEFT_DECLARE_LIST

namespace {

struct Tables {
  KernelTable all;
  OneKernels one;
  VectorTable vectors;
  SortTable sorting;
  CopyTable copying;
  LoopTable loops;
};

void enter(const KernelEntry* list, Tables& tables) {
  KernelTable& t = tables.all;
  for (; list->table >= 0; ++list) {
    const KernelEntry& k = *list;
    auto put = [&](auto& slot) {
      slot = reinterpret_cast<std::decay_t<decltype(slot)>>(k.function);
    };
    switch (k.table) {
      case KernelEntry::elementwise:
        if (k.layout == 0) put(t.elementwise[k.row][k.elem]);
        else put(tables.one.one[k.layout - 1][k.row][k.elem]);
        break;
      case KernelEntry::reduce: put(t.reduce[k.row][k.elem]); break;
      case KernelEntry::accumulate: put(t.accumulate[k.row][k.elem]); break;
      case KernelEntry::scan: put(t.scan[k.row][k.elem]); break;
      case KernelEntry::cast: put(t.cast[k.row][k.elem]); break;
      case KernelEntry::select: put(t.select[k.elem]); break;
      case KernelEntry::fold: put(t.fold[k.row][k.elem]); break;
      case KernelEntry::reduce_four: put(t.reduce_four[k.row][k.elem]); break;
      case KernelEntry::known: put(tables.one.known[k.row][k.elem]); break;
      case KernelEntry::random: put(t.random[k.row]); break;
      case KernelEntry::random_integers: put(tables.loops.random_integers); break;
      case KernelEntry::copying: {
        const int bytes = elem_bytes(static_cast<Elem>(k.elem));
        put(tables.copying.function[k.row][std::countr_zero(static_cast<unsigned>(bytes))]);
        break;
      }
      case KernelEntry::sorting: put(tables.sorting.function[k.row][k.elem]); break;
      case KernelEntry::vector: put(tables.vectors.function[k.row][k.elem]); break;
      case KernelEntry::find: put(tables.loops.find[k.elem]); break;
      case KernelEntry::place: put(tables.loops.place[k.elem]); break;
      case KernelEntry::resolve: put(tables.loops.resolve[k.row]); break;
      case KernelEntry::along: put(tables.loops.along[k.row]); break;
      case KernelEntry::pick: put(tables.loops.pick[k.row]); break;
      case KernelEntry::put: put(tables.loops.put[k.row]); break;
      case KernelEntry::count: put(tables.loops.count); break;
      case KernelEntry::compress: put(tables.loops.compress[k.row]); break;
      case KernelEntry::places: put(tables.loops.places); break;
      case KernelEntry::steps:
        if (is_integer(static_cast<Elem>(k.elem))) put(tables.loops.whole_steps[k.elem]);
        else put(tables.loops.real_steps[k.elem]);
        break;
      case KernelEntry::add_products: put(tables.loops.add_products[k.elem]); break;
      case KernelEntry::put_add: put(tables.loops.put_add[k.elem]); break;
      case KernelEntry::normal_pairs: put(tables.loops.normal_pairs); break;
      case KernelEntry::plane: put(tables.loops.plane[k.row][k.elem]); break;
      case KernelEntry::polynomial: put(tables.loops.polynomial[k.row][k.elem]); break;
      case KernelEntry::bits: put(tables.loops.bits[k.row][k.elem]); break;
      case KernelEntry::frexp: put(tables.loops.frexp[k.elem]); break;
      case KernelEntry::between: put(tables.loops.between[k.elem]); break;
      case KernelEntry::expand: put(tables.loops.expand[k.row]); break;
      default: put(t.row[k.row][k.elem]); break;
    }
  }
}

constexpr VectorShape shape_base = kShapeBase;
[[maybe_unused]] constexpr VectorShape shape_avx2 = kShapeAvx2, shape_avx512 = kShapeAvx512;

#define WEFT_ENTER(group, level) enter(weft_kernels_##group##_##level, t);
#define WEFT_FILL_ALL(level)         \
  void fill_##level(Tables& t) {     \
    WEFT_GROUPS(WEFT_ENTER, level)   \
    t.vectors.shape = shape_##level; \
  }
WEFT_LEVELS(WEFT_FILL_ALL)
#undef WEFT_FILL_ALL
#undef WEFT_ENTER

Tables choose() {
  Tables table;
#if defined(WEFT_WITH_AVX2) || defined(WEFT_WITH_AVX512)
  __builtin_cpu_init();
#endif
#if defined(WEFT_WITH_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    fill_avx512(table);
    put_roots_avx512(table.all);
    return table;
  }
#endif
#if defined(WEFT_WITH_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    fill_avx2(table);
    return table;
  }
#endif
  fill_base(table);
  return table;
}
const Tables& tables() {
  static const Tables all = choose();
  return all;
}

}  // namespace

const KernelTable& kernels() {
  static const KernelTable& table = tables().all;
  return table;
}

const CopyTable& copy_kernels() {
  static const CopyTable& table = tables().copying;
  return table;
}

const SortTable& sort_kernels() {
  static const SortTable& table = tables().sorting;
  return table;
}

const VectorTable& vector_kernels() {
  static const VectorTable& table = tables().vectors;
  return table;
}

const LoopTable& loop_kernels() {
  static const LoopTable& table = tables().loops;
  return table;
}

const OneKernels& one_kernels() {
  static const OneKernels& table = tables().one;
  return table;
}

}  // namespace weft
