// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of clients at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::client {

enum class Bug : std::uint8_t {
  none,
  cut_not_collected_again,    // one collect is taken for a consistent cut of several nodes
  hold_taken_for_granted,     // nodes are not asked whether their holds were kept
  hold_version_not_asked,     // a kept hold is accepted with any version
  holds_left_standing,        // holds are kept although another node granted none
  proof_nonce_repeated,       // a client reuses nonces in its proofs
  node_proof_not_checked,     // a client accepts a node without checking its proof
  datagram_number_not_asked,  // a datagram with another request's number is accepted
  datagram_tag_not_asked,     // a datagram with a wrong signature is accepted
};

using base::planted;

}  // namespace espalier::client
