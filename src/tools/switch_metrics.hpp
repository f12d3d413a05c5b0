// SPDX-License-Identifier: Apache-2.0
// What a switch counts, as Prometheus reads it (docs/metrics.md).
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
  /// What the switch's status calls it; where there is a label, what its names begin with, and the
  /// rest is the value of the label.
  std::string_view status;
};

/// In the order in which they are told.
[[nodiscard]] std::span<const SwitchMetric> switch_metrics();

/// From the answer to `status` (dataplane/switch_control.hpp). Numbers that it lacks are left out.
[[nodiscard]] std::string switch_metrics_text(std::string_view status);

}  // namespace espalier::tools
