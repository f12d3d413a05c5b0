# SPDX-License-Identifier: Apache-2.0
# What only the benchmarks need: the peers.
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(RocksDB REQUIRED)
pkg_check_modules(lmdb REQUIRED IMPORTED_TARGET lmdb)
pkg_check_modules(hiredis REQUIRED hiredis)

# Not the target of pkg-config, whose definitions differ from those of the precompiled header.
add_library(espalier_hiredis INTERFACE)
target_link_libraries(espalier_hiredis INTERFACE ${hiredis_LINK_LIBRARIES})
