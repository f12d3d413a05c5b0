#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that the build needs and that are missing. Does nothing, and needs
# neither network nor rights, where all are there.
#
#   scripts/install-packages.sh           what ./run needs
#   scripts/install-packages.sh --tests   and what ./test needs
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config
  libcli11-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libtomlplusplus-dev libcpp-httplib-dev
  libpg-query-dev libre2-dev libhyperscan-dev libssl-dev libcurl4-openssl-dev
  libfabric-dev libxdp-dev libbpf-dev
  libabsl-dev libboost1.81-dev librocksdb-dev liblmdb-dev libhiredis-dev redis-server memcached
  wamerican-insane
)
if [[ "${1:-}" == --tests ]]; then
  packages+=(libgtest-dev libgmock-dev libbenchmark-dev libsqlite3-dev
    clang-19 libclang-rt-19-dev lld-19 openssl tshark python3-scapy iproute2 dpdk-dev etcd-server)
  # Node.js of another source has npm in its own package, and Debian's does not go beside it.
  command -v npm >/dev/null || packages+=(nodejs npm)
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This is no Debian system. Install what these packages hold, and start again:" >&2
  echo "  ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$state" == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing ${missing[*]}" >&2
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}
if ! { "${as_root[@]}" apt-get update -q >&2 && install; }; then
  echo "Could not install: ${missing[*]}" >&2
  echo "Check the network and the list of package sources, or install them by hand." >&2
  exit 1
fi
