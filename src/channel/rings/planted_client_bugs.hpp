// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of clients at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::client {

enum class Bug : std::uint8_t {
  none,
  cut_not_collected_again,    // snapshots of several nodes are taken for one without asking again
  hold_taken_for_granted,     // nodes that granted holds are not asked whether these stood
  hold_version_not_asked,     // a hold that stood is believed, whatever version the node tells
  holds_left_standing,        // holds are not ended where another node granted none
  proof_nonce_repeated,       // a client draws no numbers of its own for its proofs
  node_proof_not_checked,     // a client believes whoever says that it has proven itself
  datagram_number_not_asked,  // an answer by a datagram is believed, whatever it answers
  datagram_tag_not_asked,     // likewise, whoever has signed it
};

using base::planted;

}  // namespace espalier::client
