// SPDX-License-Identifier: Apache-2.0
// Parses a node's welcome, which it sends when a queue pair is accepted. The bytes are foreign.
//
// Thread: any.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "espalier/error.hpp"
#include "fabric/queue_pair.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

/// The node's reason for refusal; corrupt (detail 1): not a code.
inline Error refusal_of(std::uint32_t code, std::uint32_t detail) {
  const auto said = static_cast<Code>(code);
  if (static_cast<std::uint32_t>(said) != code) return {Code::corrupt, 0, 1};
  return {said, 0, detail};
}

/// Errors: corrupt (detail 1: the peer is not a node), and the node's reason for refusal.
inline Result<wire::LinkWelcome> read_welcome(std::span<const std::byte> said) {
  wire::LinkWelcome welcome{};
  if (said.size() < sizeof welcome) return fail(Code::corrupt, 1);
  std::memcpy(&welcome, said.data(), sizeof welcome);
  if (welcome.magic != wire::kLinkMagic) return fail(Code::corrupt, 1);
  if (welcome.code != 0) return std::unexpected(refusal_of(welcome.code, welcome.detail));
  return welcome;
}

/// Why a pair was not connected: the node's reason for refusal; system (ECONNREFUSED: no server
/// there, or `at_once`: the pair failed before anything was sent; ETIMEDOUT: no answer). Requires:
/// the pair has failed.
inline Error why_not_connected(const fabric::QueuePair& pair, bool at_once = false) {
  wire::LinkWelcome said{};
  if (pair.peer_data().size() >= sizeof said) {
    std::memcpy(&said, pair.peer_data().data(), sizeof said);
    const bool refused = said.magic == wire::kLinkMagic && said.code != 0;
    if (refused) return refusal_of(said.code, said.detail);
  }
  const bool silent = !at_once && pair.ended_by() == fabric::Status::retry_exceeded;
  return {Code::system, 0, static_cast<std::uint32_t>(silent ? ETIMEDOUT : ECONNREFUSED)};
}

/// Whether a node that refused for this reason may have room soon.
inline bool may_pass(const Error& refusal) { return refusal.code == Code::too_many_participants; }

}  // namespace espalier::client
