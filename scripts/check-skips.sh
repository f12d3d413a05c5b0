#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if a ctest log tells of a skipped or disabled test that tests/skips.txt does not allow: a
# skipped test proves nothing, and nobody reads that it was skipped.
#
#   scripts/check-skips.sh <output of ctest>
set -euo pipefail
cd "$(dirname "$0")/.."

allowed=$(sed -n 's/^\([^#:][^:]*\): ..*$/\1/p' tests/skips.txt)
unexpected=0
while read -r name; do
  if ! grep -qxF -- "$name" <<<"$allowed"; then
    echo "skipped without a reason in tests/skips.txt: $name" >&2
    unexpected=1
  fi
done < <(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (\(Skipped\|Disabled\|Not Run\))$/\1/p' "$1" | sort -u)
exit $unexpected
