// SPDX-License-Identifier: Apache-2.0
// `espalier-bench recovery`: how long a node takes to start that has so many pairs in its data
// folder, out of its log alone or out of a checkpoint, by threads that apply records, beside what
// the disk gives when the same files are only read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

enum class RecoveryFrom : std::uint8_t { log, checkpoint };

[[nodiscard]] std::string_view name(RecoveryFrom from);
[[nodiscard]] std::optional<RecoveryFrom> parse_recovery_from(std::string_view text);

struct RecoveryBenchOptions : PointOptions {
  static constexpr const char* kBench = "recovery";
  static constexpr const char* kSummary = "the start of a node that has much to read";

  std::string dir;  ///< empty: that for temporary files
  std::vector<std::uint64_t> keys{100'000, 1'000'000};
  std::vector<std::uint32_t> maps{1, 2};
  std::vector<std::uint32_t> threads{1, 2};
  std::vector<RecoveryFrom> from{RecoveryFrom::log, RecoveryFrom::checkpoint};
  std::uint32_t value_bytes = 100;

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench
