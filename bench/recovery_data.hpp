// SPDX-License-Identifier: Apache-2.0
// Data folders whose recovery is measured, and starts of nodes on them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/temporary_folder.hpp"
#include "bench/point_run.hpp"
#include "bench/run_recovery.hpp"
#include "bench/target.hpp"

namespace espalier::bench {

struct RecoverySetting {
  std::uint64_t keys = 0;
  std::uint32_t maps = 1;
  RecoveryFrom from = RecoveryFrom::log;
  std::uint32_t value_bytes = 100;
  std::uint64_t seed = 1;
};

/// The data folder of a filled and stopped node. Thread: one at a time.
class RecoveryData {
 public:
  /// Makes it below `dir`. Errors: throws std::runtime_error.
  RecoveryData(const std::filesystem::path& dir, const RecoverySetting& setting);

  /// The written content of all maps.
  [[nodiscard]] const Contents& contents() const { return contents_; }
  /// Starts a node on it with so many threads; removes what that leaves in the folder. The checksum
  /// is of the node's content. Errors: throws std::runtime_error.
  [[nodiscard]] PointSample start(std::uint32_t threads) const;

 private:
  void fill(const RecoverySetting& setting);

  base::TemporaryFolder place_;
  Contents contents_;
};

}  // namespace espalier::bench
