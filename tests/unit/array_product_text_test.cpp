// SPDX-License-Identifier: Apache-2.0
// What the programs of products become for a card that is not there: how wide memory is read, and
// that the text passes the card's compiler. ARRAY_PRODUCT_DUMP=folder writes the texts, which
// tools/kernel_facts compares.

#include <gtest/gtest.h>

#include <fstream>

#include "paper_card.h"

namespace weft {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// The text of the kernel for these extents. `turned`: the operand's columns lie one after the
/// other.
std::string text_of(const Ref<PaperCard>& paper, const std::string& name, Elem elem, std::int64_t m,
                    std::int64_t n, std::int64_t k, bool turned_a = false, bool turned_b = false) {
  const Ref<Device> device = paper;
  NDArray a = NDArray::empty(device, elem, turned_a ? Dims{k, m} : Dims{m, k});
  NDArray b = NDArray::empty(device, elem, turned_b ? Dims{n, k} : Dims{k, n});
  paper->last_source.clear();
  matmul(turned_a ? a.transpose(0, 1) : a, turned_b ? b.transpose(0, 1) : b);
  const char* folder = std::getenv("ARRAY_PRODUCT_DUMP");
  if (folder && !paper->last_source.empty())  // else it was built before
    std::ofstream(cat(folder, "/", name, ".cu")) << paper->last_source;
  return paper->last_source;
}

/// One launch where the rows keep the card busy, two where the depth is cut and one more for a copy
/// of columns that lie side by side; none is built twice.
TEST(ArrayProductText, few_columns_take_few_launches) {
  NEED_CARD();
  for (const Elem elem : {Elem::float32, Elem::int32}) {
    for (const std::int64_t columns : {1, 3}) {
      for (const bool turned : {false, true}) {
        const NDArray a = NDArray::empty(device, elem, Dims{4096, 4096}),
                      b = NDArray::empty(device, elem, Dims{4096, columns});
        int before = paper->launched;
        matmul(turned ? a.transpose(0, 1) : a, b);
        EXPECT_LE(paper->launched - before, 3) << name_of(elem) << " x " << columns;
        before = paper->built;
        matmul(turned ? a.transpose(0, 1) : a, b);
        EXPECT_EQ(paper->built, before) << name_of(elem) << " x " << columns;
      }
    }
  }
}

/// A matrix by one to four vectors reads the matrix in vectors of 16 bytes, whichever axis is
/// contiguous and on whichever side it stands.
TEST(ArrayProductText, few_columns_are_read_in_vectors) {
  NEED_CARD();
  for (const Elem elem : {Elem::float32, Elem::bfloat16, Elem::float64}) {
    for (const std::int64_t columns : {1, 2, 4}) {
      if (elem == Elem::bfloat16 && columns > 2) continue;  // whole tiles
      for (const bool turned : {false, true}) {
        const std::string name = cat("few_", name_of(elem), "_", columns, turned ? "_t" : "_n");
        SCOPED_TRACE(name);
        const char* vector = elem == Elem::bfloat16  ? "(const uint4*)"
                             : elem == Elem::float64 ? "(const double2*)"
                                                     : "(const float4*)";
        const std::size_t shared = columns > 2 ? 1 : 0;
        for (const bool left : {false, true}) {
          const std::string text =
              left ? text_of(paper, name + "_left", elem, columns, 16384, 4096, false, turned)
                   : text_of(paper, name, elem, 16384, columns, 4096, turned, columns > 1);
          if (text.empty()) continue;  // the same program as one before
          EXPECT_GT(count(text, vector), shared);
        }
      }
    }
  }
}

TEST(ArrayProductText, tiles) {
  NEED_CARD();
  for (const Elem elem : {Elem::float32, Elem::float64, Elem::int32}) {
    for (const int layout : {0, 1, 2, 3}) {
      for (const std::int64_t n : {4096, 4095, 257, 65}) {
        const std::string name = cat("tile_", name_of(elem), "_", n, "_", layout);
        SCOPED_TRACE(name);
        text_of(paper, name, elem, n, n, n, layout & 1, layout & 2);
      }
    }
  }
}

}  // namespace
}  // namespace weft
