// SPDX-License-Identifier: Apache-2.0
// The node's side of sessions over a fabric: of an endpoint and of each session, with the state
// that kinds of objects store there.
//
// Thread: the endpoint's scheduler's.
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

/// State of an endpoint, for all its sessions.
class EndpointPart {
 public:
  virtual ~EndpointPart() = default;
};

/// The node's side of an endpoint: registers the memory that clients reach.
struct EndpointSide {
  Services& services;
  fabric::RegionTable& regions;
  const fabric::Properties& properties;
  bool one_sided = false;  ///< the node offers its memory
  TypedSlots<EndpointPart> parts{};

  /// Whether clients may WRITE: a completed WRITE must be visible to the node's reads.
  [[nodiscard]] bool lets_write() const { return properties.write_is_placed; }
  /// Whether clients may add: all adds to a word must use one atomic unit, the node's own included.
  [[nodiscard]] bool lets_add() const { return one_sided && properties.atomic_with_processor; }
};

/// The same of one session.
struct LinkSide {
  EndpointSide& endpoint;
  fabric::Domain domain;         ///< of its queue pairs
  std::uint64_t session_number;  ///< for operators
  /// Derived by both ends from their proofs; null: there was no proof.
  const crypto::SecretBytes* key = nullptr;
};

}  // namespace espalier::offload
