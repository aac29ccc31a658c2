// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/debug/debugger.h"

#include <algorithm>
#include <atomic>

#include "weft/base/patient_lock.h"

namespace weft::sim {

Debugger::Debugger(std::unique_ptr<Console> console) : console_(std::move(console)) {}

void Debugger::say(std::string_view text) {
  std::size_t at = 0;
  std::string out;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += wrapped(text.substr(at, end - at));
    out += '\n';
    at = end + 1;
  }
  console_->write(out);
}

void Debugger::quit_if_asked() const {
  if (!quitting_) return;
  throw Error(ErrorKind::fault, "debug.quit", "the debugger has ended the program")
      .help("nothing went wrong: quit, or the end of the commands, ends the program, too");
}

void Debugger::resume(Debuggee& machine, bool fresh) {
  patient_lock(mutex_).release();
  try {
    quit_if_asked();
    machine_ = &machine;
    if (fresh || known_ != &machine) {
      known_ = &machine;
      if (fresh) {
        ++launches_;
        previous_.reset();
        unit_ = 0;
        if (const std::vector<std::int64_t> busy = machine.busy_units(); !busy.empty())
          unit_ = busy.front();
        cycle_ = machine.unit_state(unit_).cycle;
      }
      resolve_all();
    }
    if (!fresh) return;
    std::vector<std::string> why;
    for (StopPoint& p : points_) {
      if (p.kind != StopPoint::launch || (p.value && p.value != launches_)) continue;
      ++p.hits;
      why.push_back(cat("breakpoint ", p.number, " (", p.text, ")"));
    }
    if (at_launch_) why.insert(why.begin(), "a program begins");
    if (why.empty()) return;
    say(cat("launch ", launches_, ": ", machine.describe()));
    if (std::string note = machine.note(); !note.empty()) say(cat("  ", note));
    stop(unit_, why);
    if (const UnitState state = machine.unit_state(unit_); state.place) {
      shown_.emplace(unit_, *state.place);
      alert_ = true;
    }
  } catch (...) {
    machine_ = nullptr;
    mutex_.unlock();
    throw;
  }
}

void Debugger::pause() {
  machine_ = nullptr;
  mutex_.unlock();
}

void Debugger::forget(Debuggee& machine) {
  const auto lock = patient_lock(mutex_);
  if (known_ != &machine) return;
  known_ = nullptr;
  for (StopPoint& p : points_) p.active = false, p.datum = {};
}

void Debugger::ended(std::int64_t cycles, const std::string& remark) {
  std::vector<std::string> why;
  for (StopPoint& p : points_) {
    if (p.kind != StopPoint::end || (p.value && p.value != launches_)) continue;
    ++p.hits;
    why.push_back(cat("breakpoint ", p.number, " (", p.text, ")"));
  }
  const bool stepping = go_ != Go::freely;
  if (stepping || !why.empty() || !remark.empty())
    say(cat("launch ", launches_, " has ended after ", cycles, " cycles"));
  if (!remark.empty()) say(cat("  ", remark));
  look_at_watches(-1, why);
  cycle_ = std::max(cycle_, cycles);
  if (!why.empty()) stop(unit_, why);
  if (stepping || go_ != Go::freely) at_launch_ = true;
  for (StopPoint& p : points_)
    if (p.kind == StopPoint::watch) p.last.clear();
}

void Debugger::failed(const Error& error) {
  if (quitting_ || !machine_) return;
  say(error.what());
  std::int64_t unit = previous_ ? previous_->first : unit_;
  stop(unit, {"the program failed; continue raises the error above"});
}

bool Debugger::arrived(std::int64_t unit, CodePlace place, std::int64_t cycle) {
  switch (go_) {
    case Go::freely: return false;
    case Go::cycles: return (go_unit_ < 0 || unit == go_unit_) && cycle >= go_cycle_;
    case Go::instruction: return (go_unit_ < 0 || unit == go_unit_) && --go_count_ <= 0;
    default: break;
  }
  if (unit != go_unit_) return false;
  const std::size_t depth = machine_->depth(unit);
  if (go_ == Go::out) return depth < go_depth_;
  if (go_ == Go::over && depth > go_depth_) return false;
  const SourceLine here = machine_->source(place);
  if (here.line && here.line == go_from_.line && here.file == go_from_.file && depth == go_depth_)
    return false;
  if (!here.line && go_from_.line) return false;  // code without a line belongs to the line before
  go_from_ = here;
  go_depth_ = depth;
  return --go_count_ <= 0;
}

void Debugger::look_at_watches(std::int64_t unit, std::vector<std::string>& why) {
  for (StopPoint& p : points_) {
    if (p.kind != StopPoint::watch || !p.active) continue;
    if (p.datum.unit >= 0 && unit >= 0 && p.datum.unit != unit) continue;
    std::string now(p.last.size(), '\0');
    const auto bytes = static_cast<std::size_t>(p.datum.type.bytes());
    if (now.empty() || bytes == 0) continue;
    p.datum.read(p.first, static_cast<std::int64_t>(now.size() / bytes), now.data());
    if (now == p.last) continue;
    ++p.hits;
    const auto each = static_cast<std::size_t>(p.format.type.bytes());
    std::string text = cat("watch ", p.number, " (", p.text, ")");
    int shown = 0, more = 0;
    for (std::size_t at = 0; at + each <= now.size(); at += each) {
      if (now.compare(at, each, p.last, at, each) == 0) continue;
      if (++shown > 4) {
        ++more;
        continue;
      }
      text += cat("\n  [", p.first + static_cast<std::int64_t>(at / each), "] ",
                  value_text(p.last.data() + at, p.format), " -> ",
                  value_text(now.data() + at, p.format));
    }
    if (more) text += cat("\n  and ", more, " more elements");
    if (previous_) {
      const SourceLine line = machine_->source(previous_->second);
      text += cat("\n  after *", machine_->number(previous_->second), " ",
                  machine_->instruction(previous_->second),
                  line.line ? cat(" (", line.file, ":", line.line, ")") : std::string(), " on ",
                  machine_->unit_name(previous_->first));
    }
    why.push_back(std::move(text));
    p.last = std::move(now);
  }
}

void Debugger::consider_change(std::int64_t unit, std::int64_t cycle) {
  std::vector<std::string> why;
  look_at_watches(unit, why);
  for (StopPoint& p : points_) {
    if (p.kind != StopPoint::cycle || !p.active || cycle < p.value) continue;
    if (p.on >= 0 && p.on != unit) continue;
    p.active = false;
    ++p.hits;
    why.push_back(cat("breakpoint ", p.number, " (", p.text, ")"));
  }
  if (go_ == Go::cycles && (go_unit_ < 0 || unit == go_unit_) && cycle >= go_cycle_)
    why.emplace_back("the cycle is reached");
  cycle_ = cycle;
  if (!why.empty()) stop(unit, why);
}

void Debugger::consider(std::int64_t unit, CodePlace place, std::int64_t cycle) {
  if (const auto shown = std::exchange(shown_, std::nullopt); shown) {
    look_for_points();
    if (*shown == std::pair(unit, place)) {
      cycle_ = cycle;
      previous_.emplace(unit, place);
      return;
    }
  }
  std::vector<std::string> why;
  look_at_watches(-1, why);
  for (StopPoint& p : points_) {
    if (!p.active || p.kind == StopPoint::watch || p.kind == StopPoint::launch ||
        p.kind == StopPoint::end)
      continue;
    if (p.on >= 0 && p.on != unit) continue;
    if (p.kind == StopPoint::cycle) {
      if (cycle < p.value) continue;
      p.active = false;
    } else if (p.kind != StopPoint::unit &&
               !std::binary_search(p.places.begin(), p.places.end(), place)) {
      continue;
    }
    ++p.hits;
    why.push_back(cat("breakpoint ", p.number, " (", p.text, ")"));
  }
  const bool there = arrived(unit, place, cycle);
  cycle_ = cycle;
  if (!why.empty() || there) stop(unit, why);
  previous_.emplace(unit, place);
}

void Debugger::stop(std::int64_t unit, const std::vector<std::string>& why) {
  unit_ = unit;
  list_line_ = 0;
  for (const std::string& text : why) say(cat("stopped: ", text));
  say_place(unit);
  go_ = Go::freely;
  at_launch_ = false;
  interact();
  look_for_points();
}

// Reports reach consider() only for a reason.
void Debugger::look_for_points() {
  alert_ = go_ != Go::freely;
  filter_.fill(0);
  for (const StopPoint& p : points_) {
    if (!p.active) continue;
    alert_ |= p.kind == StopPoint::watch || p.kind == StopPoint::cycle || p.kind == StopPoint::unit;
    for (CodePlace place : p.places) filter_[place / 64 % kFilter] |= 1ull << place % 64;
  }
}

void Debugger::interact() {
  while (true) {
    std::optional<std::string> line = console_->read();
    if (!line) {
      quitting_ = true;
      quit_if_asked();
    }
    try {
      if (execute(*line)) return;
    } catch (const Error& error) {
      quit_if_asked();
      say(error.what());
    }
  }
}

void Debugger::say_place(std::int64_t unit) {
  if (unit < 0 || unit >= machine_->unit_count()) return;
  const UnitState state = machine_->unit_state(unit);
  std::string text = cat(machine_->unit_name(unit), "  cycle ", state.cycle);
  if (!state.place) {
    say(cat(text, "  ", state.state));
    return;
  }
  const SourceLine line = machine_->source(*state.place);
  if (line.line) text += cat("  ", line.file, ":", line.line);
  if (!line.function.empty()) text += cat(" in ", line.function);
  if (state.state != "running") text += cat("  ", state.state);
  say(text);
  if (line.line) list_around(line.file, line.line, line.line, line.line);
  say(cat("  *", machine_->number(*state.place), "  ", machine_->instruction(*state.place)));
}

void Debugger::resolve_all() {
  for (StopPoint& p : points_) {
    p.active = false;
    p.places.clear();
    p.datum = {};
    try {
      resolve(p);
    } catch (const Error&) {
      p.active = false;  // it names what this program does not have; `breakpoints` says so
    }
  }
  look_for_points();
}

namespace {

/// "pe.csl" names "src/pe.csl"; "" names every file.
bool names_file(std::string_view given, std::string_view file) {
  if (given.empty() || given == file) return true;
  return file.size() > given.size() && file.ends_with(given) &&
         file[file.size() - given.size() - 1] == '/';
}

}  // namespace

void Debugger::resolve(StopPoint& p) {
  p.on = -1;
  if (!p.unit_name.empty()) {
    p.on = machine_->find_unit(p.unit_name);
    if (p.on < 0)
      throw Error(ErrorKind::value, "debug.unit", cat("there is no unit \"", p.unit_name, "\""))
          .note(cat("legal: ", machine_->legal_units()));
  }
  switch (p.kind) {
    case StopPoint::line: {
      std::vector<std::int64_t> lines;
      std::vector<std::string> files;
      machine_->each_line([&](CodePlace place, const SourceLine& l) {
        if (std::find(files.begin(), files.end(), l.file) == files.end()) files.push_back(l.file);
        if (!names_file(p.name, l.file)) return;
        if (l.line == p.value) p.places.push_back(place);
        lines.push_back(l.line);
      });
      if (!p.places.empty()) break;
      Error error(ErrorKind::value, "debug.place", cat("line \"", p.text, "\" has no code"));
      if (files.empty())
        error.note("the program has no source lines; legal: *N, an instruction (command code)");
      else if (lines.empty()) error.note(cat("files with code: ", join(files)));
      std::sort(lines.begin(), lines.end());
      lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
      auto near = std::lower_bound(lines.begin(), lines.end(), p.value);
      auto from = near - std::min<std::ptrdiff_t>(4, near - lines.begin()),
           to = near + std::min<std::ptrdiff_t>(4, lines.end() - near);
      std::vector<std::string> texts;
      for (auto i = from; i != to; ++i) texts.push_back(cat(*i));
      if (!texts.empty()) error.note(cat("lines with code nearby: ", join(texts)));
      throw error;
    }
    case StopPoint::function: {
      std::vector<std::string> known;
      machine_->each_function([&](CodePlace place, const std::string& name) {
        if (name == p.name) p.places.push_back(place);
        else if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      });
      if (!p.places.empty()) break;
      if (known.size() > 24) known.resize(24);
      throw Error(ErrorKind::value, "debug.place",
                  cat("\"", p.name, "\" names no place in the program"))
          .note(cat("legal: LINE, FILE:LINE, *N, cycle N, launch [N], end [N]",
                    known.empty() ? std::string() : cat(", or a function: ", join(known))))
          .help(did_you_mean(p.name, known));
    }
    case StopPoint::instruction: {
      std::optional<CodePlace> place = machine_->numbered(p.value, p.on < 0 ? unit_ : p.on);
      if (!place)
        throw Error(
            ErrorKind::index, "debug.place",
            cat(machine_->unit_name(p.on < 0 ? unit_ : p.on), " has no instruction ", p.value))
            .help("command code lists the instructions around the current one");
      p.places.push_back(*place);
      break;
    }
    case StopPoint::watch: watch_from_now_on(p); break;
    default: break;
  }
  std::sort(p.places.begin(), p.places.end());
  p.active = true;
}

void Debugger::watch_from_now_on(StopPoint& p) {
  const Selection s = select(p.name, p.on < 0 ? unit_ : p.on);
  p.datum = *s.datum;
  p.format = s.format;
  p.first = s.first;
  p.last = read_bytes(s);
}

std::string Debugger::read_bytes(const Selection& s) const {
  std::string bytes(static_cast<std::size_t>(s.count * s.datum->type.bytes()), '\0');
  s.datum->read(s.first, s.count, bytes.data());
  return bytes;
}

namespace {
std::atomic<Debugger*>& process_debugger() {
  static std::atomic<Debugger*> one{nullptr};
  return one;
}

class CallbackConsole final : public Console {
 public:
  explicit CallbackConsole(const weft_debug_console& calls) : calls_(calls) {}
  std::optional<std::string> read() override {
    std::string line(4096, '\0');
    const std::int32_t n = calls_.read(line.data(), static_cast<std::int32_t>(line.size()));
    if (n < 0) return std::nullopt;
    line.resize(std::min(line.size(), static_cast<std::size_t>(n)));
    return line;
  }
  void write(std::string_view text) override { calls_.write(std::string(text).c_str()); }

 private:
  weft_debug_console calls_;
};
}  // namespace

Debugger* debugger() { return process_debugger().load(std::memory_order_acquire); }

void attach_debugger(std::unique_ptr<Console> console) {
  // Machines keep the address while they run: it stays valid until the process ends.
  static std::vector<std::unique_ptr<Debugger>> all;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  all.push_back(std::make_unique<Debugger>(std::move(console)));
  process_debugger().store(all.back().get(), std::memory_order_release);
}

}  // namespace weft::sim

void weft_debug_attach(const weft_debug_console* console) {
  weft::sim::attach_debugger(std::make_unique<weft::sim::CallbackConsole>(*console));
}
