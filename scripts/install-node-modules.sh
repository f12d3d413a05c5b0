#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of npm that tests read our files with, as their lock files name them, and
# that are missing. Does nothing, and needs no network, where all are there.
#
#   scripts/install-node-modules.sh
set -euo pipefail
cd "$(dirname "$0")/../tests/kubernetes"

# npm writes down what it has installed.
installed=node_modules/.package-lock.json
if [[ -f "$installed" && ! package-lock.json -nt "$installed" ]]; then
  exit 0
fi
echo "Installing packages of npm for tests/kubernetes" >&2
npm ci --ignore-scripts --no-audit --no-fund --silent >&2
touch "$installed"
