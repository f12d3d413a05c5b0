// SPDX-License-Identifier: Apache-2.0
// What a node says when a queue pair is made, as a client reads it: the bytes are the node's.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "espalier/error.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

/// Why a node refused, as it says; corrupt (detail 1): no code is such a number.
inline Error refusal_of(std::uint32_t code, std::uint32_t detail) {
  const auto said = static_cast<Code>(code);
  if (static_cast<std::uint32_t>(said) != code) return {Code::corrupt, 0, 1};
  return {said, 0, detail};
}

/// Errors: corrupt (detail 1: what answers is no node), and why the node refused.
inline Result<wire::LinkWelcome> read_welcome(std::span<const std::byte> said) {
  wire::LinkWelcome welcome{};
  if (said.size() < sizeof welcome) return fail(Code::corrupt, 1);
  std::memcpy(&welcome, said.data(), sizeof welcome);
  if (welcome.magic != wire::kLinkMagic) return fail(Code::corrupt, 1);
  if (welcome.code != 0) return std::unexpected(refusal_of(welcome.code, welcome.detail));
  return welcome;
}

}  // namespace espalier::client
