// SPDX-License-Identifier: Apache-2.0
// Of what there are no more places: the detail of Code::too_many_participants. Its high 8 bits say
// of what, its low 24 how many there may be, so that the message can say what to end, and names a
// setting only where there is one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::base {

/// Numbers are on the wire: none is given again.
enum class Places : std::uint8_t {
  unnamed = 0,                 ///< of an older version
  participants = 1,            ///< threads and clients of a store
  connections = 2,             ///< of a node
  principal_connections = 3,   ///< of one principal
  sessions = 4,                ///< of one endpoint of a fabric
  descriptors = 5,             ///< of the node's process
  hellos = 6,                  ///< clients that are at the socket and have not said hello
  user_hellos = 7,             ///< of these, one user's
  proofs = 8,                  ///< clients that were challenged and have not answered
  late_refusals = 9,           ///< sessions' new pairs that are refused later
  connection_snapshots = 10,   ///< of one connection
  principal_snapshots = 11,    ///< of one principal
  response_rings = 12,         ///< of one connection
  pipelines = 13,              ///< that a session keeps
  landing_windows = 14,        ///< of one session
  sequencer_words = 15,        ///< of one session
  indexed_maps = 16,           ///< that switches have tables of
  feed_followers = 17,         ///< of one map
  links = 18,                  ///< of a memif socket
  region_keys = 19,            ///< of one session
  principal_region_keys = 20,  ///< of one principal
  process_region_keys = 21,    ///< of the node's process
  clock_groups = 22,           ///< of maps of a store
};
inline constexpr std::uint32_t kPlacesShift = 24;
inline constexpr std::uint32_t kPlacesMax = (1u << kPlacesShift) - 1;

/// `most`: how many there may be.
[[nodiscard]] constexpr Error full_error(Places of, std::uint64_t most = 0) {
  const auto number = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kPlacesMax));
  return {Code::too_many_participants, 0, static_cast<std::uint32_t>(of) << kPlacesShift | number};
}
[[nodiscard]] constexpr std::unexpected<Error> full(Places of, std::uint64_t most = 0) {
  return std::unexpected(full_error(of, most));
}

/// Of an error too_many_participants. May be none of those above: a later version's.
[[nodiscard]] constexpr Places places_of(const Error& error) {
  return static_cast<Places>(error.detail >> kPlacesShift);
}
[[nodiscard]] constexpr std::uint32_t places_max_of(const Error& error) {
  return error.detail & kPlacesMax;
}

/// As the audit log has it, e.g. "principal_snapshots"; empty: unnamed, or a later version's.
[[nodiscard]] std::string_view name(Places places);
/// What is full and what to do about it; empty: unnamed, or a later version's.
[[nodiscard]] std::string full_message(const Error& error);

}  // namespace espalier::base
