# SPDX-License-Identifier: Apache-2.0
# What only the benchmark and the command need: the peers, and libraries for people's
# eyes.
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(RocksDB REQUIRED)
pkg_check_modules(lmdb REQUIRED IMPORTED_TARGET lmdb)
pkg_check_modules(hiredis REQUIRED hiredis)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# Not the target of pkg-config, whose definitions differ from those of the precompiled header.
add_library(espalier_hiredis INTERFACE)
target_link_libraries(espalier_hiredis INTERFACE ${hiredis_LINK_LIBRARIES})
