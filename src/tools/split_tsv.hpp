// SPDX-License-Identifier: Apache-2.0
// Splits TSV; base/record_extent.hpp splits CSV.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::tools {

/// Splits a TSV line. The fields point into `content`, or into `scratch` where escapes were
/// decoded. Returns the mistake, or nullopt.
[[nodiscard]] std::optional<std::string> split_tsv(std::string_view content,
                                                   std::vector<std::string_view>& fields,
                                                   std::string& scratch);

}  // namespace espalier::tools
