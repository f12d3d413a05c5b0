# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shell functions that ./run and ./test share. Sourced, not run.

SECONDS=0

# Says what comes next and how long all has taken so far, on standard error.
step() {
  printf '\n== %s  (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)) >&2
}

# Configures a preset only where it is not configured yet; the build itself does so again when
# something changed. Quiet unless it fails.
configure() {
  local preset=$1 log=build/$1.configure.log
  mkdir -p build
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# One job for each core, or ESPALIER_JOBS. Sanitizer builds take about a GiB for each.
jobs() {
  echo "${ESPALIER_JOBS:-$(nproc)}"
}
