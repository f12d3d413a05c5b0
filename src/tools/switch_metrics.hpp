// SPDX-License-Identifier: Apache-2.0
// Counters of a switch in Prometheus format (docs/metrics.md).
//
// Thread: any.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace espalier::tools {

struct SwitchMetric {
  std::string_view name;
  std::string_view type;   ///< counter or gauge
  std::string_view label;  ///< empty: none
  std::string_view help;
  /// Its name in the switch's status; with a label, the prefix of the names, whose rest is the
  /// label's value.
  std::string_view status;
};

/// In output order.
[[nodiscard]] std::span<const SwitchMetric> switch_metrics();

/// From the answer to `status` (dataplane/switch_control.hpp). Missing numbers are omitted.
[[nodiscard]] std::string switch_metrics_text(std::string_view status);

}  // namespace espalier::tools
