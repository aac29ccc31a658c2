#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_examples.sh FOLDER [NAME...]: runs the command scripts (commands_wse*.sh) of the example programs in
# FOLDER, for instance the tutorials of a clone of Cerebras/csl-examples, with our cslc and cs_python, on a copy.
# A run passes when its script ends with status 0 and prints SUCCESS. Prints the failures and the count; the exit
# status says whether all passed. PYTHON names the interpreter; weft must be built.
set -uo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
[ $# -ge 1 ] || { sed -n '3,6s/^# //p' "$0"; exit 2; }
from="$(cd "$1" && pwd)"
shift
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
for tool in cslc:weft_wse.compiler cs_python:weft_wse.script; do
  printf '#!/bin/sh\nPYTHONPATH="%s/python:%s/compat/cerebras${PYTHONPATH:+:$PYTHONPATH}" exec "%s" -c "import sys; from %s import %s_main as m; sys.exit(m(sys.argv[1:]) or 0)" "$@"\n' \
    "$root" "$root" "${PYTHON:-python3}" "${tool#*:}" "${tool%:*}" > "$work/bin/${tool%:*}"
  chmod +x "$work/bin/${tool%:*}"
done
export PATH="$work/bin:$PATH"
cp -r "$from" "$work/programs"
# Some published scripts hold a placeholder of their authors' test runner in place of the command.
find "$work/programs" -name 'commands_wse*.sh' -exec sed -i 's/^%python_sdk_paint /cs_python run.py /' {} +
cd "$work/programs"
passed=0 failed=0
[ $# -gt 0 ] || set -- */
for folder in "$@"; do
  for script in $folder/commands_wse*.sh; do
    [ -f "$script" ] || continue
    log="$work/log"
    (cd "$(dirname "$script")" && timeout "${LIMIT:-120}" bash "$(basename "$script")") > "$log" 2>&1
    status=$?
    if [ $status = 0 ] && grep -q SUCCESS "$log"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "FAILED $script, status $status: $(grep -E 'error|Error' "$log" | head -3)"
    fi
  done
done
echo "$passed of $((passed + failed)) passed"
[ $failed = 0 ] && [ $passed -gt 0 ]
