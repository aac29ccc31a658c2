// SPDX-License-Identifier: Apache-2.0
// Random programs under random legal schedules, built for every target whose device is this host,
// run there and compared bit by bit with the interpreter's result for the program before its
// schedule. Values are small integers, so sums are exact in any order. A failure prints target,
// seed, program, steps and source.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "programs.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_races.h"
#include "weft/target/backend.h"
#include "weft/target/host_plan.h"
#include "weft/target/pipeline.h"

namespace weft::schedule::testing {
namespace {

/// Bytes behind every tensor that no kernel may touch.
constexpr std::size_t kGuardBytes = 128;
constexpr unsigned char kGuard = 0x5a;

/// Inputs in -2..2: four chained matrix products stay below 2^24, so float32 holds every sum
/// exactly.
Tensors small_tensors(const ir::PrimFunc& f, std::uint32_t seed) {
  Tensors t = make_tensors(f, seed);
  for (auto& values : t.data) {
    for (float& v : values) v = std::trunc(v / 3);
  }
  return t;
}

/// Calls `main` of the module on the device; t is both input and result. The text is empty, or says
/// which guard was overwritten.
std::string call_on(const Ref<runtime::Module>& module, const Ref<runtime::Device>& device,
                    Tensors& t) {
  auto function = make_ref<runtime::Function>(module, "main", device);
  std::vector<Ref<runtime::Storage>> storages;
  std::vector<runtime::CallArg> args;
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const std::size_t bytes = t.data[i].size() * sizeof(float);
    std::vector<unsigned char> image(bytes + kGuardBytes, kGuard);
    std::memcpy(image.data(), t.data[i].data(), bytes);
    storages.push_back(device->allocate(image.size()));
    device->upload(*storages.back(), 0, image.data(), image.size());
    args.push_back({storages.back().get(), 0, dtypes::float32, t.shapes[i], {}, 0, 0});
  }
  function->call(args).wait();
  std::string overrun;
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const std::size_t bytes = t.data[i].size() * sizeof(float);
    std::vector<unsigned char> image(bytes + kGuardBytes);
    device->download(image.data(), *storages[i], 0, image.size());
    std::memcpy(t.data[i].data(), image.data(), bytes);
    const bool kept = std::all_of(image.begin() + static_cast<std::ptrdiff_t>(bytes), image.end(),
                                  [](unsigned char c) { return c == kGuard; });
    if (!kept) overrun += cat("bytes behind parameter ", i, " were overwritten\n");
  }
  return overrun;
}

/// Empty when the module computes on the device what `meaning` computes in the interpreter.
std::string difference(const ir::PrimFunc& meaning, const Ref<runtime::Module>& module,
                       const Ref<runtime::Device>& device, std::uint32_t seed) {
  Tensors want = small_tensors(meaning, seed), got = want;
  ir::interpret(meaning, want.args());
  std::string out = call_on(module, device, got);
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    for (std::size_t k = 0; k < want.data[i].size(); ++k) {
      const float x = want.data[i][k], y = got.data[i][k];
      if (x == y) continue;  // a NaN is a value never written: a difference
      return out + cat("parameter ", i, " element ", k, ": expected ", x, ", got ", y, "\n");
    }
  }
  return out;
}

std::string steps_of(const Schedule& sch) {
  std::string text;
  const Json json = sch.trace().to_json();
  for (const Json& step : json.at("steps").as_array()) {
    if (!step.at(0).as_string().starts_with("get_")) text += step.dump() + "\n";
  }
  return text;
}

bool attempt(const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::schedule) throw;
    return false;
  }
}

/// What passes between kernels is global; a kernel's own scratch is mostly shared where a group has
/// threads (with local the threads may ask for each other's values, which lowering must refuse) and
/// local where it has one.
void scope_buffers(Schedule& sch, Random& random, bool threads) {
  for (const BlockRef& b : sch.get_child_blocks(sch.get_block("root"))) {
    const ir::Block root = ir::as<ir::BlockRealizeNode>(sch.func()->body)->block;
    const ir::Buffer buffer = find_block(sch.mod(), b)->realize()->block->writes.at(0).buffer;
    if (std::find(root->alloc_buffers.begin(), root->alloc_buffers.end(), buffer) ==
        root->alloc_buffers.end())
      continue;
    int nests = 1;
    if (const auto* seq = ir::as<ir::SeqNode>(root->body)) {
      nests = static_cast<int>(std::count_if(
          seq->stmts.begin(), seq->stmts.end(),
          [&](const ir::Stmt& s) { return ir::used_buffers(s).count(buffer.get()) > 0; }));
    }
    const char* scope = nests > 1 ? "global" : threads && !random.chance(25) ? "shared" : "local";
    if (buffer->scope != scope) attempt([&] { sch.set_scope(b, 0, scope); });
  }
}

/// Every loop nest of a kernel language runs on a grid: the outer loop of each block's nest becomes
/// the group axis, with threads the next one the thread axis; where neither is legal, a group of
/// one.
void bind_nests(Schedule& sch, bool threads) {
  for (const BlockRef& b : sch.get_child_blocks(sch.get_block("root"))) {
    const auto loops = sch.get_loops(b);
    if (!loops.empty() && attempt([&] { sch.bind(loops[0], "blockIdx.x"); })) {
      if (threads && loops.size() > 1) attempt([&] { sch.bind(loops[1], "threadIdx.x"); });
      continue;
    }
    attempt([&] {
      sch.bind(loops.empty() ? sch.add_unit_loop(b) : sch.add_unit_loop(loops[0]), "blockIdx.x");
    });
  }
}

/// Serial loops of several statements become software pipelines, some loops store past the caches.
void annotate_loops(Schedule& sch, Random& random) {
  std::vector<std::pair<ir::Var, int>> loops;  // with their statements
  ir::for_each_stmt(sch.func()->body, [&](const ir::Stmt& s) {
    const auto* loop = ir::as<ir::ForNode>(s);
    if (!loop || !loop->annotations.empty()) return;
    const auto* body = ir::as<ir::SeqNode>(loop->body);
    const bool serial = loop->for_kind == ir::ForKind::serial;
    loops.emplace_back(loop->var, body && serial ? static_cast<int>(body->stmts.size()) : 1);
  });
  for (const auto& [var, statements] : loops) {
    if (random.chance(10)) {
      attempt([&] { sch.annotate(LoopRef{var}, "nontemporal", Json(true)); });
    } else if (statements > 1 && random.chance(70)) {
      Json stages = Json::array(), order = Json::array(), copies = Json::array();
      std::int64_t stage = 0;
      for (int i = 0; i < statements; ++i) {
        if (i > 0 && random.chance(50)) stage += random.between(1, 2);
        stages.push_back(Json(stage));
        order.push_back(Json(random.chance(90) ? i : statements - 1 - i));
      }
      copies.push_back(Json(0));
      attempt([&] { sch.annotate(LoopRef{var}, "software_pipeline_stage", stages); });
      if (random.chance(50))
        attempt([&] { sch.annotate(LoopRef{var}, "software_pipeline_order", order); });
      if (random.chance(50))
        attempt([&] { sch.annotate(LoopRef{var}, "software_pipeline_async_stages", copies); });
    }
  }
}

/// Inner loops of blocks become vectors of two, four or eight where that is legal.
void vectorize_blocks(Schedule& sch, Random& random) {
  for (const BlockRef& b : sch.get_child_blocks(sch.get_block("root"))) {
    const auto loops = sch.get_loops(b);
    if (loops.empty() || random.chance(20)) continue;
    attempt([&] {
      const auto parts = sch.split(loops.back(), {std::nullopt, 2 << random.between(0, 2)});
      sch.vectorize(parts[1]);
    });
  }
}

/// One program under its schedule, all from the seed.
struct Case {
  std::string program;
  ir::PrimFunc meaning;
  std::unique_ptr<Schedule> sch;
};

Case make_case(std::uint32_t seed, const Choices& choices, bool grid, bool vectors = false) {
  Random random(seed);
  Case out;
  out.program = random_program(random);
  out.meaning = parse(out.program);
  out.sch = std::make_unique<Schedule>(out.meaning);
  Driver driver(*out.sch, random, choices);
  for (int steps = random.between(3, 16); steps > 0; --steps) {
    try {
      driver.step();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::schedule) throw;  // a refused step leaves the program as it was
    }
  }
  if (grid) {
    const bool threads = random.chance(60);
    scope_buffers(*out.sch, random, threads);
    bind_nests(*out.sch, threads);
  }
  if (vectors) vectorize_blocks(*out.sch, random);
  annotate_loops(*out.sch, random);
  return out;
}

Ref<runtime::Device> device_or_null(const std::string& target) {
  const std::string name = target.substr(0, target.find(':'));
  for (const DeviceStatus& s : all_devices()) {
    if ((s.name == name || s.name == name + ":0") && s.available) return open_device(target);
  }
  return nullptr;
}

/// WEFT_RANDOM_SCALE=20 tries twenty times as many seeds, for a long run by hand.
std::uint32_t scale() {
  const char* text = std::getenv("WEFT_RANDOM_SCALE");
  return text == nullptr ? 1 : static_cast<std::uint32_t>(std::max(1, std::atoi(text)));
}

struct Plan {
  const char* target;
  std::uint32_t first, count;  // seeds
  bool grid;                   // loop nests are bound to a grid
  std::vector<std::string> scopes;
  std::string spoken = {};  // of vectors in the text; "": no block is vectorized on purpose
};

void conform(const Plan& plan) {
  Ref<runtime::Device> device = device_or_null(plan.target);
  if (!device) GTEST_SKIP() << "no device for the target " << plan.target;
  const Choices choices{{}, plan.scopes};
  std::map<std::string, std::uint32_t> refusals;
  std::uint32_t refused = 0, provocations = 0, compared = 0, pipelined = 0;
  std::uint32_t spoken = 0;
  const std::uint32_t count = plan.count * scale();
  for (std::uint32_t seed = plan.first; seed < plan.first + count; ++seed) {
    Case c;
    Ref<runtime::Module> module;
    const auto story = [&] {
      return cat("target ", plan.target, " seed ", seed, "\n", c.program,
                 c.sch ? steps_of(*c.sch) + c.sch->show() : std::string(),
                 module ? module->source() : std::string());
    };
    try {
      c = make_case(seed, choices, plan.grid, !plan.spoken.empty());
      try {
        module = build(c.sch->mod(), plan.target);
      } catch (const Error& e) {
        // A target may refuse, with a reason; the interface counts how often.
        if (e.kind() != ErrorKind::lower && e.kind() != ErrorKind::emit) throw;
        ++refusals[e.code()];
        // Asked for on purpose: exchanges through private memory, pipelines that cannot be.
        const bool provoked = e.code() == "lower.private.exchanged" ||
                              e.code().starts_with("lower.pipeline.") ||
                              e.code() == "lower.nontemporal.nothing";
        ++(provoked ? provocations : refused);
        continue;
      }
      const std::string found = difference(c.meaning, module, device, seed);
      ++compared;
      if (module->source().find(plan.spoken) != std::string::npos) ++spoken;
      if (c.sch->show().find("software_pipeline_stage") != std::string::npos) ++pipelined;
      ASSERT_EQ(found, "") << story();
    } catch (const Error& e) {
      FAIL() << e.what() << "\n" << story();
    }
  }
  std::string reasons;
  for (const auto& [slug, n] : refusals) reasons += cat(" ", slug, " ", n);
  ::testing::Test::RecordProperty("compared", static_cast<int>(compared));
  ::testing::Test::RecordProperty("refused", static_cast<int>(refused));
  std::printf(
      "%s: seeds %u to %u, %u compared (%u with pipelines), %u refused, %u as provoked:%s\n",
      plan.target, plan.first, plan.first + count - 1, compared, pipelined, refused, provocations,
      reasons.c_str());
  EXPECT_GE(spoken * 10, compared) << "hardly any text says " << plan.spoken;
  EXPECT_LT(provocations * 2, count) << "hardly anything is left to compare:" << reasons;
  EXPECT_LT(refused * 5, count) << "refused one in five or more:" << reasons;
}

// 300 comparisons and more remain even when every target refuses as much as it may.
TEST(conformance_random, cpu) { conform({"cpu", 100'001, 300, false, {"global", "local"}}); }
TEST(conformance_random, c) { conform({"c", 200'001, 80, false, {"global", "shared", "local"}}); }
TEST(conformance_random, c_vectors) {
  conform({"c:vector_bytes=16", 250'001, 30, false, {"global", "local"}, "vector_size("});
  conform({"c:vector_bytes=32", 260'001, 30, false, {"global", "local"}, "vector_size("});
}
TEST(conformance_random, opencl) { conform({"opencl", 300'001, 60, true, {"global"}}); }
// No loop is bound: the default schedule for grids does it.
TEST(conformance_random, opencl_default_schedule) {
  conform({"opencl", 350'001, 30, false, {"global"}});
}
TEST(conformance_random, ref) {
  conform({"ref", 400'001, 60, false, {"global", "shared", "local"}});
}

/// A matrix product whose tiles the threads of a group fetch together, the loop over tiles
/// pipelined at random: which stage uses them, in which order, with or without asynchronous copies.
Case pipelined_product(Random& random, bool* deep) {
  const int tile = random.between(2, 4), threads = random.between(2, 4);
  const int m = tile * threads * random.between(1, 2), k = random.between(1, 5) * threads;
  const int step = random.chance(50) ? threads : 1;
  Case out;
  out.program = matmul(m, m, k);
  out.meaning = parse(out.program);
  out.sch = std::make_unique<Schedule>(out.meaning);
  Schedule& sch = *out.sch;
  const BlockRef c = sch.get_block("C"), back = sch.cache_write(c, 0, "local");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, threads, tile}), j = sch.split(l[1], {None, threads, tile}),
             r = sch.split(l[2], {None, step});
  sch.reorder({i[0], j[0], i[1], j[1], r[0], r[1], i[2], j[2]});
  sch.reverse_compute_at(back, j[1]);
  sch.bind(i[0], "blockIdx.y");
  sch.bind(j[0], "blockIdx.x");
  sch.bind(i[1], "threadIdx.y");
  sch.bind(j[1], "threadIdx.x");
  for (int side : {0, 1}) {
    const BlockRef fetch = sch.cache_read(c, side, "shared");
    sch.compute_at(fetch, r[0], true);
    const auto loops = sch.get_loops(fetch);
    const LoopRef all = sch.fuse({loops[loops.size() - 2], loops[loops.size() - 1]});
    const auto parts = sch.split(all, {None, threads, threads});
    sch.bind(parts[1], "threadIdx.y");
    sch.bind(parts[2], "threadIdx.x");
  }
  sch.decompose_reduction(c, r[0]);
  const auto number = [](int a, int b, int d) {
    Json list = Json::array();
    for (int n : {a, b, d}) list.push_back(Json(n));
    return list;
  };
  const int use = random.between(1, 3);
  const bool apart = random.chance(30);
  sch.annotate(r[0], "software_pipeline_stage", number(0, apart && use > 1 ? 1 : 0, use));
  if (random.chance(50))
    sch.annotate(r[0], "software_pipeline_order",
                 random.chance(50) ? number(0, 1, 2) : number(1, 2, 0));
  if (random.chance(70)) {
    Json copies = Json::array();
    copies.push_back(Json(0));
    if (apart) copies.push_back(Json(1));
    sch.annotate(r[0], "software_pipeline_async_stages", copies);
  }
  *deep = use > 1;
  return out;
}

TEST(conformance_random, opencl_pipelined_products) {
  const auto device = device_or_null("opencl");
  if (!device) GTEST_SKIP() << "no device for the target opencl";
  int deep = 0;
  const std::uint32_t count = 10 * scale();
  for (std::uint32_t seed = 370'001; seed < 370'001 + count; ++seed) {
    Random random(seed);
    bool is_deep = false;
    const Case c = pipelined_product(random, &is_deep);
    deep += is_deep;
    const auto story = [&] { return cat("seed ", seed, "\n", c.sch->show()); };
    try {
      // Lowered for cuda the copies are asynchronous: the race checker follows them there.
      const Target target = Target::parse("cuda:arch=sm_90");
      Backend& cuda = find_backend("cuda");
      const ir::PrimFunc lowered = pass::run_pipeline(cuda.pipeline(target), c.sch->func());
      const pass::RaceReport races = pass::check_races(lowered, cuda.info(target));
      ASSERT_TRUE(races.clean()) << story() << races.text() << ir::print(lowered);
      const auto module = build(c.sch->mod(), "opencl");
      ASSERT_EQ(difference(c.meaning, module, device, seed), "") << story() << module->source();
    } catch (const Error& e) {
      FAIL() << e.what() << "\n" << story();
    }
  }
  EXPECT_GT(deep, 0);
}

/// The ladder's GEMM-4 (tiles in registers, operands fetched together into shared memory) of
/// extents that its tiles hardly ever divide; every thread has something to do.
Case uneven_product(Random& random) {
  const int rows = 1 << random.between(1, 2), columns = 1 << random.between(1, 2);
  const int tile = 1 << random.between(1, 2), depth = 1 << random.between(1, 2);
  const int m = rows * tile * random.between(1, 3) - random.between(0, tile - 1);
  const int n = columns * tile * random.between(1, 3) - random.between(0, tile - 1);
  const int k = depth * random.between(2, 5) - random.between(0, depth - 1);
  int lanes = 4;  // fetched at once; each thread fetches as often as any other
  while (tile * depth % (std::max(rows, columns) * lanes) != 0) lanes /= 2;
  Case out;
  out.program = matmul(m, n, k);
  out.meaning = parse(out.program);
  out.sch = std::make_unique<Schedule>(out.meaning);
  Schedule& sch = *out.sch;
  const BlockRef c = sch.get_block("C"), back = sch.cache_write(c, 0, "local");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, rows, tile}), j = sch.split(l[1], {None, columns, tile}),
             r = sch.split(l[2], {None, depth});
  sch.reorder({i[0], j[0], i[1], j[1], r[0], r[1], i[2], j[2]});
  const LoopRef thread = sch.fuse({i[1], j[1]});
  sch.reverse_compute_at(back, thread);
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(thread, "threadIdx.x");
  for (int side : {0, 1}) {
    const BlockRef fetch = sch.cache_read(c, side, "shared");
    sch.compute_at(fetch, r[0]);
    const auto loops = sch.get_loops(fetch);
    const auto parts = sch.split(sch.fuse({loops[loops.size() - 2], loops[loops.size() - 1]}),
                                 {None, rows * columns, lanes});
    sch.bind(parts[1], "threadIdx.x");
    sch.vectorize(parts[2]);
  }
  if (random.chance(50)) sch.decompose_reduction(c, r[0]);
  return out;
}

TEST(conformance_random, opencl_uneven_products) {
  const auto device = device_or_null("opencl");
  if (!device) GTEST_SKIP() << "no device for the target opencl";
  std::uint32_t refused = 0, compared = 0;
  const std::uint32_t count = 24 * scale();
  for (std::uint32_t seed = 380'001; seed < 380'001 + count; ++seed) {
    Random random(seed);
    Case c;
    const auto story = [&] { return cat("seed ", seed, "\n", c.sch ? c.sch->show() : ""); };
    try {
      c = uneven_product(random);
    } catch (
        const Error& e) {  // a tile larger than the matrix: what is read is not provably written
      ASSERT_EQ(e.kind(), ErrorKind::schedule) << e.what();
      ++refused;
      continue;
    }
    try {
      const auto module = build(c.sch->mod(), "opencl");
      ASSERT_EQ(difference(c.meaning, module, device, seed), "") << story() << module->source();
      ++compared;
    } catch (const Error& e) {
      FAIL() << e.what() << "\n" << story();
    }
  }
  std::printf("uneven products: seeds 380001 to %u, %u compared, %u schedules refused\n",
              380'000 + count, compared, refused);
  EXPECT_LT(refused * 5, count);
}

/// Plants one fault in a lowered kernel: a stored value off by one, a constant off by one, or a
/// load that always reads the first element.
class Fault final : public ir::Rewriter {
 public:
  enum class Kind { none, store, constant, load };
  Fault(Kind kind, int at) : kind_(kind), at_(at) {}
  int places = 0;  // where this kind of fault could be

 protected:
  ir::Stmt rewrite_store(const ir::Stmt& s) override {
    const ir::Stmt out = ir::Rewriter::rewrite_store(s);
    const auto* t = ir::as<ir::StoreNode>(out);
    if (kind_ != Kind::store || t->value->dtype != dtypes::float32 || places++ != at_) return out;
    return make_ref<const ir::StoreNode>(t->buffer, t->value + 1, t->indices);
  }
  ir::Expr rewrite_load(const ir::Expr& e) override {
    const ir::Expr out = ir::Rewriter::rewrite_load(e);
    const auto* t = ir::as<ir::LoadNode>(out);
    std::int64_t known = 0;
    if (kind_ != Kind::load || t->indices.size() != 1 || t->indices[0]->dtype.lanes != 1 ||
        ir::is_const_int(t->indices[0], &known))
      return out;
    if (places++ != at_) return out;
    return make_ref<const ir::LoadNode>(t->dtype, t->buffer,
                                        ir::Exprs{ir::make_const(0, t->indices[0]->dtype)});
  }
  ir::Expr rewrite_default(const ir::Expr& e) override {
    const auto* t = ir::as<ir::FloatImmNode>(e);
    if (kind_ != Kind::constant || t == nullptr || places++ != at_)
      return ir::Rewriter::rewrite_default(e);
    return ir::make_const(t->value + 1, e->dtype);
  }

 private:
  Kind kind_;
  int at_;
};

/// What build does, with a fault planted between lowering and code generation. Null: no such place.
Ref<runtime::Module> build_with_fault(const ir::PrimFunc& f, const std::string& target_text,
                                      Fault::Kind kind, int at) {
  const Target target = Target::parse(target_text);
  Backend& backend = find_backend(target.name);
  const TargetInfo info = backend.info(target);
  SplitOptions split;
  split.vector_align = static_cast<int>(info.limit(limits::kVectorAlign, split.vector_align));
  split.whole = info.limit(limits::kWholeFunctions, 0) != 0;
  SplitFunction parts =
      split_host_device(f, pass::run_pipeline(backend.pipeline(target), f), split);
  Fault fault(kind, at);
  for (ir::PrimFunc& kernel : parts.kernels) {
    auto changed = ir::edit(kernel);
    changed->body = fault.rewrite(changed->body);
    kernel = changed;
  }
  if (kind != Fault::Kind::none && fault.places <= at) return nullptr;
  std::vector<runtime::HostPlan> plans;
  plans.push_back(std::move(parts.plan));
  return make_ref<runtime::Module>(backend.emit(parts.kernels, target), std::move(plans));
}

const char* const kPlain =
    "@T.prim_func\ndef main(A: T.Buffer((7, 9), \"float32\"), B: T.Buffer((7, 9), \"float32\")):\n "
    "   for i, j in T.grid(7, 9):\n"
    "        with T.block(\"B\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            "
    "B[vi, vj] = A[vi, vj] * T.float32(2)\n";

TEST(conformance_random, planted_faults_show) {
  const ir::PrimFunc plain = parse(kPlain);
  for (const char* target : {"cpu", "c"}) {
    const auto device = open_device(target);
    EXPECT_EQ(difference(plain, build_with_fault(plain, target, Fault::Kind::none, 0), device, 1),
              "");
    for (Fault::Kind kind : {Fault::Kind::store, Fault::Kind::constant, Fault::Kind::load}) {
      const auto module = build_with_fault(plain, target, kind, 0);
      ASSERT_NE(module, nullptr) << target << " has no place for fault " << static_cast<int>(kind);
      EXPECT_NE(difference(plain, module, device, 1).find("expected"), std::string::npos)
          << target << " fault " << static_cast<int>(kind) << "\n"
          << module->source();
    }
    EXPECT_EQ(build_with_fault(plain, target, Fault::Kind::store, 1), nullptr);
  }
}

// On random programs some faults change nothing (the start value of a maximum, a load of the only
// element), so most of them, not all, must show; without a fault the same path must agree.
TEST(conformance_random, planted_faults_in_random_programs_show) {
  const auto device = open_device("cpu");
  int planted = 0, shown = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const Case c = make_case(seed, {{}, {"global", "local"}}, false);
    Random random(seed);
    const auto kind = random.pick(
        std::vector<Fault::Kind>{Fault::Kind::store, Fault::Kind::constant, Fault::Kind::load});
    Ref<runtime::Module> sound, faulty;
    try {
      sound = build_with_fault(c.sch->func(), "cpu", Fault::Kind::none, 0);
      faulty = build_with_fault(c.sch->func(), "cpu", kind, 0);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::lower && e.kind() != ErrorKind::emit) throw;
      continue;
    }
    ASSERT_EQ(difference(c.meaning, sound, device, seed), "") << "seed " << seed;
    if (!faulty) continue;
    ++planted;
    if (!difference(c.meaning, faulty, device, seed).empty()) ++shown;
  }
  std::printf("%d faults planted, %d shown\n", planted, shown);
  EXPECT_GE(planted, 30);
  EXPECT_GE(shown * 4, planted * 3);
}

}  // namespace
}  // namespace weft::schedule::testing
