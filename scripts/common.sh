# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shell functions that ./run and ./test share. Sourced, not run.

SECONDS=0

# Says what comes next and how long all has taken so far, on standard error.
step() {
  printf '\n== %s  (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)) >&2
}

# Configures a preset only where it is not configured yet; the build itself does so again when
# something changed. Quiet unless it fails. What follows the preset goes to cmake.
configure() {
  local preset=$1 log=build/$1.configure.log
  shift
  mkdir -p build
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# The same for the programs alone, which needs no package that only tests need. A folder that is
# configured with its tests keeps them.
configure_programs() {
  local preset=$1
  if grep -qs '^ESPALIER_BUILD_TESTS:BOOL=ON$' "build/$preset/CMakeCache.txt"; then
    configure "$preset"
  else
    configure "$preset" -D ESPALIER_BUILD_TESTS=OFF
  fi
}

# Builds a preset, or targets of it, by the command that docs/testing.md prints. clang has its
# memory from malloc, and takes a tenth less time where that is in huge pages; other programs leave
# the tunable alone.
build_preset() {
  local preset=$1
  shift
  CMAKE_BUILD_PARALLEL_LEVEL=$(jobs) \
    GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1} \
    cmake --build --preset "$preset" "$@"
}

# One job for each core, or ESPALIER_JOBS. Each may take 1.5 GB.
jobs() {
  echo "${ESPALIER_JOBS:-$(nproc)}"
}
