// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/convolution.h"

#include <algorithm>
#include <numeric>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr int kMostValues = 128;       // of `from`, in registers
constexpr int kSharedElements = 4096;  // of weights
constexpr int kMostChannels = 16;      // whose weights are brought at once
constexpr int kTreeBytes = 16384, kFolded = 8;

/// What a thread reads of one channel, and which of it each place of the window meets.
struct Strip {
  int rows = 1, columns = 1;  // read
  int step = 1;               // between the rows of two places
  int across = 1, down = 1;   // results for each row of the strip: phases of the stride
  struct Tap {
    int row, column, phase,
        place;  // first row and column that it meets; of the results; of weights
  };
  std::vector<Tap> taps;
};

Strip strip_of(const ConvolutionSpec& s) {
  Strip out;
  int reach[2];
  for (std::size_t a = 0; a < 2; ++a) reach[a] = (s.kernel[a] - 1) * s.dilation[a];
  if (!s.transposed) {
    out.step = s.stride[0];
    out.rows = (s.rows - 1) * out.step + reach[0] + 1, out.columns = reach[1] + 1;
  } else {
    out.down = s.stride[0], out.across = s.stride[1];
    for (std::size_t a = 0; a < 2; ++a) reach[a] /= s.stride[a];
    out.rows = s.rows + reach[0], out.columns = reach[1] + 1;
  }
  for (int i = 0; i < s.kernel[0]; ++i) {
    for (int j = 0; j < s.kernel[1]; ++j) {
      const int y = i * s.dilation[0], x = j * s.dilation[1], place = i * s.kernel[1] + j;
      if (!s.transposed) {
        out.taps.push_back({y, x, 0, place});
      } else {
        const int phase = y % s.stride[0] * s.stride[1] + x % s.stride[1];
        out.taps.push_back({reach[0] - y / s.stride[0], reach[1] - x / s.stride[1], phase, place});
      }
    }
  }
  return out;
}

/// Lines of a program at growing depth.
class Lines {
 public:
  void operator()(const std::string& text) {
    text_ += cat(std::string(static_cast<std::size_t>(12 + 4 * depth_), ' '), text, "\n");
  }
  void open(const std::string& text) { (*this)(text), ++depth_; }
  void close(int levels = 1) { depth_ -= levels; }
  std::string text() const {
    return cat(
        "    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
        "        for t in T.thread_binding(T.{I}({threads}), thread=\"threadIdx.x\"):\n",
        text_);
  }

 private:
  std::string text_;
  int depth_ = 0;
};

std::string unroll(const char* name, int extent) {
  return cat("for ", name, " in T.unroll(T.{I}(", extent, ")):");
}
std::string allocate(const char* name, int extent, const char* type, const char* scope) {
  return cat(name, " = T.allocate((", extent, ",), \"", type, "\", scope=\"", scope, "\")");
}

Values values_of(const ConvolutionSpec& s) {
  return {
      {"I", index_type(s.narrow)}, {"C", s.sums}, {"type", s.type}, {"threads", cat(s.threads)}};
}
std::string widened(const ConvolutionSpec& s, const std::string& value) {
  return s.type == s.sums ? value : cat("T.Cast(\"{C}\", ", value, ")");
}
std::string narrowed(const ConvolutionSpec& s, const std::string& value) {
  return s.type == s.sums ? value : cat("T.Cast(\"{type}\", ", value, ")");
}

/// V[row, column] of the channel that begins at `base`, zeros outside of the image.
void read_strip(Lines& line, const ConvolutionSpec& s, const Strip& strip) {
  line.open(unroll("r", strip.rows));
  line.open(unroll("k", strip.columns));
  line(cat("V[r * ", strip.columns,
           " + k] = T.if_then_else(inside and top + r >= 0 and top + r < h "
           "and left + k >= 0 and left + k < w, ",
           widened(s, "image[base + r * from_y + k * from_x]"), ", T.{C}(0))"));
  line.close(2);
}

/// Names of a strip: n, strip, column; what lies behind the last is computed and not stored.
void place(Lines& line) {
  line("inside: T.bool = e < size");
  line("line: T.{I} = e // columns");
  line("column: T.{I} = e - line * columns");
  line("n: T.{I} = line // strips");
  line("strip: T.{I} = line - n * strips");
}

class StripsText {
 public:
  explicit StripsText(const ConvolutionSpec& spec) : s_(spec), strip_(strip_of(spec)) {
    const int each = s_.kernel[0] * s_.kernel[1] * lanes();
    while (channels_ < kMostChannels && channels_ * 2 * each <= kSharedElements) channels_ *= 2;
    shared_ = s_.results > 1 && channels_ * each <= kSharedElements;
  }

  std::string text() {
    const int phases = strip_.across * strip_.down, sums = s_.rows * phases * s_.results;
    if (shared_) line_(allocate("SW", channels_ * window() * lanes(), "{C}", "shared"));
    line_(allocate("W", lanes(), "{C}", "local"));
    line_(allocate("V", strip_.rows * strip_.columns, "{C}", "local"));
    line_(allocate("ACC", sums, "{C}", "local"));
    line_("lot: T.{I} = b // lot_blocks");
    line_("e: T.{I} = (b - lot * lot_blocks) * {threads} + t");
    line_("group: T.{I} = lot // chunks");
    line_(cat("first: T.{I} = (lot - group * chunks) * ", s_.results));
    place(line_);
    line_(cat("top: T.{I} = strip * ", s_.rows * strip_.step, " - before_y"));
    line_(cat("left: T.{I} = column * ", s_.transposed ? 1 : s_.stride[1], " - before_x"));
    line_.open(unroll("k", sums));
    line_("ACC[k] = T.{C}(0)");
    line_.close();
    if (shared_) {
      line_.open(cat("for wave in T.serial((ins + ", channels_ - 1, ") // ", channels_, "):"));
      bring_weights();
      line_.open(
          cat("for d in T.serial(T.min(T.{I}(", channels_, "), ins - wave * ", channels_, ")):"));
      line_(cat("c: T.{I} = wave * ", channels_, " + d"));
    } else {
      line_.open("for c in T.serial(ins):");
    }
    line_("base: T.{I} = n * from_n + (group * ins + c) * from_c + top * from_y + left * from_x");
    read_strip(line_, s_, strip_);
    for (const Strip::Tap& tap : strip_.taps) add(tap);
    line_.close(shared_ ? 2 : 1);
    store();
    return line_.text();
  }

 private:
  int window() const { return s_.kernel[0] * s_.kernel[1]; }
  /// Results whose weights lie together, in whole vectors.
  int lanes() const { return s_.results > 2 ? (s_.results + 3) / 4 * 4 : s_.results; }
  std::string weight(const std::string& result, const std::string& place) const {
    const std::string pair = s_.transposed ? cat("(group * ins + c) * outs + ", result)
                                           : cat("(group * outs + ", result, ") * ins + c");
    return widened(s_, cat("weight[(", pair, ") * ", window(), " + ", place, "]"));
  }

  /// SW[channel, place, result]; results behind the last have weights 0.
  void bring_weights() {
    const int all = channels_ * window() * lanes();
    line_.open(cat("for k in T.serial(T.{I}(", (all + s_.threads - 1) / s_.threads, ")):"));
    line_("slot: T.{I} = k * {threads} + t");
    line_(cat("o: T.{I} = slot % ", lanes()));
    line_(cat("q: T.{I} = slot // ", lanes(), " % ", window()));
    line_(cat("c: T.{I} = wave * ", channels_, " + slot // ", lanes() * window()));
    line_.open(cat("if slot < ", all, ":"));
    line_(cat("SW[slot] = T.if_then_else(c < ins and o < ", s_.results, " and first + o < outs, ",
              weight("first + o", "q"), ", T.{C}(0))"));
    line_.close(2);
  }

  void add(const Strip::Tap& tap) {
    if (shared_) {
      const int vector = lanes() % 4 == 0 ? 4 : lanes();
      line_.open(unroll("u", lanes() / vector));
      line_.open(cat("for v in T.vectorized(T.{I}(", vector, ")):"));
      line_(cat("W[u * ", vector, " + v] = SW[(d * ", window(), " + ", tap.place, ") * ", lanes(),
                " + u * ", vector, " + v]"));
      line_.close(2);
    } else {
      line_.open(unroll("o", s_.results));
      line_(cat("W[o] = ", weight("T.min(first + o, outs - 1)", cat(tap.place))));
      line_.close();
    }
    line_.open(unroll("p", s_.rows));
    line_.open(unroll("o", s_.results));
    const std::string slot =
        cat("(p * ", strip_.across * strip_.down, " + ", tap.phase, ") * ", s_.results, " + o");
    line_(cat("ACC[", slot, "] = ACC[", slot, "] + V[(p * ", strip_.step, " + ", tap.row, ") * ",
              strip_.columns, " + ", tap.column, "] * W[o]"));
    line_.close(2);
  }

  void store() {
    const int phases = strip_.across * strip_.down;
    line_.open(unroll("p", s_.rows));
    line_.open(unroll("q", phases));
    line_.open(unroll("o", s_.results));
    line_(cat("y: T.{I} = (strip * ", s_.rows, " + p) * ", strip_.down, " + q // ", strip_.across,
              " - off_y"));
    line_(cat("x: T.{I} = column * ", strip_.across, " + q % ", strip_.across, " - off_x"));
    line_.open("if inside and y >= 0 and y < oh and x >= 0 and x < ow and first + o < outs:");
    line_(cat("out[((n * groups + group) * outs + first + o) * (oh * ow) + y * ow + x] = ",
              narrowed(s_, cat("ACC[(p * ", phases, " + q) * ", s_.results, " + o]"))));
    line_.close(4);
  }

  const ConvolutionSpec& s_;
  const Strip strip_;
  Lines line_;
  int channels_ = 1;  // whose weights are in shared memory
  bool shared_ = false;
};

/// One place a thread and loops over a window of any size.
std::string rolled_text(const ConvolutionSpec& s) {
  Lines line;
  line(allocate("ACC", s.results, "{C}", "local"));
  line("lot: T.{I} = b // lot_blocks");
  line("e: T.{I} = (b - lot * lot_blocks) * {threads} + t");
  line("group: T.{I} = lot // chunks");
  line(cat("first: T.{I} = (lot - group * chunks) * ", s.results));
  place(line);
  line.open(unroll("o", s.results));
  line("ACC[o] = T.{C}(0)");
  line.close();
  line.open("for c in T.serial(ins):");
  for (int a = 0; a < 2; ++a) {
    const std::string k = a ? "j" : "i", at = a ? "x" : "y", from = a ? "column" : "strip";
    const std::size_t axis = static_cast<std::size_t>(a);
    if (s.transposed) {
      // Only each step-th place of the window meets this result: i with i * dilation = u modulo the
      // stride, if there is one.
      const int common = std::gcd(s.stride[axis], s.dilation[axis]), step = s.stride[axis] / common,
                gap = s.dilation[axis] / common;
      int inverse = 0;
      while (inverse * gap % step != 1 % step) ++inverse;
      line(cat("u", at, ": T.{I} = ", from, " + off_", at));
      line.open(cat("for ", k, "k in T.serial(T.{I}(", (s.kernel[axis] + step - 1) / step, ")):"));
      line(cat(k, ": T.{I} = u", at, " // ", common, " * ", inverse, " % ", step, " + ", k, "k * ",
               step));
      line(cat(at, ": T.{I} = (u", at, " - ", k, " * ", s.dilation[axis], ") // ", s.stride[axis]));
      line(cat("ok", at, ": T.bool = ", k, " < ", s.kernel[axis], " and u", at, " % ", common,
               " == 0 and ", at, " >= 0 and ", at, " < ", a ? "w" : "h"));
    } else {
      line.open(cat("for ", k, " in T.serial(T.{I}(", s.kernel[axis], ")):"));
      line(cat(at, ": T.{I} = ", from, " * ", s.stride[axis], " - before_", at, " + ", k, " * ",
               s.dilation[axis]));
      line(cat("ok", at, ": T.bool = ", at, " >= 0 and ", at, " < ", a ? "w" : "h"));
    }
  }
  line.open("if inside and oky and okx:");
  line(cat("v: T.{C} = ",
           widened(s, "image[n * from_n + (group * ins + c) * from_c + y * from_y + x * from_x]")));
  line.open(unroll("o", s.results));
  line("r: T.{I} = T.min(first + o, outs - 1)");
  const std::string pair =
      s.transposed ? "(group * ins + c) * outs + r" : "(group * outs + r) * ins + c";
  line(cat("ACC[o] = ACC[o] + v * ", widened(s, cat("weight[((", pair, ") * ", s.kernel[0],
                                                    " + i) * ", s.kernel[1], " + j]"))));
  line.close(5);
  line.open(unroll("o", s.results));
  line.open("if inside and first + o < outs:");
  line(cat("out[((n * groups + group) * outs + first + o) * (oh * ow) + strip * ow + column] = ",
           narrowed(s, "ACC[o]")));
  return line.text();
}

}  // namespace

bool strips_fit(const ConvolutionSpec& spec) {
  const Strip strip = strip_of(spec);
  return strip.rows * strip.columns <= kMostValues &&
         spec.rows * strip.across * strip.down * spec.results <= kMostValues / 2 &&
         spec.kernel[0] * spec.kernel[1] <= kMostValues / 2;
}

ir::PrimFunc convolution_strips(const ConvolutionSpec& spec) {
  ProgramText text(spec.transposed ? "convolution.transposed_strips" : "convolution.strips");
  text.buffer("image", spec.type).buffer("weight", spec.type).buffer("out", spec.type);
  for (const char* name :
       {"blocks",   "lot_blocks", "size",  "columns", "strips", "groups", "chunks",
        "outs",     "ins",        "h",     "w",       "oh",     "ow",     "before_y",
        "before_x", "off_y",      "off_x", "from_n",  "from_c", "from_y", "from_x"})
    text.scalar(name, index_type(spec.narrow));
  return text.parse(spec.rolled ? rolled_text(spec) : StripsText(spec).text(), values_of(spec));
}

ir::PrimFunc convolution_weights(const ConvolutionSpec& spec) {
  const Strip strip = strip_of(spec);
  const int window = static_cast<int>(strip.taps.size());
  const int bytes = spec.sums == "float64" ? 8 : 4;
  const int joined = std::clamp(kTreeBytes / (spec.threads * bytes), 1, window);
  Lines line;
  line(allocate("TREE", joined * spec.threads, "{C}", "shared"));
  line(allocate("V", strip.rows * strip.columns, "{C}", "local"));
  line(allocate("G", spec.rows, "{C}", "local"));
  line(allocate("ACC", window, "{C}", "local"));
  line("which: T.{I} = b // lots");
  line("pair: T.{I} = b - which * lots");
  line("result: T.{I} = pair // ins");
  line("channel: T.{I} = result // outs * ins + pair - result * ins");
  line("stop: T.{I} = T.min((which + 1) * part, size)");
  line.open(unroll("k", window));
  line("ACC[k] = T.{C}(0)");
  line.close();
  line.open("for sweep in T.serial((part + {threads} - 1) // {threads}):");
  line("e: T.{I} = which * part + sweep * {threads} + t");
  place(line);
  line("mine: T.bool = e < stop");
  line(cat("top: T.{I} = strip * ", spec.rows * strip.step, " - before_y"));
  line(cat("left: T.{I} = column * ", spec.stride[1], " - before_x"));
  line("base: T.{I} = n * from_n + channel * from_c + top * from_y + left * from_x");
  line.open(unroll("p", spec.rows));
  line(cat("y: T.{I} = strip * ", spec.rows, " + p"));
  line(cat("G[p] = T.if_then_else(mine and y < oh, ",
           widened(spec, "by[n * by_n + result * by_c + y * by_y + column * by_x]"),
           ", T.{C}(0))"));
  line.close();
  read_strip(line, spec, strip);
  for (const Strip::Tap& tap : strip.taps) {
    line.open(unroll("p", spec.rows));
    line(cat("ACC[", tap.place, "] = ACC[", tap.place, "] + G[p] * V[(p * ", strip.step, " + ",
             tap.row, ") * ", strip.columns, " + ", tap.column, "]"));
    line.close();
  }
  line.close();
  for (int start = 0; start < window; start += joined) {
    const int now = std::min(joined, window - start);
    line.open(unroll("k", now));
    line(cat("TREE[k * {threads} + t] = ACC[", start, " + k]"));
    line.close();
    for (int width = spec.threads; width > 1;) {
      const int folded = std::min(kFolded, width);
      width /= folded;
      line.open(cat("if t < ", width, ":"));
      line.open(unroll("k", now));
      std::string sum = "TREE[k * {threads} + t]";
      for (int f = 1; f < folded; ++f) sum += cat(" + TREE[k * {threads} + t + ", f * width, "]");
      line(cat("TREE[k * {threads} + t] = ", sum));
      line.close(2);
    }
    line.open("if t == 0:");
    line.open(unroll("k", now));
    line(cat("out[b * ", window, " + ", start, " + k] = TREE[k * {threads}]"));
    line.close(2);
  }
  ProgramText text("convolution.weights");
  text.buffer("image", spec.type).buffer("by", spec.type).buffer("out", spec.sums);
  for (const char* name : {"blocks", "lots",   "part",   "size", "columns",  "strips",   "outs",
                           "ins",    "h",      "w",      "oh",   "before_y", "before_x", "from_n",
                           "from_c", "from_y", "from_x", "by_n", "by_c",     "by_y",     "by_x"})
    text.scalar(name, index_type(spec.narrow));
  return text.parse(line.text(), values_of(spec));
}

ir::PrimFunc convolution_windows(const ConvolutionSpec& spec) {
  Lines line;
  line("e: T.{I} = b * {threads} + t");
  line("line: T.{I} = e // columns");
  line("column: T.{I} = e - line * columns");
  line("plane: T.{I} = line // lines");
  line("row: T.{I} = line - plane * lines");
  line("n: T.{I} = plane // channels");
  line(cat("top: T.{I} = row * ", spec.stride[0], " - before_y"));
  line(cat("left: T.{I} = column * ", spec.stride[1], " - before_x"));
  line("base: T.{I} = n * from_n + (plane - n * channels) * from_c");
  line(cat("to: T.{I} = (plane * ", spec.kernel[0] * spec.kernel[1],
           " * lines + row) * columns + column"));
  line.open("if e < size:");
  line.open(unroll("i", spec.kernel[0]));
  line.open(unroll("j", spec.kernel[1]));
  line(cat("y: T.{I} = top + i * ", spec.dilation[0]));
  line(cat("z: T.{I} = left + j * ", spec.dilation[1]));
  line(cat("out[to + (i * ", spec.kernel[1],
           " + j) * (lines * columns)] = T.if_then_else(y >= 0 and y < h and z >= 0 and z < w, "
           "image[base + y * from_y + z * from_x], T.{type}(0))"));
  ProgramText text("convolution.windows");
  text.buffer("image", spec.type).buffer("out", spec.type);
  for (const char* name : {"blocks", "size", "columns", "lines", "h", "w", "before_y", "before_x",
                           "from_n", "from_c", "from_y", "from_x", "channels"})
    text.scalar(name, index_type(spec.narrow));
  return text.parse(line.text(), values_of(spec));
}

}  // namespace weft::operators
