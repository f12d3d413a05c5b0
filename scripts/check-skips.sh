#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if ctest's log of what the tests printed tells of a skipped or disabled test that
# tests/skips.txt does not allow: a skipped test proves nothing, and its silence is not noticed.
#
#   scripts/check-skips.sh <preset> <Testing/Temporary/LastTest.log of its build>
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
log=$2
mapfile -t allowed < <(sed -nE "s/^(\*|$preset) ([^:]+): .+\$/\2/p" tests/skips.txt)

# GoogleTest names a skipped case, and ctest the program before it: each command line ends with the
# filter, and the program stands before that.
skipped=$(awk '
  /^Command: / {
    program = ""
    n = split($0, word, "\"")
    for (i = 2; i <= n; i += 2) {
      if (word[i] ~ /^--gtest_filter=/) { program = word[i - 2]; sub(/.*\//, "", program) }
    }
  }
  /^\[  SKIPPED \] [^ ]+\.[^ ]+ \(/ { print program "." $4 }
  /^  YOU HAVE [0-9]+ DISABLED TESTS?$/ { print program ".DISABLED" }
  /^Test (Skipped|Disabled|Not Run)/ { print program ".NOT_RUN" }' "$log")

is_allowed() {
  local pattern
  for pattern in "${allowed[@]}"; do
    # shellcheck disable=SC2053  # a pattern is meant
    [[ $1 == $pattern ]] && return 0
  done
  return 1
}

unexpected=0
while read -r name; do
  if [[ -n "$name" ]] && ! is_allowed "$name"; then
    echo "skipped without a reason in tests/skips.txt: $name" >&2
    unexpected=1
  fi
done <<<"$skipped"
exit $unexpected
