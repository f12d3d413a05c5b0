// SPDX-License-Identifier: Apache-2.0
// A request before it is a message: what its header says, and the bytes that follow. Clients send
// them to nodes, devices to their hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/message.hpp"

namespace espalier::wire {

/// What it points to must live until it is sent.
struct CallMessage {
  OffloadId offload = OffloadId::invalid;
  bool at_snapshot = false;  ///< its payload begins with the number of a snapshot
  std::uint8_t hops = 0;     ///< over how many nodes it has come: kHopsMax at most
  std::uint32_t map = 0;
  std::uint32_t argument = 0;
  std::uint64_t hint = 0;  ///< wire::Ref of a node at which a read may enter; 0: none
  std::string_view key{};
  std::string_view payload{};       ///< and
  std::string_view more_payload{};  ///< behind it
  /// The principal on whose behalf it is relayed, as wire/principal.hpp draws it; empty: none.
  std::string_view principal{};

  [[nodiscard]] std::size_t bytes() const {
    return kRequestHeaderBytes + key.size() + payload.size() + more_payload.size() +
           principal.size();
  }
};

}  // namespace espalier::wire
