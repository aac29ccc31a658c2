// SPDX-License-Identifier: Apache-2.0
// Programs in the vocabulary of QPULib, with its behaviour, and the kernels of a well-known course
// project with the mistakes that the emulator must report.

#include <gtest/gtest.h>

#include <cmath>

#include <weft/qpu.h>

using namespace weft::qpu;

namespace {

void request(Ptr<Int> p) {
  Int x, y;
  gather(p + index());
  gather(p + 16 + index());
  receive(x);
  receive(y);
  *p = x + y;
}

TEST(QpuExamples, request_and_receive) {
  auto k = compile(request);
  SharedArray<int> a(32);
  for (int i = 0; i < 32; i++) a[i] = i;
  k(&a);
  for (int i = 0; i < 16; i++) EXPECT_EQ(a[i], 2 * i + 16);
}

void triangle(Ptr<Int> p) {
  p = p + (me() << 4);
  Int n = *p;
  Int sum = 0;
  While(any(n > 0))
    Where(n > 0)
      sum = sum + n;
      n = n - 1;
    End
  End
  *p = sum;
}

TEST(QpuExamples, triangular_numbers_on_four) {
  auto k = compile(triangle);
  k.setNumQPUs(4);
  SharedArray<int> a(64);
  for (int i = 0; i < 64; i++) a[i] = i;
  k(&a);
  for (int i = 0; i < 64; i++) EXPECT_EQ(a[i], i * (i + 1) / 2);
}

void transposition_sort(Ptr<Int> p) {
  setReadStride(1);
  setWriteStride(1);
  Int evens = *p;
  Int odds = *(p + 1);
  For(Int count = 0, count < 16, count++)
    Int low = min(evens, odds);
    Int high = max(evens, odds);
    Int low_left = rotate(low, 15);
    Int keep = high;
    Where(index() != 15)
      high = min(low_left, keep);
    End
    Where(index() != 0)
      low = rotate(max(low_left, keep), 1);
    End
    evens = low;
    odds = high;
  End
  *p = evens;
  *(p + 1) = odds;
}

TEST(QpuExamples, odd_even_transposition_sort) {
  auto k = compile(transposition_sort);
  SharedArray<int> a(32);
  for (int i = 0; i < 32; i++) a[i] = 100 - i;
  k.call(&a);
  for (int i = 0; i < 32; i++) EXPECT_EQ(a[i], 69 + i);
}

void rotate_1(Int n, Float c, Float s, Ptr<Float> x, Ptr<Float> y) {
  For(Int i = 0, i < n, i = i + 16)
    Float xo = x[i];
    Float yo = y[i];
    x[i] = xo * c - yo * s;
    y[i] = yo * c + xo * s;
  End
}
void rotate_2(Int n, Float c, Float s, Ptr<Float> x, Ptr<Float> y) {
  Int inc = 16;
  Ptr<Float> p = x + index();
  Ptr<Float> q = y + index();
  gather(p);
  gather(q);
  Float xo, yo;
  For(Int i = 0, i < n, i = i + inc)
    gather(p + inc);
    gather(q + inc);
    receive(xo);
    receive(yo);
    store(xo * c - yo * s, p);
    store(yo * c + xo * s, q);
    p = p + inc;
    q = q + inc;
  End
  receive(xo);
  receive(yo);
}

TEST(QpuExamples, both_rotations_agree) {
  constexpr int kN = 1600;
  auto k1 = compile(rotate_1), k2 = compile(rotate_2);
  SharedArray<float> x1(kN), y1(kN), x2(kN), y2(kN);
  for (int i = 0; i < kN; i++)
    x1[i] = x2[i] = static_cast<float>(i), y1[i] = y2[i] = static_cast<float>(i);
  k1(kN, std::cos(0.5f), std::sin(0.5f), &x1, &y1);
  k2(kN, std::cos(0.5f), std::sin(0.5f), &x2, &y2);
  for (int i = 0; i < kN; i++) {
    EXPECT_NEAR(x1[i], static_cast<float>(i) * (std::cos(0.5f) - std::sin(0.5f)), 1e-3f);
    EXPECT_EQ(x1[i], x2[i]);
    EXPECT_EQ(y1[i], y2[i]);
  }
  EXPECT_LT(k2.cycles(), k1.cycles());
  takeNotes();
}

// The product kernel as published: it runs past the end when the padded length is no multiple of 16
// per QPU.
void product(Int n, Ptr<Float> x, Ptr<Float> y) {
  Int inc = numQPUs() << 4;
  Ptr<Float> p = x + index() + (me() << 4);
  Ptr<Float> q = y + index() + (me() << 4);
  gather(p);
  gather(q);
  Float xo, yo;
  For(Int i = 0, i < n, i = i + inc)
    gather(p + inc);
    gather(q + inc);
    receive(xo);
    receive(yo);
    store(xo * yo, p);
    p = p + inc;
    q = q + inc;
  End
  receive(xo);
  receive(yo);
}

TEST(QpuSeed, product_stores_past_the_end_and_prefetches_past_it) {
  auto k = compile(product, "product");
  k.setNumQPUs(4);
  SharedArray<float> a(112), b(112);  // 100 elements and their padding
  try {
    k(100, &a, &b);
    FAIL() << "the store past the end went unseen";
  } catch (const weft::Error& e) {
    EXPECT_EQ(e.code(), "qpu.memory.store_outside");
    EXPECT_NE(std::string(e.what()).find("qpu 3"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("examples_test.cpp"), std::string::npos) << e.what();
  }
  takeNotes();
  SharedArray<float> c(128), d(128);
  for (int i = 0; i < 128; i++) c[i] = static_cast<float>(i), d[i] = 0.5f;
  k(128, &c, &d);
  for (int i = 0; i < 128; i++) EXPECT_EQ(c[i], 0.5f * static_cast<float>(i));
  auto notes = takeNotes();
  ASSERT_FALSE(notes.empty());
  for (const Note& n : notes) {
    EXPECT_EQ(n.code, "qpu.memory.read_outside");
    EXPECT_NE(n.source.find("examples_test.cpp"), std::string::npos);
  }
  k.setDevice("qpu:reads=fault");
  SharedArray<float> e(128, "qpu:reads=fault"), f(128, "qpu:reads=fault");
  try {
    k(128, &e, &f);
    FAIL() << "the read past the end went unseen";
  } catch (const weft::Error& error) {
    EXPECT_EQ(error.code(), "qpu.memory.read_outside");
  }
}

// The matrix kernel as published: its weights lack index(), and the cursors are primed one after
// the other, so values go to the wrong one.
struct Cursor {
  Ptr<Float> addr;
  Float current, next;
  void init(Ptr<Float> p) {
    gather(p);
    current = 0;
    addr = p + 16;
  }
  void prime() {
    receive(next);
    gather(addr);
  }
  void advance() {
    addr = addr + 16;
    gather(addr);
    current = next;
    receive(next);
  }
  void finish() { receive(next); }
};
void matrix(Ptr<Float> map, Ptr<Float> weight, Ptr<Float> out, Int pitch, Int width, Int height) {
  Cursor row, w;
  map = map + pitch * me() + index();
  For(Int y = me(), y < height, y = y + numQPUs())
    Ptr<Float> p = out + y * 16;
    row.init(map);
    row.prime();
    w.init(weight);
    w.prime();
    Float acc = 0;
    For(Int x = 0, x < width, x = x + 16)
      row.advance();
      w.advance();
      acc = acc + row.current * w.current;
    End
    store(acc, p);
    row.finish();
    w.finish();
    map = map + pitch * numQPUs();
  End
}

TEST(QpuSeed, published_gemv_gives_wrong_sums_and_reads_past_the_end) {
  auto k = compile(matrix, "matrix");
  constexpr int kW = 64, kH = 5;
  SharedArray<float> a(kW * kH), x(kW), out(16 * kH);
  for (int i = 0; i < kW * kH; i++) a[i] = static_cast<float>(i % 7);
  for (int i = 0; i < kW; i++) x[i] = static_cast<float>(i % 5);
  k(&a, &x, &out, kW, kW, kH);
  int right = 0;
  for (int r = 0; r < kH; r++) {
    float got = 0, want = 0;
    for (int i = 0; i < 16; i++) got += out[r * 16 + i];
    for (int i = 0; i < kW; i++) want += a[r * kW + i] * x[i];
    right += got == want;
  }
  EXPECT_EQ(right, 0);
  EXPECT_FALSE(takeNotes().empty());
}

}  // namespace
