#!/usr/bin/env bash
# run.sh [RUNS [BUILD_FOLDER]]: builds the CSL front end with clang, libFuzzer, address and undefined-behaviour
# sanitizers, and runs it over RUNS inputs. Needs clang++ and ninja; the embedded library text is taken from a
# configured build/. Any crash leaves its input as crash-* in BUILD_FOLDER.
set -euo pipefail
runs="${1:-1000000}" folder="${2:-build-fuzz}"
root="$(cd "$(dirname "$0")/../../../.." && pwd)"
mkdir -p "$folder/corpus"
folder="$(cd "$folder" && pwd)"
cmake "-DROOT=$root/src/weft/targets/wse/lib" "-DOUT=$folder/csl_library.cpp" -P "$root/src/weft/targets/wse/csl/embed.cmake"
{
  echo "rule cc"
  echo "  command = ${CLANG:-clang++} -std=c++20 -O1 -g -I$root/src -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -c \$in -o \$out"
  echo "rule ld"
  echo "  command = ${CLANG:-clang++} -fsanitize=fuzzer,address,undefined \$in -lfmt -o \$out"
  objects=""
  for f in "$root"/src/weft/base/*.cpp "$root"/src/weft/targets/wse/csl/*.cpp "$root"/src/weft/targets/wse/{arith,program}.cpp \
    "$folder/csl_library.cpp" "$root/tests/targets/wse/fuzz/csl_fuzz.cpp"; do
    o="$folder/$(basename "$f").o"
    echo "build $o: cc $f"
    objects+=" $o"
  done
  echo "build $folder/wse_csl_fuzz: ld$objects"
} > "$folder/build.ninja"
ninja -C "$folder" -j"${JOBS:-2}" "$folder/wse_csl_fuzz" > "$folder/build.log" || { tail -40 "$folder/build.log"; exit 1; }
cd "$folder"
exec ./wse_csl_fuzz -runs="$runs" -max_len=4096 -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 "${@:3}" corpus
