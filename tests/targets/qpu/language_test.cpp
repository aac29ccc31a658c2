// SPDX-License-Identifier: Apache-2.0
// The kernel language: each feature compiled, run on the emulator and compared with plain C++ and
// with the source interpreter.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <weft/qpu.h>  // last: its statements are macros

using namespace weft::qpu;

namespace {

void hello(Ptr<Int> p) { *p = 1; }

TEST(QpuLanguage, hello) {
  auto k = compile(hello);
  SharedArray<int> a(16);
  k(&a);
  for (int i = 0; i < 16; i++) EXPECT_EQ(a[i], 1) << i;
}

void id(Ptr<Int> p) {
  p = p + (me() << 4);
  *p = me();
}

TEST(QpuLanguage, id_on_twelve) {
  auto k = compile(id);
  SharedArray<int> a(192);
  k.setNumQPUs(12);
  k(&a);
  for (int i = 0; i < 192; i++) EXPECT_EQ(a[i], i / 16);
}

void gcd(Ptr<Int> p, Ptr<Int> q, Ptr<Int> r) {
  Int a = *p;
  Int b = *q;
  While(any(a != b))
    Where(a > b)
      a = a - b;
    End
    Where(a < b)
      b = b - a;
    End
  End
  *r = a;
}

TEST(QpuLanguage, gcd) {
  auto k = compile(gcd);
  SharedArray<int> a(16), b(16), r(16);
  for (int i = 0; i < 16; i++) a[i] = 100 + 7 * i, b[i] = 150 - 3 * i;
  k(&a, &b, &r);
  for (int i = 0; i < 16; i++) EXPECT_EQ(r[i], std::gcd(a[i], b[i]));
}

void rot3d(Int n, Float c, Float s, Ptr<Float> x, Ptr<Float> y) {
  Int inc = numQPUs() << 4;
  Ptr<Float> p = x + index() + (me() << 4);
  Ptr<Float> q = y + index() + (me() << 4);
  gather(p);
  gather(q);
  Float xOld, yOld;
  For(Int i = 0, i < n, i = i + inc)
    gather(p + inc);
    gather(q + inc);
    receive(xOld);
    receive(yOld);
    store(xOld * c - yOld * s, p);
    store(yOld * c + xOld * s, q);
    p = p + inc;
    q = q + inc;
  End
  receive(xOld);
  receive(yOld);
}

void semaphore_sixteen() { semaInc(16); }

TEST(QpuLanguage, semaphores_are_0_to_15) {
  try {
    compile(semaphore_sixteen);
    ADD_FAILURE() << "accepted";
  } catch (const weft::Error& e) {
    EXPECT_EQ(e.code(), "qpu.language.semaphore");
    EXPECT_NE(std::string(e.what()).find("no semaphore 16"), std::string::npos) << e.what();
  }
}

TEST(QpuLanguage, rot3d_in_place) {
  auto k = compile(rot3d);
  SharedArray<float> x(192 * 4), y(192 * 4);
  for (int i = 0; i < 768; i++) x[i] = static_cast<float>(i), y[i] = static_cast<float>(2 * i);
  k.setNumQPUs(12);
  k(768, 0.5f, 0.25f, &x, &y);
  for (int i = 0; i < 768; i++) {
    EXPECT_EQ(x[i], static_cast<float>(i) * 0.5f - static_cast<float>(2 * i) * 0.25f);
    EXPECT_EQ(y[i], static_cast<float>(2 * i) * 0.5f + static_cast<float>(i) * 0.25f);
  }
  EXPECT_FALSE(takeNotes().empty());  // it prefetches past the end
}

void everything(Ptr<Int> in, Ptr<Int> out, Int n) {
  Int x = *in;
  Int y = *(in + 16);
  Int o = 0;
  auto put = [&](IntExpr v) {
    store(v, out + o * 16);
    o = o + 1;
  };
  put(x + y);
  put(x - y);
  put(x * y);
  put(x * 1000003);
  put(x * 12);
  put(x * 7);
  put(x << 3);
  put(x >> 2);
  put(shr(x, 20));
  put(ror(x, 7));
  put(x & y);
  put(x | y);
  put(x ^ y);
  put(~x);
  put(min(x, y));
  put(max(x, y));
  put(-x);
  put(rotate(x, 3));
  put(rotate(x, n));
  put(select(x < y, x, y));
  put(select(x <= y && y != 7, Int(1), Int(0)));
  put(select(x > 0 || y > 0, Int(1), Int(0)));
  put(x / y);
  put(x % y);
  put(toInt(toUint(x) / toUint(y)));
  put(toInt(toFloat(x & 0xffff) * 0.5f));
  put(clz(x));
  put(mul24(x, y));
  Int acc = 0;
  For(Int i = 0, i < n, i++)
    If(any(i == 2))
      acc = acc + 100;
      Else acc = acc + i;
    End
  End
  put(acc);
  Int z = x;
  Where(x > 0)
    Where(y > 0)
      z = 1;
      Else z = 2;
    End
    Else z = 3;
  End
  put(z);
  put(toInt(min(toUint(x), toUint(y))));
  put(select(toUint(x) < toUint(y), Int(5), Int(6)));
}

TEST(QpuLanguage, every_operation_against_plain_code) {
  auto k = compile(everything);
  constexpr int kOut = 32;
  SharedArray<int> in(32), out(16 * kOut), again(16 * kOut);
  const int xs[] = {0,          1,           -1,         2,
                    -2,         7,           100,        -100,
                    2000000000, -2000000000, 0x7fffffff, static_cast<int>(0x80000001u),
                    123456789,  -987654321,  65535,      65536};
  const int ys[] = {3,           7,          7, -2, 3,    -5,  9,      -9,
                    -2000000000, 2000000000, 1, -1, 1000, 333, -65535, 17};
  for (int i = 0; i < 16; i++) in[i] = xs[i], in[16 + i] = ys[i];
  k(&in, &out, 5);
  k.interpret(&in, &again, 5);
  for (int i = 0; i < 16; i++) {
    int x = xs[i], y = ys[i];
    auto ux = static_cast<unsigned>(x), uy = static_cast<unsigned>(y);
    auto ror7 = (ux >> 7) | (ux << 25);
    int acc = 0;
    for (int j = 0; j < 5; j++) acc += j == 2 ? 100 : j;
    const int expect[] = {
        static_cast<int>(ux + uy),
        static_cast<int>(ux - uy),
        static_cast<int>(ux * uy),
        static_cast<int>(ux * 1000003u),
        static_cast<int>(ux * 12),
        static_cast<int>(ux * 7),
        static_cast<int>(ux << 3),
        x >> 2,
        static_cast<int>(ux >> 20),
        static_cast<int>(ror7),
        x & y,
        x | y,
        x ^ y,
        ~x,
        std::min(x, y),
        std::max(x, y),
        static_cast<int>(0u - ux),
        xs[(i + 13) & 15],
        xs[(i + 11) & 15],
        x < y ? x : y,
        x <= y && y != 7,
        x > 0 || y > 0,
        x / y,
        x % y,
        static_cast<int>(ux / uy),
        (x & 0xffff) / 2,
        x ? __builtin_clz(ux) : 32,
        static_cast<int>((ux & 0xffffff) * static_cast<unsigned long long>(uy & 0xffffff)),
        acc,
        x > 0 ? (y > 0 ? 1 : 2) : 3,
        static_cast<int>(std::min(ux, uy)),
        ux < uy ? 5 : 6};
    static_assert(std::size(expect) == kOut);
    for (int o = 0; o < kOut; o++) {
      EXPECT_EQ(out[o * 16 + i], expect[o])
          << "result " << o << " lane " << i << " x " << x << " y " << y;
      EXPECT_EQ(again[o * 16 + i], expect[o])
          << "interpreted: result " << o << " lane " << i << " x " << x << " y " << y;
    }
  }
}

void tails(Ptr<Float> x, Int n) {
  Ptr<Float> p = x;
  For(Int i = 0, i < n, i = i + 16)
    store(toFloat(index() + i), p, n - i);
    p = p + 16;
  End
}

TEST(QpuLanguage, tail_stores_write_exactly_n) {
  auto k = compile(tails);
  for (int n : {0, 1, 15, 16, 17, 33}) {
    SharedArray<float> x(64);
    for (int i = 0; i < 64; i++) x[i] = -1;
    k(&x, n);
    for (int i = 0; i < 64; i++) EXPECT_EQ(x[i], i < n ? static_cast<float>(i) : -1.0f) << n;
  }
}

void printing(Int n) {
  For(Int i = 0, i < n, i++)
    Print(i);
    Print("\n");
  End
}

/// Counts that the compiler knows, none and more than a vector among them; with a write stride too.
void counted(Ptr<Int> p, Ptr<Int> apart) {
  for (int n = -2; n <= 18; n++) {
    store(index() + 100 * (n + 3), p, IntExpr(n));
    p = p + 20;
  }
  setWriteStride(1);
  for (int n = -1; n <= 17; n += 6) {
    store(index() + 100 * (n + 3), apart, IntExpr(n));
    apart = apart + 40;
  }
  setWriteStride(0);
}

TEST(QpuLanguage, stores_of_known_counts_write_exactly_these) {
  auto k = compile(counted);
  SharedArray<int> p(21 * 20), apart(4 * 40);
  for (int i = 0; i < 21 * 20; i++) p[i] = -1;
  for (int i = 0; i < 4 * 40; i++) apart[i] = -1;
  k(&p, &apart);
  for (int n = -2; n <= 18; n++)
    for (int i = 0; i < 20; i++)
      EXPECT_EQ(p[(n + 2) * 20 + i], i < std::min(n, 16) ? i + 100 * (n + 3) : -1) << n << " " << i;
  for (int row = 0; row < 4; row++) {
    const int n = 6 * row - 1;
    for (int i = 0; i < 40; i++)
      EXPECT_EQ(apart[row * 40 + i],
                i % 2 == 0 && i / 2 < std::min(n, 16) ? i / 2 + 100 * (n + 3) : -1)
          << n << " " << i;
  }
}

TEST(QpuLanguage, prints) {
  auto k = compile(printing);
  std::string text;
  setPrint([&](std::string_view t) { text += t; });
  k(2);
  setPrint({});
  EXPECT_EQ(text, "<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>\n<1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1>\n");
}

void strided(Ptr<Int> p) {
  setReadStride(1);
  setWriteStride(1);
  Int evens = *p;
  Int odds = *(p + 1);
  *p = odds;
  *(p + 1) = evens;
}

TEST(QpuLanguage, strides) {
  auto k = compile(strided);
  SharedArray<int> a(32);
  for (int i = 0; i < 32; i++) a[i] = i;
  k(&a);
  for (int i = 0; i < 32; i++) EXPECT_EQ(a[i], i ^ 1);
}

void exchange(Ptr<Int> a, Ptr<Int> b) {
  // Each QPU stores its row, all meet, then each reads its neighbour's through the VPM.
  store(me() * 10 + index(), a + (me() << 4));
  barrier();
  Int next = me() + 1;
  Where(next == numQPUs())
    next = 0;
  End
  store(vload(a + (next << 4)), b + (me() << 4));
  barrier();
  store(vload(b + (next << 4)), a + (me() << 4));
}

TEST(QpuLanguage, barrier_orders_stores_and_loads) {
  auto k = compile(exchange);
  for (int n : {1, 2, 3, 12}) {
    SharedArray<int> a(192), b(192);
    k.setNumQPUs(n);
    k(&a, &b);
    for (int q = 0; q < n; q++) {
      for (int i = 0; i < 16; i++) {
        EXPECT_EQ(b[q * 16 + i], (q + 1) % n * 10 + i);
        EXPECT_EQ(a[q * 16 + i], (q + 2) % n * 10 + i);
      }
    }
  }
}

void sfus(Ptr<Float> p, Ptr<Float> q) {
  Float x = *p;
  *q = recip(x);
  *(q + 16) = rsqrt(x);
  *(q + 32) = exp2(x);
  *(q + 48) = log2(x);
  *(q + 64) = recipFull(x);
  *(q + 80) = FloatExpr(1.0f) / x;
}

TEST(QpuLanguage, sfu_and_division) {
  auto k = compile(sfus);
  SharedArray<float> x(16), y(96);
  for (int i = 0; i < 16; i++) x[i] = 0.3f + 0.77f * static_cast<float>(i);
  k(&x, &y);
  for (int i = 0; i < 16; i++) {
    float v = x[i];
    EXPECT_NEAR(y[i], 1 / v, 1e-3 / v);
    EXPECT_NEAR(y[16 + i], 1 / std::sqrt(v), 1e-3);
    EXPECT_NEAR(y[32 + i] / std::exp2(v), 1, 1e-3);
    EXPECT_NEAR(y[48 + i], std::log2(v), 1e-3);
    EXPECT_NEAR(y[64 + i] * v, 1, 1e-6);
    EXPECT_NEAR(y[80 + i] * v, 1, 5e-7);
  }
}

void wheres(Ptr<Int>) {
  Where(index() > 3)
    Print("no");
  End
}
void unclosed(Ptr<Int> p) {
  weft::qpu::If_(any(me() == 0));
  *p = 1;
}
void endless(Ptr<Int> p) {
  While(any(index() >= 0))
    *p = 1;
  End
}

TEST(QpuLanguage, mistakes_are_refused) {
  auto code = [](auto f) -> std::string {
    try {
      f();
    } catch (const weft::Error& e) {
      return e.code();
    }
    return "accepted";
  };
  EXPECT_EQ(code([] { Int x; }), "qpu.language.outside");
  EXPECT_EQ(code([] { compile(wheres); }), "qpu.language.where");
  EXPECT_EQ(code([] { compile(unclosed); }), "qpu.language.control");
  EXPECT_EQ(code([] { compile(hello).setNumQPUs(13); }), "qpu.launch.qpus");
  EXPECT_EQ(code([] { compile(hello).setDevice("cpu"); }), "qpu.device.unknown");
  EXPECT_EQ(code([] { compile(hello)(static_cast<SharedArray<int>*>(nullptr)); }),
            "qpu.launch.null");
  EXPECT_EQ(code([] {
              SharedArray<int> a(3);
              a[3] = 1;
            }),
            "qpu.array.index");
  EXPECT_EQ(code([] { SharedArray<int> a(1u << 30); }), "sim.memory.exhausted");
  auto k = compile(endless);
  k.setCycleLimit(100000);
  SharedArray<int> a(16), small(15);
  EXPECT_EQ(code([&] { k(&a); }), "qpu.limit.cycles");
  auto h = compile(hello);
  try {
    h(&small);
    FAIL();
  } catch (const weft::Error& e) {
    EXPECT_EQ(e.code(), "qpu.memory.store_outside");
    EXPECT_NE(std::string(e.what()).find("language_test.cpp"), std::string::npos) << e.what();
  }
  h(&a);
  EXPECT_EQ(a[15], 1);
}

}  // namespace
