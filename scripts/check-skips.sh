#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if the output of ctest tells of a skipped or disabled test that tests/skips.txt does not
# allow: a skipped test proves nothing, and nobody reads that it was skipped.
#
#   scripts/check-skips.sh <preset> <output of ctest>
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
log=$2
mapfile -t allowed < <(sed -nE "s/^(\*|$preset) ([^:]+): .+\$/\2/p" tests/skips.txt)
skipped=$(sed -nE 's/^[[:space:]]*[0-9]+ - (.+) \((Skipped|Disabled|Not Run)\)$/\1/p' "$log")

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
