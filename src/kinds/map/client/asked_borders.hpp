// SPDX-License-Identifier: Apache-2.0
// Asks a map's node for keys that split a range.
//
// Thread: that of the rings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/remote_pipeline.hpp"

namespace espalier::client {

/// The keys of an answer to RangeBorders, which may be any bytes: those before the first error.
[[nodiscard]] std::vector<std::string> borders_in(std::string_view answer);

/// Keys that split the scan's range into `parts` parts; none, if a bound is longer than a key can
/// be. Cost: one round trip. Errors: those of the call; unsupported (an older node).
/// Requires: nothing is pending at `requests`.
Result<std::vector<std::string>> ask_borders(RemoteRequests& requests, const Scope& scope,
                                             const Request& scan, std::uint32_t parts);

}  // namespace espalier::client
