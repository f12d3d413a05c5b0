// SPDX-License-Identifier: Apache-2.0
// Base64 with padding, in which etcd's JSON gateway carries keys and values.
//
// Thread: any; no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier::chain {

[[nodiscard]] std::string in_base64(std::string_view bytes);
/// Nothing: not valid base64. Padding may be missing.
[[nodiscard]] std::optional<std::string> of_base64(std::string_view text);

}  // namespace espalier::chain
