// SPDX-License-Identifier: Apache-2.0
// The command language: one function a command.

#include <algorithm>
#include <charconv>
#include <limits>

#include "weft/sim/debug/debugger.h"

namespace weft::sim {

/// What follows a command's name: words, with "on UNIT" taken off the end.
struct Debugger::Arguments {
  std::string_view command, usage;
  std::string text;       // without "on UNIT"
  std::string unit_name;  // empty: none given
  std::int64_t unit = -1;
  std::vector<std::string> words;

  [[noreturn]] void bad(std::string_view what) const {
    throw Error(ErrorKind::value, "debug.arguments", cat(command, ": ", what))
        .note(cat("legal: ", usage));
  }
  void none() const {
    if (!words.empty()) bad(cat("\"", text, "\" is too much"));
  }
  std::int64_t integer(std::string_view word, std::int64_t least) const {
    int base = 10;
    std::string_view digits = word;
    if (digits.starts_with("0x")) digits.remove_prefix(2), base = 16;
    std::int64_t n = 0;
    const auto [end, status] =
        std::from_chars(digits.data(), digits.data() + digits.size(), n, base);
    if (status != std::errc() || end != digits.data() + digits.size() || n < least)
      bad(cat("\"", word, "\" is not a number of at least ", least));
    return n;
  }
  /// The only word as a number; `otherwise` without one.
  std::int64_t count(std::int64_t otherwise) const {
    if (words.empty()) return otherwise;
    if (words.size() > 1) bad(cat("\"", text, "\" is not one number"));
    return integer(words[0], 1);
  }
};

struct Debugger::Command {
  std::string_view name, usage, help;
  bool (*run)(Debugger&, Arguments&);
};

namespace {

constexpr std::int64_t kMostElements = 4096;

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const std::vector<Debugger::Command>& Debugger::commands() {
  using D = Debugger;
  using A = Arguments;
  static const std::vector<Command> all = {
      {"step", "step [N] [on UNIT]", "go to the unit's next source line, into functions",
       [](D& d, A& a) { return d.step(a, Go::line); }},
      {"next", "next [N] [on UNIT]", "the same, over the functions that the line calls",
       [](D& d, A& a) { return d.step(a, Go::over); }},
      {"stepi", "stepi [N] [on UNIT]", "go to the unit's next instruction",
       [](D& d, A& a) { return d.step(a, Go::instruction); }},
      {"finish", "finish [on UNIT]", "go on until the unit's function has returned",
       [](D& d, A& a) { return d.step(a, Go::out); }},
      {"cycle", "cycle [N] [on UNIT]", "let N cycles pass (1)",
       [](D& d, A& a) { return d.step(a, Go::cycles); }},
      {"continue", "continue", "go on to the next breakpoint or watch",
       [](D& d, A& a) { return d.go_on(a); }},
      {"break",
       "break LINE | FILE:LINE | FUNCTION | *N | cycle N | launch [N] | end [N] | [on UNIT]",
       "stop there, on every unit or on one; *N is an instruction",
       [](D& d, A& a) { return d.add_break(a); }},
      {"watch", "watch VALUE [as TYPE] [on UNIT]", "stop when it has changed",
       [](D& d, A& a) { return d.add_watch(a); }},
      {"delete", "delete [NUMBER]", "remove a breakpoint or watch; without a number: all",
       [](D& d, A& a) { return d.remove(a); }},
      {"breakpoints", "breakpoints", "list breakpoints and watches",
       [](D& d, A& a) { return d.show_points(a); }},
      {"print", "print VALUE [as TYPE] [on UNIT]",
       "print a register, symbol or array: NAME, NAME[I], NAME[I:J], *ADDRESS[COUNT]",
       [](D& d, A& a) { return d.print(a); }},
      {"memory", "memory ADDRESS [COUNT] [TYPE] [on UNIT]", "print memory (16 words)",
       [](D& d, A& a) { return d.show_memory(a); }},
      {"where", "where [on UNIT]", "print the unit's cycle, source line and instruction",
       [](D& d, A& a) { return d.where(a); }},
      {"list", "list [LINE | FILE:LINE]", "print source lines; again: the lines that follow",
       [](D& d, A& a) { return d.list(a); }},
      {"code", "code [COUNT] [on UNIT]", "print the instructions around the current one",
       [](D& d, A& a) { return d.code(a); }},
      {"units", "units", "list the units that do something", [](D& d, A& a) { return d.units(a); }},
      {"unit", "unit NAME", "choose the unit that other commands are about",
       [](D& d, A& a) { return d.choose_unit(a); }},
      {"help", "help [COMMAND]", "explain the commands", [](D& d, A& a) { return d.help(a); }},
      {"quit", "quit", "end the program", [](D& d, A& a) { return d.quit(a); }},
  };
  return all;
}

bool Debugger::execute(std::string_view line) {
  line = trim(line);
  if (line.empty() || line[0] == '#') return false;
  Arguments a;
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string name(line.substr(0, end));
  std::vector<std::string> words;
  for (const std::string& w : split(line.substr(end), ' '))
    if (!trim(w).empty()) words.emplace_back(trim(w));
  if (const auto on = std::find(words.begin(), words.end(), "on"); on != words.end()) {
    a.unit_name = join({on + 1, words.end()}, " ");
    a.unit = a.unit_name.empty() ? -1 : machine_->find_unit(a.unit_name);
    if (a.unit < 0)
      throw Error(ErrorKind::value, "debug.unit", cat("there is no unit \"", a.unit_name, "\""))
          .note(cat("legal: ", machine_->legal_units()));
    words.erase(on, words.end());
  }
  a.words = std::move(words);
  a.text = join(a.words, " ");
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"s", "step"},  {"n", "next"},  {"si", "stepi"}, {"c", "continue"},
      {"b", "break"}, {"w", "watch"}, {"p", "print"},  {"bt", "where"},
      {"l", "list"},  {"q", "quit"},  {"x", "memory"}, {"h", "help"}};
  std::string_view full = name;
  for (const auto& [from, to] : kShort)
    if (full == from) full = to;
  const std::vector<Topic> topics = machine_->topics();
  std::vector<std::string> known, starts;
  for (const Command& c : commands()) known.emplace_back(c.name);
  for (const Topic& t : topics) known.push_back(t.name);
  for (const std::string& k : known)
    if (k.starts_with(full)) starts.push_back(k);
  if (std::find(known.begin(), known.end(), full) == known.end() && starts.size() == 1)
    full = starts.front();
  for (const Command& c : commands()) {
    if (c.name != full) continue;
    a.command = c.name, a.usage = c.usage;
    return c.run(*this, a);
  }
  for (const Topic& t : topics) {
    if (t.name != full) continue;
    const std::string usage = cat(t.name, " [on UNIT | all]");
    a.command = t.name, a.usage = usage;
    show_topic(t, a);
    return false;
  }
  Error error(ErrorKind::value, "debug.command", cat("\"", name, "\" is no command"));
  error.note(cat("legal: ", join(known)));
  throw error.help(starts.size() > 1 ? cat("it begins ", join(starts)) : did_you_mean(name, known));
}

std::int64_t Debugger::unit_of(const Arguments& a) const { return a.unit < 0 ? unit_ : a.unit; }

bool Debugger::step(Arguments& a, Go how) {
  if (how == Go::out) a.none();
  go_count_ = a.count(1);
  go_unit_ = unit_of(a);
  const UnitState state = machine_->unit_state(go_unit_);
  go_depth_ = machine_->depth(go_unit_);
  go_from_ = state.place ? machine_->source(*state.place) : SourceLine{};
  if (how == Go::out && go_depth_ <= 1)
    throw Error(ErrorKind::value, "debug.finish",
                cat(machine_->unit_name(go_unit_), " is not inside a function that returns"))
        .help("continue, or break at a line");
  if (how == Go::cycles) {
    // A number beyond all cycles is the end.
    const std::int64_t from = a.unit < 0 ? cycle_ : std::max(cycle_, state.cycle);
    if (a.unit < 0) go_unit_ = -1;
    go_cycle_ = from + std::min(go_count_, std::numeric_limits<std::int64_t>::max() - from);
  }
  go_ = how;
  return true;
}

bool Debugger::go_on(Arguments& a) {
  a.none();
  go_ = Go::freely;
  return true;
}

bool Debugger::add_break(Arguments& a) {
  StopPoint p;
  p.number = next_number_;
  p.unit_name = a.unit < 0 ? std::string() : machine_->unit_name(a.unit);
  p.text = a.text;
  if (!p.unit_name.empty()) p.text += cat(p.text.empty() ? "" : " ", "on ", p.unit_name);
  const std::string& first = a.words.empty() ? p.name : a.words[0];
  const bool counted = first == "cycle" || first == "launch" || first == "end";
  if (a.words.size() > 2 || (a.words.size() == 2 && !counted))
    a.bad(cat("\"", a.text, "\" is no place"));
  if (a.words.empty()) {
    if (p.unit_name.empty()) a.bad("a place is missing");
    p.kind = StopPoint::unit;
  } else if (counted) {
    p.kind = first == "cycle"    ? StopPoint::cycle
             : first == "launch" ? StopPoint::launch
                                 : StopPoint::end;
    if (p.kind != StopPoint::cycle && a.unit >= 0) a.bad(cat("\"", first, "\" is of all units"));
    if (a.words.size() == 2) p.value = a.integer(a.words[1], p.kind == StopPoint::cycle ? 0 : 1);
    else if (p.kind == StopPoint::cycle) a.bad("the cycle's number is missing");
    if (p.kind == StopPoint::cycle && p.value < cycle_)
      throw Error(ErrorKind::value, "debug.cycle", cat("cycle ", p.value, " has passed"))
          .note(cat("the machine is at cycle ", cycle_));
  } else if (first[0] == '*') {
    p.kind = StopPoint::instruction;
    p.value = a.integer(std::string_view(first).substr(1), 0);
  } else if (const std::size_t colon = first.rfind(':');
             is_number(first) || (colon != first.npos && is_number(first.substr(colon + 1)))) {
    p.kind = StopPoint::line;
    if (colon != first.npos) p.name = first.substr(0, colon);
    p.value = a.integer(colon == first.npos ? first : first.substr(colon + 1), 1);
    // A line alone is one of the file at hand.
    if (colon == first.npos) {
      const UnitState state = machine_->unit_state(unit_);
      if (state.place) p.name = machine_->source(*state.place).file;
    }
  } else {
    p.kind = StopPoint::function;
    p.name = first;
  }
  resolve(p);
  ++next_number_;
  std::string text = cat("breakpoint ", p.number, ": ", p.text);
  if (!p.places.empty()) {
    const SourceLine l = machine_->source(p.places.front());
    if (l.line && p.kind != StopPoint::line) text += cat(", ", l.file, ":", l.line);
    if (p.places.size() > 1) text += cat(", ", p.places.size(), " places in the code");
  }
  say(text);
  points_.push_back(std::move(p));
  return false;
}

bool Debugger::add_watch(Arguments& a) {
  if (a.words.empty()) a.bad("what to watch is missing");
  StopPoint p;
  p.number = next_number_;
  p.kind = StopPoint::watch;
  p.name = a.text;
  p.unit_name = machine_->unit_name(unit_of(a));
  p.text = a.text;
  resolve(p);
  if (p.datum.unit >= 0) p.text += cat(" on ", p.unit_name);
  ++next_number_;
  say(cat("watch ", p.number, ": ", p.text));
  points_.push_back(std::move(p));
  return false;
}

bool Debugger::remove(Arguments& a) {
  if (a.words.empty()) {
    points_.clear();
    say("all breakpoints and watches are removed");
    return false;
  }
  const std::int64_t number = a.count(0);
  std::vector<std::string> known;
  for (const StopPoint& p : points_) known.push_back(cat(p.number));
  if (std::erase_if(points_, [&](const StopPoint& p) { return p.number == number; }) == 0)
    throw Error(ErrorKind::index, "debug.number", cat("there is no breakpoint ", number))
        .note(known.empty() ? "there are none" : cat("legal: ", join(known)));
  return false;
}

bool Debugger::show_points(Arguments& a) {
  a.none();
  if (points_.empty()) say("no breakpoints and no watches");
  for (const StopPoint& p : points_) {
    const bool done = p.kind == StopPoint::cycle && p.hits > 0;
    say(cat(p.number, "  ", p.kind == StopPoint::watch ? "watch " : "break ", p.text, "  hits ",
            p.hits,
            p.active || p.kind == StopPoint::launch || p.kind == StopPoint::end ? ""
            : done                                                              ? "  done"
                   : "  not in this program"));
  }
  return false;
}

Debugger::Selection Debugger::select(std::string_view text, std::int64_t unit) const {
  Selection s;
  std::string_view value = trim(text), type;
  if (const std::size_t as = value.rfind(" as "); as != value.npos) {
    type = trim(value.substr(as + 4));
    value = trim(value.substr(0, as));
  }
  auto bad = [&](std::string_view what) {
    return Error(ErrorKind::value, "debug.value", cat("\"", text, "\": ", what))
        .note("legal: NAME, NAME[I], NAME[I:J], *ADDRESS or *ADDRESS[COUNT], then: as TYPE");
  };
  auto number = [&](std::string_view digits, std::int64_t otherwise) {
    digits = trim(digits);
    if (digits.empty()) return otherwise;
    int base = 10;
    if (digits.starts_with("0x")) digits.remove_prefix(2), base = 16;
    std::int64_t n = 0;
    const auto [end, status] =
        std::from_chars(digits.data(), digits.data() + digits.size(), n, base);
    if (status != std::errc() || end != digits.data() + digits.size() || n < 0)
      throw bad(cat("\"", digits, "\" is no number"));
    return n;
  };
  std::string_view range;
  bool ranged = false;
  if (const std::size_t open = value.find('['); open != value.npos) {
    if (value.back() != ']') throw bad("\"[\" without \"]\" at the end");
    range = value.substr(open + 1, value.size() - open - 2);
    value = trim(value.substr(0, open));
    ranged = true;
  }
  if (value.empty()) throw bad("the name is missing");
  const bool address = value[0] == '*';
  if (address) {
    const auto at = static_cast<std::uint64_t>(number(value.substr(1), 0));
    s.datum = machine_->memory(at, unit);
    if (s.datum->count <= 0)
      throw Error(ErrorKind::index, "debug.memory",
                  cat(machine_->unit_name(unit), " has no memory at ", hex(at)))
          .help("print names an array; its addresses need not be known");
  } else {
    s.datum = machine_->find(value, unit);
    if (!s.datum) {
      std::vector<std::string> names = machine_->names(unit);
      Error error(ErrorKind::value, "debug.name",
                  cat(machine_->unit_name(unit), " has no \"", value, "\""));
      std::string near = did_you_mean(value, names);
      if (names.size() > 40) {
        names.resize(40);
        names.emplace_back("...");
      }
      throw error.note(names.empty() ? "it has no names now" : cat("legal: ", join(names)))
          .help(near);
    }
  }
  s.format = type.empty() ? ValueFormat{s.datum->type, false} : parse_format(type, s.datum->type);
  // A type of another width sees the same bytes.
  if (const int now = s.format.type.bytes(); now != s.datum->type.bytes()) {
    const int before = s.datum->type.bytes();
    s.datum->count = s.datum->count * before / now;
    s.datum->read = [read = s.datum->read, before, now](std::int64_t first, std::int64_t count,
                                                        void* out) {
      const std::int64_t low = first * now / before,
                         high = ((first + count) * now + before - 1) / before;
      std::string bytes(static_cast<std::size_t>((high - low) * before), '\0');
      read(low, high - low, bytes.data());
      std::copy_n(bytes.data() + (first * now - low * before), count * now,
                  static_cast<char*>(out));
    };
    s.datum->type = s.format.type;
  }
  s.count = address ? 1 : s.datum->count;
  if (ranged) {
    const std::size_t colon = range.find(':');
    if (address) {
      s.count = number(range, 1);
    } else if (colon == range.npos) {
      s.first = number(range, -1), s.count = 1;
      if (s.first < 0) throw bad("the index is missing");
    } else {
      s.first = number(range.substr(0, colon), 0);
      s.count = number(range.substr(colon + 1), s.datum->count) - s.first;
    }
  }
  // In this order no sum of two numbers of the user overflows.
  if (s.count < 1 || s.first >= s.datum->count || s.count > s.datum->count - s.first)
    throw Error(ErrorKind::index, "debug.range",
                cat("elements ", s.first, " to ", s.first + (s.count - 1), " of ", s.datum->name))
        .note(cat("it has ", s.datum->count, " of type ", to_string(s.datum->type)));
  if (s.count > kMostElements) {
    if (ranged)
      throw Error(ErrorKind::value, "debug.range", cat(s.count, " elements are too many"))
          .note(cat("legal: at most ", kMostElements, " at a time"));
    s.count = kMostElements;
  }
  return s;
}

bool Debugger::print(Arguments& a) {
  if (a.words.empty()) a.bad("what to print is missing");
  Selection s = select(a.text, unit_of(a));
  const bool cut = s.count == kMostElements && s.datum->count > kMostElements;
  if (cut) s.count = 64;
  const std::string bytes = read_bytes(s);
  if (s.count == 1) {
    say(cat(s.datum->name, s.datum->count > 1 ? cat("[", s.first, "]") : std::string(), " = ",
            value_text(bytes.data(), s.format)));
    return false;
  }
  say(cat(s.datum->name, "  ", to_string(s.format.type), "[", s.datum->count, "]"));
  for (const std::string& line : value_lines(bytes, s.format, s.first)) say(line);
  if (cut) say(cat("  and ", s.datum->count - s.count, " more: ", s.datum->name, "[I:J]"));
  return false;
}

bool Debugger::show_memory(Arguments& a) {
  if (a.words.empty() || a.words.size() > 3) a.bad("an address is needed");
  std::int64_t count = 16;
  std::string type = "u32";
  if (a.words.size() > 1) count = a.integer(a.words[1], 1);
  if (a.words.size() > 2) type = a.words[2];
  Selection s = select(cat("*", a.integer(a.words[0], 0), "[", count, "] as ", type), unit_of(a));
  for (const std::string& line : value_lines(read_bytes(s), s.format, 0)) say(line);
  return false;
}

bool Debugger::where(Arguments& a) {
  a.none();
  say_place(unit_of(a));
  return false;
}

bool Debugger::list(Arguments& a) {
  if (!a.words.empty()) {
    const std::string& text = a.words[0];
    const std::size_t colon = text.rfind(':');
    const std::string digits = colon == text.npos ? text : text.substr(colon + 1);
    if (a.words.size() > 1 || !is_number(digits)) a.bad(cat("\"", a.text, "\" is no line"));
    if (colon != text.npos) {
      const std::string given = text.substr(0, colon);
      std::vector<std::string> files;
      list_file_.clear();
      machine_->each_line([&](CodePlace, const SourceLine& l) {
        if (std::find(files.begin(), files.end(), l.file) != files.end()) return;
        files.push_back(l.file);
        if (l.file == given || (list_file_.empty() && l.file.ends_with("/" + given)))
          list_file_ = l.file;
      });
      if (list_file_.empty())
        throw Error(ErrorKind::value, "debug.place",
                    cat("no code comes from a file \"", given, "\""))
            .note(cat("files with code: ", files.empty() ? "none" : join(files)));
    }
    // No file has more lines.
    list_line_ = static_cast<int>(std::min<std::int64_t>(a.integer(digits, 1), 1 << 30));
    if (colon == text.npos) {
      const UnitState state = machine_->unit_state(unit_);
      if (state.place) list_file_ = machine_->source(*state.place).file;
    }
    list_line_ = std::max(1, list_line_ - 4);
  } else if (list_line_ == 0) {
    const UnitState state = machine_->unit_state(unit_);
    const SourceLine here = state.place ? machine_->source(*state.place) : SourceLine{};
    if (here.line == 0) {
      say("no source line is known here; the instructions:");
      return code(a);
    }
    list_file_ = here.file;
    list_line_ = std::max(1, here.line - 4);
  }
  int current = 0;
  if (const UnitState state = machine_->unit_state(unit_); state.place) {
    const SourceLine here = machine_->source(*state.place);
    if (here.file == list_file_) current = here.line;
  }
  list_around(list_file_, current, list_line_, list_line_ + 9);
  list_line_ += 10;
  return false;
}

void Debugger::list_around(const std::string& file, int line, int from, int to) {
  const std::string text = machine_->source_text(file);
  if (text.empty()) {
    if (from != to) say(cat("the text of \"", file, "\" is not on this machine"));
    return;
  }
  const std::vector<std::string> lines = split(text, '\n');
  const int last = static_cast<int>(lines.size()) - (lines.back().empty() ? 1 : 0);
  if (from > last) {
    if (from != to) say(cat("\"", file, "\" has ", last, " lines"));
    return;
  }
  for (int n = from; n <= std::min(to, last); ++n) {
    std::string label = cat(n);
    label = std::string(label.size() < 5 ? 5 - label.size() : 0, ' ') + label;
    std::string row = cat(label, n == line ? " > " : "   ", lines[static_cast<std::size_t>(n - 1)]);
    for (std::size_t tab; (tab = row.find('\t')) != row.npos;) row.replace(tab, 1, "    ");
    if (row.size() > kColumns) {
      row.resize(kColumns - 3);
      row += "...";
    }
    while (!row.empty() && row.back() == ' ') row.pop_back();
    console_->write(row + "\n");
  }
}

bool Debugger::code(Arguments& a) {
  const std::int64_t count = a.command == "code" ? a.count(9) : 9, unit = unit_of(a);
  const UnitState state = machine_->unit_state(unit);
  if (!state.place) {
    say(cat(machine_->unit_name(unit), " executes nothing now: ", state.state));
    return false;
  }
  const std::int64_t here = machine_->number(*state.place),
                     first = std::max<std::int64_t>(0, here - count / 2);
  int line = 0;
  for (std::int64_t n = first; n < first + count; ++n) {
    const std::optional<CodePlace> place = machine_->numbered(n, unit);
    if (!place) break;
    const SourceLine l = machine_->source(*place);
    if (l.line && l.line != line) say(cat("    ", l.file, ":", l.line));
    line = l.line;
    say(cat(n == here ? "  > *" : "    *", n, "  ", machine_->instruction(*place)));
  }
  return false;
}

bool Debugger::units(Arguments& a) {
  a.none();
  const std::vector<std::int64_t> busy = machine_->busy_units();
  constexpr std::size_t kMost = 32;
  for (std::size_t k = 0; k < std::min(busy.size(), kMost); ++k) {
    const UnitState state = machine_->unit_state(busy[k]);
    std::string text = cat(busy[k] == unit_ ? "> " : "  ", machine_->unit_name(busy[k]), "  cycle ",
                           state.cycle, "  ", state.state);
    if (state.place) {
      const SourceLine l = machine_->source(*state.place);
      text += l.line ? cat("  ", l.file, ":", l.line) : cat("  *", machine_->number(*state.place));
    }
    say(text);
  }
  if (busy.size() > kMost) say(cat("  and ", busy.size() - kMost, " more"));
  say(cat(busy.size(), " of ", machine_->unit_count(), " units do something (",
          machine_->legal_units(), ")"));
  return false;
}

bool Debugger::choose_unit(Arguments& a) {
  if (a.words.empty()) a.bad("the unit's name is missing");
  const std::int64_t unit = machine_->find_unit(a.text);
  if (unit < 0)
    throw Error(ErrorKind::value, "debug.unit", cat("there is no unit \"", a.text, "\""))
        .note(cat("legal: ", machine_->legal_units()));
  unit_ = unit;
  list_line_ = 0;
  say_place(unit_);
  return false;
}

void Debugger::show_topic(const Topic& topic, Arguments& a) {
  const bool all = a.words.size() == 1 && a.words[0] == "all";
  if (!all) a.none();
  const std::vector<std::string> lines = machine_->show(topic.name, all ? -1 : unit_of(a));
  if (lines.empty())
    say(all ? cat("no unit has ", topic.name)
            : cat(machine_->unit_name(unit_of(a)), " has no ", topic.name, "; ", topic.name,
                  " all: of every unit"));
  for (const std::string& line : lines) say(line);
}

bool Debugger::help(Arguments& a) {
  if (a.words.size() > 1) a.bad("one command at a time");
  bool found = false;
  auto row = [&](std::string_view name, std::string_view usage, std::string_view text) {
    if (!a.words.empty() && a.words[0] != name) return;
    found = true;
    if (!a.words.empty()) {
      say(cat(usage, "\n    ", text));
      return;
    }
    say(cat("  ", name, std::string(name.size() < 14 ? 14 - name.size() : 1, ' '), text));
  };
  for (const Command& c : commands()) row(c.name, c.usage, c.help);
  for (const Topic& t : machine_->topics()) row(t.name, cat(t.name, " [on UNIT | all]"), t.help);
  if (!found)
    throw Error(ErrorKind::value, "debug.command", cat("\"", a.words[0], "\" is no command"))
        .help("help lists all commands");
  if (a.words.empty())
    say("Names may be cut short. \"on UNIT\" after a command names another unit.");
  return false;
}

bool Debugger::quit(Arguments& a) {
  a.none();
  quitting_ = true;
  quit_if_asked();
  return true;
}

}  // namespace weft::sim
