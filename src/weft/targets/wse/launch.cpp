// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel: what the PEs lack is sent, the stages run, results stay where they are.
// A result of an earlier launch that is an argument now is read where it lies if the program can.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/patient_lock.h"
#include "weft/sim/measure.h"
#include "weft/targets/wse/check_plan.h"
#include "weft/targets/wse/device.h"
#include "weft/targets/wse/view.h"

namespace weft::wse {

namespace {

struct Data {
  PlanBuffer memory;
  Range range;  // of a parameter; empty otherwise
  std::string own;
  std::ptrdiff_t view_of = -1;
  std::vector<ViewIndex> index;
  bool viewed = false;  // some buffer is a view of it
  bool param() const { return range.end > range.begin; }
};

struct StagePlan {
  std::string name;
  std::vector<Distribution> inputs;  // that are sent
  Distribution output;
  bool collect = false, whole = false;
  bool stays = false;  // the result is left on the PEs
};

}  // namespace

class WseDevice::Launch {
 public:
  Launch(WseDevice& device, const Json& plan, std::span<const runtime::KernelArg> args)
      : device_(device), plan_(plan) {
    read_buffers(args);
    for (const Json& s : plan.at("stages").as_array()) read_stage(s);
    for (std::size_t j = 0; j < stages_.size(); ++j) stages_[j].stays = may_stay(j);
    if (const Json* takes = plan.find("takes"))
      for (const Json& t : takes->as_array())
        takes_.emplace_back(t.at("from").as_string(), t.at("to").as_string());
  }
  const std::vector<Data>& data() const { return data_; }
  /// Finds the results on one wafer that are arguments and that every PE of the next one has
  /// already, and fills the arrays there. Returns what lies on the next one then, by the ids of
  /// before. The caller holds `from.busy`.
  std::map<std::uint64_t, Left> take_over(const Resident& from, Resident& to) const;
  /// The caller holds `held.busy`.
  void run(Resident& held);

 private:
  void read_buffers(std::span<const runtime::KernelArg> args);
  void read_stage(const Json& s);
  bool may_stay(std::size_t stage) const;
  /// Brings a view up to date, or what is seen through it.
  void refresh(std::size_t buffer, bool back);
  MemcpyDataType type(const Distribution& d) const {
    return data_[d.array.buffer].memory.bytes == 2 ? MemcpyDataType::MEMCPY_16BIT
                                                   : MemcpyDataType::MEMCPY_32BIT;
  }
  void settle_range(Resident& held, const Range& range) {
    device_.settle(held, [&](const Left& left) { return left.range.overlaps(range); });
  }
  std::vector<Left> lefts(const Resident& held) const {
    std::lock_guard lock(device_.mutex_);
    return held.left;
  }
  void find_arguments(Resident& held);
  bool find_argument(const Left& left, std::size_t buffer, const std::set<std::string>& taken);
  std::optional<Left> take_over(const Left& left, std::size_t buffer,
                                const std::vector<std::uint32_t>& words, Resident& to) const;
  void make_room(Resident& held);
  void take(Resident& held);
  void send(Resident& held, const Distribution& input, bool written);
  void leave(Resident& held);

  WseDevice& device_;
  const Json& plan_;
  std::vector<Data> data_;
  std::vector<StagePlan> stages_;
  std::vector<std::pair<std::string, std::string>> takes_;  // from, to
  std::set<std::string> here_;                              // arrays that hold their input already
  std::map<std::uint64_t, std::vector<std::size_t>> used_;  // results that are arguments: takes
};

void WseDevice::Launch::read_buffers(std::span<const runtime::KernelArg> args) {
  const Json::Array& buffers = plan_.at("buffers").as_array();
  data_.resize(buffers.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Data& d = data_[i];
    d.memory.shape = numbers(buffers[i].at("shape"));
    d.memory.bytes = parse_dtype(buffers[i].at("dtype").as_string()).bytes();
    const auto bytes = static_cast<runtime::Bytes>(bytes_of(d.memory.shape, d.memory.bytes));
    if (buffers[i].at("param").as_bool()) {
      const runtime::KernelArg& a = args[next++];
      runtime::check_range(*a.storage, a.offset, bytes);
      d.memory.at = static_cast<char*>(a.storage->host()) + a.offset;
      d.range = {a.storage->address() + a.offset, a.storage->address() + a.offset + bytes};
    } else {
      d.own.resize(static_cast<std::size_t>(bytes));
      d.memory.at = d.own.data();
    }
    if (const Json* of = buffers[i].find("view_of")) {
      d.view_of = static_cast<std::ptrdiff_t>(of->as_int());
      for (const Json& index : buffers[i].at("index").as_array()) d.index.emplace_back(index);
    }
  }
  for (const Data& d : data_)
    if (d.view_of >= 0) data_[static_cast<std::size_t>(d.view_of)].viewed = true;
}

void WseDevice::Launch::read_stage(const Json& s) {
  std::vector<PlanIter> iters;
  for (const Json& i : s.at("iters").as_array()) iters.emplace_back(i);
  const std::int64_t width = plan_.at("width").as_int(), height = plan_.at("height").as_int();
  auto divided = [&](const Json& array) {
    return Distribution{iters, PlanArray(array), width, height};
  };
  StagePlan stage{s.at("name").as_string(), {}, divided(s.at("output"))};
  for (const Json& a : s.at("inputs").as_array())
    if (Distribution d = divided(a); !d.array.kept) stage.inputs.push_back(std::move(d));
  if (s.at("keeps").as_bool() && !stage.output.array.kept) stage.inputs.push_back(stage.output);
  stage.collect = s.at("collect").as_bool();
  if (const Json* whole = s.find("whole")) stage.whole = whole->as_bool();
  stages_.push_back(std::move(stage));
}

// Of a parameter that no later stage needs beside the wafer.
bool WseDevice::Launch::may_stay(std::size_t stage) const {
  const StagePlan& s = stages_[stage];
  const std::size_t buffer = s.output.array.buffer;
  const Data& d = data_[buffer];
  if (!s.collect || !s.whole || !d.param() || d.viewed || d.view_of >= 0) return false;
  for (std::size_t j = stage + 1; j < stages_.size(); ++j) {
    if (stages_[j].output.array.buffer == buffer) return false;
    for (const Distribution& input : stages_[j].inputs)
      if (input.array.buffer == buffer) return false;
  }
  return true;
}

void WseDevice::Launch::refresh(std::size_t buffer, bool back) {
  Data& view = data_[buffer];
  if (view.view_of < 0) return;
  Data& whole = data_[static_cast<std::size_t>(view.view_of)];
  const std::int64_t bytes = view.memory.bytes;
  for_each_viewed(
      view.memory.shape, whole.memory.shape, view.index, [&](std::int64_t k, std::int64_t element) {
        char *seen = view.memory.at + k * bytes, *there = whole.memory.at + element * bytes;
        std::memcpy(back ? there : seen, back ? seen : there, static_cast<std::size_t>(bytes));
      });
}

// Whether every array that holds the buffer has the result already or can take it.
bool WseDevice::Launch::find_argument(const Left& left, std::size_t buffer,
                                      const std::set<std::string>& taken) {
  if (left.range != data_[buffer].range || data_[buffer].viewed) return false;
  std::vector<std::size_t> takes;
  std::set<std::string> here;
  for (const StagePlan& s : stages_) {
    if (s.output.array.buffer == buffer && s.collect && !s.stays) return false;
    for (const Distribution& input : s.inputs) {
      if (input.array.buffer != buffer) continue;
      here.insert(input.array.name);
      if (input.array.name == left.array || taken.count(input.array.name)) continue;
      const auto k =
          std::find(takes_.begin(), takes_.end(), std::pair(left.array, input.array.name));
      if (k == takes_.end()) return false;
      takes.push_back(static_cast<std::size_t>(k - takes_.begin()));
    }
  }
  here_.insert(here.begin(), here.end());
  auto& used = used_[left.id];
  used.insert(used.end(), takes.begin(), takes.end());
  return true;
}

void WseDevice::Launch::find_arguments(Resident& held) {
  const std::set<std::string> taken = std::exchange(held.taken_over, {});
  for (std::size_t i = 0; i < data_.size(); ++i) {
    if (!data_[i].param()) continue;
    for (const Left& left : lefts(held))
      if (left.range.overlaps(data_[i].range) && !find_argument(left, i, taken))
        settle_range(held, data_[i].range);
  }
}

// The arrays of one argument, from the words of a result of another program: only where each PE has
// all that it reads.
std::optional<Left> WseDevice::Launch::take_over(const Left& left, std::size_t buffer,
                                                 const std::vector<std::uint32_t>& words,
                                                 Resident& to) const {
  const Data& d = data_[buffer];
  if (left.range != d.range || left.bytes != d.memory.bytes || d.viewed) return std::nullopt;
  std::vector<const Distribution*> readers;
  for (const StagePlan& s : stages_) {
    if (s.output.array.buffer == buffer) return std::nullopt;
    for (const Distribution& input : s.inputs)
      if (input.array.buffer == buffer) readers.push_back(&input);
  }
  // The element's position in memory is the same whatever the shapes.
  using Place = Distribution::Place;
  const std::vector<Place> had = left.how.places(left.shape, left.boxes);
  const Distribution* home = nullptr;  // an array that holds the whole result
  std::vector<std::vector<std::uint32_t>> fills;
  for (const Distribution* reader : readers) {
    if (reader->width != left.how.width || reader->height != left.how.height) return std::nullopt;
    std::vector<std::uint32_t> fill(static_cast<std::size_t>(reader->words()));
    std::set<std::int64_t> elements;
    for (const Place& p : reader->places(d.memory.shape, true)) {
      const auto at = std::lower_bound(had.begin(), had.end(), Place{p.pe, p.element, 0});
      if (at == had.end() || at->pe != p.pe || at->element != p.element) return std::nullopt;
      fill[p.word] = words[at->word];
      elements.insert(p.element);
    }
    std::int64_t all = 1;
    for (std::int64_t n : d.memory.shape) all *= n;
    if (static_cast<std::int64_t>(elements.size()) == all) home = reader;
    fills.push_back(std::move(fill));
  }
  if (!home) return std::nullopt;
  const Timing timing = Timing::of(to.runtime->layout().arch);
  const std::int64_t rate = (to.runtime->layout().arch == Arch::wse2 ? 2 : 4) * (4 / left.bytes);
  for (std::size_t k = 0; k < readers.size(); ++k) {
    to.runtime->place(readers[k]->array.name, fills[k], type(*readers[k]));
    to.taken_over.insert(readers[k]->array.name);
    to.taking_over += timing.bulk_setup + 2 * timing.dsr_load + timing.dsr_use - 1 +
                      (readers[k]->array.size + rate - 1) / rate;
  }
  return Left{0, left.range, home->array.name, *home, left.bytes, d.memory.shape, true};
}

std::map<std::uint64_t, Left> WseDevice::Launch::take_over(const Resident& from,
                                                           Resident& to) const {
  std::map<std::uint64_t, Left> out;
  for (const Left& left : lefts(from)) {
    std::size_t users = 0, buffer = 0;
    for (std::size_t i = 0; i < data_.size(); ++i)
      if (data_[i].param() && left.range.overlaps(data_[i].range)) ++users, buffer = i;
    if (users != 1) continue;
    if (std::optional<Left> there = take_over(left, buffer, from.peek(left), to))
      out.emplace(left.id, std::move(*there));
  }
  return out;
}

// What this launch writes over goes back, unless it is written anew in the same place.
void WseDevice::Launch::make_room(Resident& held) {
  std::set<std::string> written;
  for (const StagePlan& s : stages_) {
    written.insert(s.output.array.name);
    for (const Distribution& input : s.inputs)
      if (!here_.count(input.array.name)) written.insert(input.array.name);
  }
  std::set<std::string> taken;
  for (const auto& [id, takes] : used_)
    for (std::size_t k : takes) taken.insert(takes_[k].second);
  for (const Left& left : lefts(held)) {
    const auto used = used_.find(left.id);
    const bool moves = used != used_.end() && !used->second.empty();
    if (moves || (!written.count(left.array) && !taken.count(left.array))) continue;
    const bool again = std::any_of(stages_.begin(), stages_.end(), [&](const StagePlan& s) {
      return s.stays && data_[s.output.array.buffer].range == left.range;
    });
    if (!again) device_.settle(held, [&](const Left& l) { return l.id == left.id; });
  }
}

void WseDevice::Launch::take(Resident& held) {
  SdkRuntime& rt = *held.runtime;
  for (const auto& [id, takes] : used_) {
    for (std::size_t k : takes) {
      rt.launch(rt.get_id(cat("take", k)), {}, {}, false);
      held.sent.erase(takes_[k].second);
    }
    std::lock_guard lock(device_.mutex_);
    for (Left& left : held.left)
      if (left.id == id && !takes.empty()) left.array = takes_[takes[0]].second;
  }
}

void WseDevice::Launch::send(Resident& held, const Distribution& input, bool written) {
  const PlanArray& a = input.array;
  if (here_.count(a.name)) return;
  refresh(a.buffer, false);
  std::vector<std::uint32_t> words = input.words_of(data_[a.buffer].memory);
  std::vector<std::uint32_t>& sent = held.sent[a.name];
  if (!written && sent == words) return;
  held.runtime->memcpy_h2d(held.runtime->get_id(a.name), words.data(),
                           static_cast<std::int64_t>(words.size()),
                           {0, 0, static_cast<std::int32_t>(input.width),
                            static_cast<std::int32_t>(input.height), a.size},
                           false, type(input), MemcpyOrder::ROW_MAJOR, false);
  sent = std::move(words);
}

// Results are where they were computed; what their memory was to receive before is of no use.
void WseDevice::Launch::leave(Resident& held) {
  std::lock_guard lock(device_.mutex_);
  for (const StagePlan& s : stages_) {
    if (!s.stays) continue;
    const Data& d = data_[s.output.array.buffer];
    device_.forget(d.range);
    held.left.push_back(
        {++device_.lefts_, d.range, s.output.array.name, s.output, d.memory.bytes, d.memory.shape});
  }
}

void WseDevice::Launch::run(Resident& held) {
  SdkRuntime& rt = *held.runtime;
  {
    std::lock_guard lock(device_.mutex_);
    rt.fabric().trace_to(device_.trace_);
  }
  if (!held.checked) {  // what is left is put back later
    for (const StagePlan& s : stages_)
      if (s.stays) s.output.check(data_[s.output.array.buffer].memory.shape);
    held.checked = true;
  }
  rt.fabric().report_begin();
  held.before = rt.fabric().stats();
  held.stages.clear();
  rt.pass(std::exchange(held.taking_over, 0));
  find_arguments(held);
  make_room(held);
  take(held);
  for (std::size_t j = 0; j < stages_.size(); ++j) {
    const StagePlan& s = stages_[j];
    for (const Distribution& input : s.inputs)
      send(held, input, input.array.name == s.output.array.name);
    const Cycle begun = rt.fabric().now();
    rt.launch(rt.get_id(cat("stage", j)), {}, {}, false);
    held.stages.emplace_back(s.name, rt.fabric().now() - begun);
    if (!s.collect || s.stays) continue;
    const Data& to = data_[s.output.array.buffer];
    const Left now{0, {}, s.output.array.name, s.output, to.memory.bytes, to.memory.shape};
    s.output.put_back(held.copy_back(now), to.memory);
    refresh(s.output.array.buffer, true);
  }
  leave(held);
  rt.fabric().report_end();
  runtime::StatReport stats = held.report();
  sim::count_cycles(device_, stats.get("fabric.cycles"));
  rt.fabric().trace_to(nullptr);
  std::lock_guard lock(device_.mutex_);
  device_.stats_ = std::move(stats);
  device_.reported_ = &held;
}

std::shared_ptr<Resident> WseDevice::resident(std::uint64_t executable, std::size_t kernel,
                                              const Layout& layout, const Launch& work) {
  static thread_local const std::shared_ptr<void> thread = std::make_shared<char>();
  std::vector<std::shared_ptr<Resident>> gone;
  std::shared_ptr<Resident> held;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [owner, wafer] : resident_)
      if (owner.expired()) gone.push_back(wafer);
    if (const auto mine = resident_.find(thread); mine != resident_.end()) held = mine->second;
  }
  for (const auto& wafer : gone) retire(wafer, true);
  if (held && held->executable == executable && held->kernel == kernel) return held;
  auto next = std::make_shared<Resident>();
  next->executable = executable;
  next->kernel = kernel;
  RuntimeOptions options;
  options.threads = threads_;
  next->runtime = std::make_unique<SdkRuntime>(layout, options);
  next->runtime->load();
  std::map<std::uint64_t, Left> taken;
  if (held) {
    std::lock_guard busy(held->busy);
    const Cycle from = held->runtime->fabric().now();
    taken = work.take_over(*held, *next);
    // What nobody takes over goes back while the program that left it is there.
    settle(*held, [&](const Left& left) { return !taken.count(left.id); });
    sim::count_cycles(*this, held->runtime->fabric().now() - from);
  }
  next->runtime->run();
  std::lock_guard lock(mutex_);
  for (auto& [id, left] : taken) {
    // Unless its memory has been freed or written meanwhile.
    if (!std::erase_if(held->left, [&, was = id](const Left& l) { return l.id == was; })) continue;
    left.id = ++lefts_;
    next->left.push_back(std::move(left));
  }
  if (reported_ == held.get()) reported_ = nullptr;
  resident_.insert_or_assign(thread, next);
  return next;
}

runtime::Event WseDevice::launch(runtime::Executable& executable, std::size_t kernel,
                                 std::span<const runtime::KernelArg> args,
                                 std::span<const std::int64_t>) {
  auto& loaded = static_cast<WseExecutable&>(executable);
  const WseKernel& k = loaded.kernels.at(kernel);
  Launch work(*this, k.plan, args);
  const std::shared_ptr<Resident> held = resident(loaded.id, kernel, k.layout, work);
  for (const Data& d : work.data())
    if (d.param()) bring_back(d.range, held.get());
  try {
    const auto busy = patient_lock(held->busy);
    work.run(*held);
  } catch (...) {
    retire(held, true);  // a fault leaves nothing behind
    throw;
  }
  return {};
}

}  // namespace weft::wse
