// SPDX-License-Identifier: Apache-2.0
// What a node says when a queue pair is made, as a client reads it: the bytes are the node's.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "espalier/error.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

/// Errors: corrupt (detail 1: what answers is no node), and why the node refused.
inline Result<wire::LinkWelcome> read_welcome(std::span<const std::byte> said) {
  wire::LinkWelcome welcome{};
  if (said.size() < sizeof welcome) return fail(Code::corrupt, 1);
  std::memcpy(&welcome, said.data(), sizeof welcome);
  if (welcome.magic != wire::kLinkMagic) return fail(Code::corrupt, 1);
  if (welcome.code != 0) return fail(static_cast<Code>(welcome.code), welcome.detail);
  return welcome;
}

}  // namespace espalier::client
