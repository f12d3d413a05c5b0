// SPDX-License-Identifier: Apache-2.0
// What members of a chain ask of each other, at the address that they have for that alone
// (docs/design/chains.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "chain/message.hpp"
#include "wire/call_codec.hpp"

namespace espalier::chain_calls {

// The protocol's numbers that chains have; wire/message.hpp has those of what clients ask.
inline constexpr auto kSay = static_cast<wire::OffloadId>(94);
inline constexpr auto kStatus = static_cast<wire::OffloadId>(95);

struct Said {
  chain::Message said{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.said); }
};

/// A message to another member, which answers it.
struct Say {
  static constexpr wire::CallRow kCall{
      .id = kSay,
      .name = "chain_say",
      .summary = "tells a member of a chain something; answers what that says",
      .right = wire::Right::peer,
      .changes = true};
  using Reply = Said;

  chain::Message said{};
  std::string_view records;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.said, "Message");
    message.rest(self.records, "of an append its records, each behind its length in 8 bytes");
  }
};

/// Lines of words: what the member is, and what it waits for.
struct Told {
  std::string_view text;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.text); }
};

struct Status {
  static constexpr wire::CallRow kCall{
      .id = kStatus,
      .name = "chain_status",
      .summary = "answers what a member of a chain is, and what it waits for",
      .right = wire::Right::read};
  using Reply = Told;

  static constexpr void fields(auto&, auto&) {}
};

}  // namespace espalier::chain_calls
