// SPDX-License-Identifier: Apache-2.0
// For tests: what tables must do, as functions that say what was wrong, so that tests with planted
// bugs can want them to say something.
//
// Thread: one at a time; some start threads of their own.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::dataplane {

/// Lookups of random trees at their separators against the trees; "" if all were right.
[[nodiscard]] std::string lookups_at_separators(std::uint64_t seed, int rounds);

/// Redirected frames against their checksums; "" if all were right.
[[nodiscard]] std::string redirected_frames(std::uint64_t seed, int rounds);

/// Threads process bursts while entries are changed in pairs, and all tables at times; each burst
/// must find both entries of a pair alike. "" if all did.
[[nodiscard]] std::string changes_under_frames(std::uint64_t rounds);

}  // namespace espalier::dataplane
