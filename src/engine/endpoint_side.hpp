// SPDX-License-Identifier: Apache-2.0
// The node's side of sessions over a fabric: of an endpoint, with what is kept there for a kind of
// object, and of each session.
//
// Thread: that of the endpoint's scheduler.
#pragma once

#include <cstdint>

#include "crypto/credential.hpp"
#include "engine/node_parts.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric {
class RegionTable;
}

namespace espalier::offload {

struct Services;

/// What is kept at an endpoint for all its sessions.
class EndpointPart {
 public:
  virtual ~EndpointPart() = default;
};

/// The node's side of an endpoint: where keys are made by which clients reach memory.
struct EndpointSide {
  Services& services;
  fabric::RegionTable& regions;
  const fabric::Properties& properties;
  bool one_sided = false;  ///< the node offers its memory
  TypedSlots<EndpointPart> parts{};

  /// A peer that is told that its WRITEs are done relies on their being there for us to read.
  [[nodiscard]] bool lets_write() const { return properties.write_is_placed; }
  /// All who add to a word must be seen by one atomic unit, the node's own adds included.
  [[nodiscard]] bool lets_add() const { return one_sided && properties.atomic_with_processor; }
};

/// The same of one session.
struct LinkSide {
  EndpointSide& endpoint;
  fabric::Domain domain;         ///< of its queue pairs
  std::uint64_t session_number;  ///< by which operators know it
  /// That both ends have drawn out of what they have proven to each other; null: nothing was.
  const crypto::SecretBytes* key = nullptr;
};

}  // namespace espalier::offload
