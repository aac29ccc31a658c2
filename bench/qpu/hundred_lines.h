// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel of one hundred lines as somebody would write it, for the time that compiling takes: an
// image is smoothed, classified and coloured while a histogram's sums and extremes are kept.

#include <weft/qpu.h>

namespace weft::qpu {

inline void hundred_lines(Ptr<Float> image, Ptr<Float> out, Ptr<Int> classes, Ptr<Float> summary,
                          Int pitch, Int width, Int height, Float low, Float high) {
  Int lane = index();
  Int step = numQPUs();
  Float total = 0;
  Float squares = 0;
  Float smallest = 1e30f;
  Float largest = -1e30f;
  Int bright = 0;
  Int dark = 0;
  Int checksum = 0;
  Float span = high - low;
  Float scale = 1.0f;
  If(any(span > 0.0f))
    scale = recip(span);
  End
  For(Int y = me() + 1, y < height - 1, y = y + step)
    Ptr<Float> above = image + (y - 1) * pitch + lane;
    Ptr<Float> here = image + y * pitch + lane;
    Ptr<Float> below = image + (y + 1) * pitch + lane;
    Ptr<Float> to = out + y * pitch + lane;
    Ptr<Int> mark = classes + y * pitch + lane;
    Float before = 0;
    Int runs = 0;
    Int last = -1;
    gather(above);
    gather(here);
    gather(below);
    For(Int x = 0, x < width, x = x + 16)
      Float a;
      Float b;
      Float c;
      receive(a);
      receive(b);
      receive(c);
      above = above + 16;
      here = here + 16;
      below = below + 16;
      gather(above);
      gather(here);
      gather(below);
      Float left = rotate(b, 1);
      Float right = rotate(b, 15);
      Where(lane == 0)
        left = before;
      End
      Where(lane == 15)
        right = b;
      End
      before = rotate(b, 1);
      Float smooth = b * 0.5f;
      smooth = smooth + (a + c) * 0.125f;
      smooth = smooth + (left + right) * 0.125f;
      Float gx = right - left;
      Float gy = c - a;
      Float edge = gx * gx + gy * gy;
      Float shade = (smooth - low) * scale;
      shade = max(shade, Float(0.0f));
      shade = min(shade, Float(1.0f));
      Int kind = 0;
      Where(edge > 0.25f)
        kind = 3;
      End
      Where(edge <= 0.25f && shade > 0.75f)
        kind = 2;
        bright = bright + 1;
      End
      Where(edge <= 0.25f && shade < 0.25f)
        kind = 1;
        dark = dark + 1;
      End
      Int level = toInt(shade * 255.0f);
      Int packed = level | (level << 8);
      packed = packed | (kind << 24);
      checksum = (checksum << 1) ^ (checksum >> 7) ^ packed;
      If(any(kind != last))
        runs = runs + 1;
        last = kind;
        Else last = kind & 3;
      End
      total = total + smooth;
      squares = squares + smooth * smooth;
      smallest = min(smallest, smooth);
      largest = max(largest, smooth);
      store(shade, to);
      store(packed, mark);
      to = to + 16;
      mark = mark + 16;
    End
    receive(before);
    receive(before);
    receive(before);
    checksum = checksum + runs;
  End
  Ptr<Float> mine = summary + me() * 112 + lane;
  Float count = toFloat(width) * toFloat(height);
  Float mean = total / count;
  store(mean, mine);
  store(squares - mean * total, mine + 16);
  store(smallest, mine + 32);
  store(largest, mine + 48);
  store(toFloat(bright), mine + 64);
  store(toFloat(dark), mine + 80);
  store(toFloat(checksum), mine + 96);
}

}  // namespace weft::qpu
