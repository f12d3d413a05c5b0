// SPDX-License-Identifier: Apache-2.0
// The grammar of TSV, as a function of bytes alone; that of CSV is base/record_extent.hpp's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::tools {

/// Takes a TSV line apart. The fields point into `content` where they can and into `scratch` where
/// escapes had to be undone. Returns what is wrong with it, or nullopt.
[[nodiscard]] std::optional<std::string> split_tsv(std::string_view content,
                                                   std::vector<std::string_view>& fields,
                                                   std::string& scratch);

}  // namespace espalier::tools
