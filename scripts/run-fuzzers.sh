#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of a clang build for ESPALIER_FUZZ_SECONDS (default 5) from its corpus, or for
# ESPALIER_FUZZ_RUNS inputs if that is less. New inputs are kept below the build folder; one that
# breaks something is named.
#
#   scripts/run-fuzzers.sh [build folder]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/common.sh

build=${1:-build/clang}
seconds=${ESPALIER_FUZZ_SECONDS:-5}
runs=${ESPALIER_FUZZ_RUNS:--1}

run_fuzzer() {
  local name found broken log corpora
  name=$(basename "$1" _fuzz)
  found=$build/fuzz/found/$name
  broken=$build/fuzz/broken/$name
  log=$build/fuzz/$name.log
  mkdir -p "$found" "$broken"
  mapfile -t corpora < <(find src bench tests -type d -path "*/corpus/$name")
  if ! "$1" -max_total_time="$seconds" -runs="$runs" -max_len=4096 -timeout=20 \
    -rss_limit_mb=4096 -artifact_prefix="$broken/" "$found" "${corpora[@]}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "$name: failed; the input lies in $broken" >&2
    return 1
  fi
  echo "$name: $(grep -E '^Done ' "$log" || echo "$seconds s")" >&2
}
export -f run_fuzzer
export build seconds runs

shopt -s nullglob
fuzzers=("$build"/fuzz/*_fuzz)
if [[ ${#fuzzers[@]} -eq 0 ]]; then
  echo "No fuzzer was built in $build/fuzz" >&2
  exit 1
fi
echo "${#fuzzers[@]} fuzzers, $seconds s each, $(jobs) at a time" >&2
# shellcheck disable=SC2016  # each of them expands it
# 255 has xargs start no more of them.
printf '%s\0' "${fuzzers[@]}" |
  xargs -0 -P "$(jobs)" -n 1 bash -c 'run_fuzzer "$1" || exit 255' run_fuzzer
