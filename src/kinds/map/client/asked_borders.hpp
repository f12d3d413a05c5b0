// SPDX-License-Identifier: Apache-2.0
// Asking a map's node where a range may be cut.
//
// Thread: that of the rings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/remote_pipeline.hpp"

namespace espalier::client {

/// The keys of an answer to RangeBorders, which may come from anywhere: as far as it goes.
[[nodiscard]] std::vector<std::string> borders_in(std::string_view answer);

/// Where the scan's range may be cut into so many parts; nowhere, if a bound is longer than a key
/// can be. Cost: one round trip. Errors: those of the call; unsupported (an older node).
/// Requires: nothing pends at `requests`.
Result<std::vector<std::string>> ask_borders(RemoteRequests& requests, const Scope& scope,
                                             const Request& scan, std::uint32_t parts);

}  // namespace espalier::client
