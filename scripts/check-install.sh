#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run by ctest: whether the targets espalier_install and espalier_run build what is installed, by
# the script that `cmake --install` runs. In a build folder that has everything, an installation
# would not show that one of them lacks something.
#
#   scripts/check-install.sh <build folder>
set -euo pipefail
build=$(cd "$1" && pwd)
status=0

# Files of the build that the script installs; `optional` ones only where they are there.
installed() {
  local kind=$1
  sed -nE '/file\(INSTALL .* TYPE (STATIC_LIBRARY|SHARED_LIBRARY|EXECUTABLE) /p' \
    "$build/cmake_install.cmake" |
    { if [[ $kind == optional ]]; then grep ' OPTIONAL '; else grep -v ' OPTIONAL '; fi || true; } |
    sed -E "s|.* FILES \"$build/([^\"]*)\".*|\1|"
}

# Wants what is installed among what the commands that build the target name.
want_built() {
  local target=$1 file built
  built=$(ninja -C "$build" -t commands "$target" | tr ' ' '\n' | sort -u)
  while read -r file; do
    grep -qxF "$file" <<<"$built" && continue
    echo "check-install.sh: cmake --install wants $file, and $target does not build it" >&2
    status=1
  done
}

[[ -n "$(installed needed)" ]] || {
  echo "check-install.sh: $build installs nothing" >&2
  exit 1
}
want_built espalier_install < <(installed needed)
want_built espalier_run < <(installed needed)
want_built espalier_run < <(installed optional)
exit $status
