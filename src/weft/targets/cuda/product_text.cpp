// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/product_text.h"

#include "weft/base/text.h"

namespace weft::cuda {

namespace {

// One warp brings tiles by the bulk copy engine, the groups of 128 threads multiply; blocks stay
// and take one tile of the result after another. Operand rows of 128 bytes lie swizzled: the piece
// of 16 bytes p of row r at p ^ r % 8. Source: PTX ISA, wgmma (matrix descriptors, accumulator
// fragments), mbarrier, cp.async.bulk.tensor, stmatrix, setmaxnreg.
constexpr const char* kText = R"(
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) Map { unsigned char bytes[128]; };

#define ROWS (64 * GROUPS)
#define TILE_A (ROWS * 128)
#define TILE_B (COLUMNS * 128)
#define STAGE (TILE_A + TILE_B)

static __device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
static __device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}\n" :: "r"(barrier), "r"(parity) : "memory");
}
static __device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
static __device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
static __device__ __forceinline__ void bring(u32 to, const Map* map, int c0, int c1, int c2, int c3, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
               :: "r"(to), "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(barrier) : "memory");
}
#if OUT == 0
static __device__ __forceinline__ void send(const Map* map, u32 from, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
               :: "l"(map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
static __device__ __forceinline__ void meet(int which) {
  asm volatile("bar.sync %0, 128;" :: "r"(which) : "memory");
}
#endif
#if OUT != 2
static __device__ __forceinline__ u32 pair(float low, float high) {
  u32 out;
  asm("cvt.rn." NARROW "x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
#endif
static __device__ __forceinline__ u64 descriptor(u32 address, u32 leading) {
  return 1ull << 62 | 64ull << 32 | (u64)(leading >> 4) << 16 | (u64)((address & 0x3ffff) >> 4);
}

// A tile of the result: where it begins, and the steps that are summed.
struct Tile { int m, n, batch, first, last; };

extern "C" __global__ void __launch_bounds__(128 * GROUPS + 128, 1)
product(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b,
#if OUT == 0
        const __grid_constant__ Map map_out,
#endif
        void* out, int tiles_m, int tiles_n, int batches, int parts, int steps, int part, int m, int n, int inner,
        int move_a0, int move_a1, int move_b0, int move_b1, int patches_w, int patches_h, int patch_w, int patch_h,
        int patch_n, int step_x, int step_y, int before_x, int before_y, int window, int chunks, int turned) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 tiles = shared_address(memory), full = tiles + STAGES * STAGE + (OUT == 0 ? GROUPS * 16384 : 0),
            empty = full + STAGES * 8;
  const int group = (int)threadIdx.x / 128 - 1;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(full + s * 8));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(empty + s * 8), "r"(4 * GROUPS));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int area = tiles_m * tiles_n, total = area * parts * batches;
  // TOGETHER rows of tiles follow one another, so that what they read stays in the cache.
  auto tile_of = [&](int t) {
    const int z = t / area, place = t % area, band = place / (tiles_n * TOGETHER), in = place % (tiles_n * TOGETHER);
    const int high = min(TOGETHER, tiles_m - band * TOGETHER), which = z % parts;
    return Tile{(band * TOGETHER + in % high) * ROWS, in / high * COLUMNS, z / parts, which * part, min(which * part + part, steps)};
  };
  if (group < 0) {
#if GROUPS > 1
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#endif
    if (threadIdx.x != 0) return;
    u32 slot = 0, phase = 1;
    for (int t = blockIdx.x; t < total; t += gridDim.x) {
      const Tile tile = tile_of(t);
#if MODE == 0
      const int b0 = tile.batch % inner, b1 = tile.batch / inner;
#elif MODE == 1
      int tap = tile.first / chunks, chunk = tile.first % chunks;
      int px[GROUPS], py[GROUPS], pn[GROUPS];
      for (int g = 0; g < GROUPS; ++g) {
        const int p = tile.m / 64 + g, rest = p / patches_w;
        px[g] = p % patches_w * patch_w * step_x - before_x;
        py[g] = rest % patches_h * patch_h * step_y - before_y;
        pn[g] = rest / patches_h * patch_n;
      }
#endif
      for (int k = tile.first; k < tile.last; ++k) {
        const u32 a = tiles + slot * STAGE, b = a + TILE_A, barrier = full + slot * 8;
        wait_for(empty + slot * 8, phase);
        expect(barrier, STAGE);
#if MODE == 0
#if A_ALONG_M
        for (int g = 0; g < GROUPS; ++g)
          bring(a + g * 8192, &map_a, tile.m + g * 64, k * 64, b0 * move_a0, b1 * move_a1, barrier);
#else
        bring(a, &map_a, k * 64, tile.m, b0 * move_a0, b1 * move_a1, barrier);
#endif
#if B_ALONG_N
        for (int j = 0; j < COLUMNS / 64; ++j)
          bring(b + j * 8192, &map_b, tile.n + j * 64, k * 64, b0 * move_b0, b1 * move_b1, barrier);
#else
        bring(b, &map_b, k * 64, tile.n, b0 * move_b0, b1 * move_b1, barrier);
#endif
#elif MODE == 1
        // Rows are patches of 64 places of an image, steps the window's places and channels.
        for (int g = 0; g < GROUPS; ++g)
          bring(a + g * 8192, &map_a, chunk * 64, px[g] + tap % window, py[g] + tap / window, pn[g], barrier);
        const int at = turned > 0 ? turned - 1 - tap : tap;
#if B_ALONG_N
        for (int j = 0; j < COLUMNS / 64; ++j) bring(b + j * 8192, &map_b, tile.n + j * 64, chunk * 64, at, 0, barrier);
#else
        bring(b, &map_b, chunk * 64, tile.n, at, 0, barrier);
#endif
        if (++chunk == chunks) chunk = 0, ++tap;
#else
        // Steps are patches, batches the window's places.
        const int rest = k / patches_w, x = k % patches_w * patch_w, y = rest % patches_h * patch_h, image = rest / patches_h * patch_n;
        for (int g = 0; g < GROUPS; ++g)
          bring(a + g * 8192, &map_a, tile.m + g * 64, x * step_x - before_x + tile.batch % window,
                y * step_y - before_y + tile.batch / window, image, barrier);
        for (int j = 0; j < COLUMNS / 64; ++j) bring(b + j * 8192, &map_b, tile.n + j * 64, x, y, image, barrier);
#endif
        if (++slot == STAGES) slot = 0, phase ^= 1;
      }
    }
    return;
  }
#if GROUPS > 1
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#endif
  const int thread = (int)threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
  u32 slot = 0, phase = 0;
#if OUT == 0
  const u32 staging = tiles + STAGES * STAGE + group * 16384;
  u32 buffer = 0;
#endif
  for (int t = blockIdx.x; t < total; t += gridDim.x) {
    const Tile tile = tile_of(t);
    float d[COLUMNS / 2];
    u32 previous = 0;
    for (int k = tile.first; k < tile.last; ++k) {
      wait_for(full + slot * 8, phase);
      const u32 a = tiles + slot * STAGE + group * 8192, b = tiles + slot * STAGE + TILE_A;
      const u64 from_a = descriptor(a, 16), from_b = descriptor(b, B_ALONG_N ? 8192 : 16);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 4; ++i)
        add_product(d, from_a + (u64)(i * (A_ALONG_M ? 128 : 2)), from_b + (u64)(i * (B_ALONG_N ? 128 : 2)), k > tile.first || i > 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      // The step before is read: its slot goes back to the copies.
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (k > tile.first && lane == 0) arrive(empty + previous * 8);
      previous = slot;
      if (++slot == STAGES) slot = 0, phase ^= 1;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (lane == 0) arrive(empty + previous * 8);
    // A thread holds rows warp * 16 + lane / 4 and 8 further, columns lane % 4 * 2 and 1 further of each 8.
#if OUT == 0
#if MODE == 1
    const int p = tile.m / 64 + group, rest = p / patches_w, x = p % patches_w * patch_w, y = rest % patches_h * patch_h,
              image = rest / patches_h * patch_n;
#endif
#pragma unroll
    for (int piece = 0; piece < COLUMNS / 64; ++piece) {
      const u32 to = staging + buffer * 8192;
      if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      meet(1 + group);
      const u32 row = warp * 16 + (lane & 15);
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float* e = d + piece * 32 + q * 8;
        const u32 at = to + row * 128 + (((q * 2 + (lane >> 4)) ^ (row & 7)) << 4);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(at), "r"(pair(e[0], e[1])), "r"(pair(e[2], e[3])), "r"(pair(e[4], e[5])), "r"(pair(e[6], e[7])) : "memory");
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      meet(1 + group);
      if (thread == 0) {
#if MODE == 1
        send(&map_out, to, tile.n + piece * 64, x, y, image);
#else
        if (tile.m + group * 64 < m) send(&map_out, to, tile.n + piece * 64, tile.m + group * 64, tile.batch, 0);
#endif
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
      buffer ^= 1;
    }
#else
    const int row = tile.m + group * 64 + warp * 16 + lane / 4, column = tile.n + lane % 4 * 2;
    const int slab = tile.first / part * batches + tile.batch;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row + h * 8 >= m) continue;
      const long long line = ((long long)slab * m + row + h * 8) * n;
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; ++j) {
        const float u = d[j * 4 + h * 2], v = d[j * 4 + h * 2 + 1];
        const int c = column + j * 8;
#if OUT == 2
        if (c + 1 < n && n % 2 == 0) *(float2*)((float*)out + line + c) = make_float2(u, v);
        else {
          if (c < n) ((float*)out)[line + c] = u;
          if (c + 1 < n) ((float*)out)[line + c + 1] = v;
        }
#else
        const u32 both = pair(u, v);
        if (c + 1 < n && n % 2 == 0) *(u32*)((unsigned short*)out + line + c) = both;
        else {
          if (c < n) ((unsigned short*)out)[line + c] = (unsigned short)both;
          if (c + 1 < n) ((unsigned short*)out)[line + c + 1] = (unsigned short)(both >> 16);
        }
#endif
      }
    }
#endif
  }
#if OUT == 0
  if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}
)";

const char* type_name(const WholeProduct& p) { return p.type == dtypes::float16 ? "f16" : "bf16"; }

/// d += a * b for 16 of the summed extent, or d = a * b.
std::string add_product(const WholeProduct& p) {
  const char* type = type_name(p);
  const int registers = p.columns / 2;
  std::string list, sums;
  for (int i = 0; i < registers; ++i) {
    list += cat(i ? ", " : "", "%", i);
    sums += cat(i ? ", " : "", "\"+f\"(d[", i, "])");
  }
  return cat(
      "static __device__ __forceinline__ void add_product(float* d, unsigned long long a, unsigned "
      "long long b, int add) {\n  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %",
      registers + 2, ", 0;\\nwgmma.mma_async.sync.aligned.m64n", p.columns, "k16.f32.", type, ".",
      type, " {", list, "}, %", registers, ", %", registers + 1, ", p, 1, 1, ", p.a_along_m ? 1 : 0,
      ", ", p.b_along_n ? 1 : 0, ";\\n}\\n\" : ", sums, " : \"l\"(a), \"l\"(b), \"r\"(add));\n}\n");
}

}  // namespace

std::string product_text(const WholeProduct& p) {
  auto define = [](const char* name, auto value) {
    return cat("#define ", name, " ", value, "\n");
  };
  return cat("// CUDA C written by weft; it needs no header.\n", define("GROUPS", p.groups),
             define("COLUMNS", p.columns), define("STAGES", p.stages), define("TOGETHER", 16),
             define("A_ALONG_M", int{p.a_along_m}), define("B_ALONG_N", int{p.b_along_n}),
             define("MODE", static_cast<int>(p.mode)), define("OUT", static_cast<int>(p.out)),
             define("NARROW", cat("\"", type_name(p), "\"")), add_product(p), kText);
}

}  // namespace weft::cuda
