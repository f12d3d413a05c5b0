// SPDX-License-Identifier: Apache-2.0
// Adds on one key, many in flight: each reads the result of the one before, and only its answer
// waits for the disk. A part of `espalier-bench log`.
#pragma once

#include <cstdint>
#include <filesystem>

#include "bench/point_run.hpp"
#include "espalier/kind.hpp"

namespace espalier::bench {

struct AddSetting {
  std::filesystem::path dir;          ///< parent of the data folder
  ObjectKind kind = ObjectKind::map;  ///< or hash
  Durability durability = Durability::sync;
  std::uint32_t in_flight = 256;
  std::uint64_t ops = 0;
};

/// One client thread of a node started for this. The checksum is the key's final sum. Errors:
/// throws std::runtime_error.
[[nodiscard]] PointSample measure_adds(const AddSetting& setting);

}  // namespace espalier::bench
