#!/usr/bin/env bash
# run.sh SECONDS JOBS [SEED]: every fuzzer of this folder (made by tools/check_parsers --pack) for about SECONDS (a minute more at the end) in JOBS
# processes, each with a seed of its own. Prints for each fuzzer the inputs, processes and failures; texts and logs of failures stay in out/. Nothing is compiled
# and nothing but bash and coreutils is needed. Exit status 1 when anything failed.
set -uo pipefail
cd "$(dirname "$0")"
seconds=${1:?run.sh SECONDS JOBS [SEED]} jobs=${2:?run.sh SECONDS JOBS [SEED]} seed=${3:-$(date +%s)}
rm -rf out
mkdir -p out
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1:hard_rss_limit_mb=2048:handle_abort=1"
export UBSAN_OPTIONS=print_stacktrace=1
end=$(($(date +%s) + seconds))
mapfile -t names <fuzzers.txt

# One process after another of one fuzzer until the time is over; a process that fails ends its worker, its folder stays.
work() {  # work NUMBER
  local number=$1 round=0 name folder status size slug
  name=${names[$((number % ${#names[@]}))]}
  slug=${name// /_}
  size=2000
  while [ "$round" -eq 0 ] || [ "$(date +%s)" -lt "$end" ]; do
    folder=out/$slug.$number.$round
    mkdir -p "$folder"
    local own=$((seed * 1000 + number * 100000 + round)) begin=$(date +%s)
    if [ "$name" = CSL ]; then
      (cd "$folder" && timeout 600 ../../csl_mutate $((own % 2000000000)) "$size") >"$folder/log" 2>&1
    else
      (cd "$folder" && timeout 600 ../../fuzz_parsers "$size" "$own" "$name") >"$folder/log" 2>&1
    fi
    status=$?
    if [ "$status" -ne 0 ]; then  # 124: an input that does not end
      echo "$name FAILED status $status, seed $own, count $size: $folder/log" >>out/failures
      return
    fi
    echo "$size" >>"out/count.$slug.$number"
    rm -rf "$folder"
    # Processes of about a minute.
    local took=$(($(date +%s) - begin))
    [ "$took" -ge 20 ] || size=$((size * (took < 2 ? 8 : 2)))
    [ "$took" -le 90 ] || size=$((size / 2))
    round=$((round + 1))
  done
}

# Each fuzzer has a turn even with few jobs: workers are numbered through, and JOBS of them run at once.
if [ "$jobs" -ge "${#names[@]}" ]; then
  for ((k = 0; k < jobs; ++k)); do work "$k" & done
else
  whole=$end
  for ((k = 0; k < jobs; ++k)); do
    (
      mine=()
      for ((n = k; n < ${#names[@]}; n += jobs)); do mine+=("$n"); done
      for at in "${!mine[@]}"; do
        now=$(date +%s)
        end=$((now + (whole - now) / (${#mine[@]} - at)))
        work "${mine[$at]}"
      done
    ) &
  done
fi
wait
total=0
for name in "${names[@]}"; do
  slug=${name// /_}
  count=$(cat out/count."$slug".* 2>/dev/null | awk '{ n += $1 } END { print n + 0 }')
  failed=$(grep -c "^$name FAILED" out/failures 2>/dev/null)
  printf '%-18s %12d inputs %4d failures\n' "$name" "$count" "${failed:-0}"
  total=$((total + count))
done
printf '%-18s %12d inputs, seed %s\n' all "$total" "$seed"
[ ! -e out/failures ] || { cat out/failures; exit 1; }
