#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of a clang build for ESPALIER_FUZZ_SECONDS (default 5) from its corpus. New
# inputs are kept below the build folder; one that breaks something is named.
#
#   scripts/run-fuzzers.sh [build folder]
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/clang}
seconds=${ESPALIER_FUZZ_SECONDS:-5}
shopt -s nullglob
count=0
for fuzzer in "$build"/fuzz/*_fuzz; do
  name=$(basename "$fuzzer" _fuzz)
  found=$build/fuzz/found/$name
  broken=$build/fuzz/broken/$name
  mkdir -p "$found" "$broken"
  mapfile -t corpora < <(find src bench tests -type d -path "*/corpus/$name")
  echo "$name: $seconds s" >&2
  log=$build/fuzz/$name.log
  if ! "$fuzzer" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=4096 \
    -artifact_prefix="$broken/" "$found" "${corpora[@]}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "$name: failed; the input lies in $broken" >&2
    exit 1
  fi
  grep -E '^Done ' "$log" >&2 || true
  count=$((count + 1))
done
if [[ $count -eq 0 ]]; then
  echo "No fuzzer was built in $build/fuzz" >&2
  exit 1
fi
echo "$count fuzzers, $seconds s each" >&2
