// SPDX-License-Identifier: Apache-2.0
// `espalier-bench recovery`: the start time of a node with so many pairs in its data folder, from
// its log alone or from a checkpoint, by the number of threads that apply records, beside the time
// of only reading the same files.
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
