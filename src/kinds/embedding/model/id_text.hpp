// SPDX-License-Identifier: Apache-2.0
// Parses ids of text, digits separated by spaces, without a dependency from one number to the next.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace espalier::embedding {

/// Appends the numbers of a text. False: it has other characters than digits and spaces, or a
/// number of more than 32 bits, and nothing was appended. Cost: about 2 ns for each number.
[[nodiscard]] bool read_spaced_ids(std::string_view text, std::vector<std::uint32_t>& into);

}  // namespace espalier::embedding
