// SPDX-License-Identifier: Apache-2.0
// Calls between members of a chain, at an address of their own (docs/design/chains.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "chain/message.hpp"
#include "wire/call_codec.hpp"

namespace espalier::chain_calls {

// The call ids of chains; wire/message.hpp has those of clients.
inline constexpr auto kSay = static_cast<wire::OffloadId>(94);
inline constexpr auto kStatus = static_cast<wire::OffloadId>(95);
inline constexpr auto kFetch = static_cast<wire::OffloadId>(96);

struct Said {
  chain::Message said{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.said); }
};

/// A message to another member, and its answer.
struct Say {
  static constexpr wire::CallRow kCall{
      .id = kSay,
      .name = "chain_say",
      .summary = "tells a member of a chain something; answers what that says",
      .right = wire::Right::replica,
      .object = wire::Names::all,
      .changes = true};
  using Reply = Said;

  chain::Message said{};
  std::string_view records;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.said, "Message");
    message.rest(self.records, "of an append its records, each behind its length in 8 bytes");
  }
};

/// Lines of words: the member's state, and what it waits for.
struct Told {
  std::string_view text;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.text); }
};

struct Status {
  static constexpr wire::CallRow kCall{
      .id = kStatus,
      .name = "chain_status",
      .summary = "answers what a member of a chain is, and what it waits for",
      .right = wire::Right::none};
  using Reply = Told;

  static constexpr void fields(auto&, auto&) {}
};

/// A request of a joining node for a piece of a checkpoint.
struct Wanted {
  std::uint64_t chain = 0;
  std::uint64_t member = 0;  ///< the joining node's number
  std::uint64_t number = 0;  ///< of the checkpoint; 0: the newest
  std::uint64_t offset = 0;
};

struct Piece {
  std::uint64_t store = 0;   ///< the file's store
  std::uint64_t number = 0;  ///< 0: there is no checkpoint, and the log is complete
  std::uint64_t bytes = 0;   ///< of the file's valid part

  friend bool operator==(const Piece&, const Piece&) = default;
};

struct Fetched {
  Piece piece{};
  std::string_view data;  ///< of the file, from the offset on; empty: its end

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.piece);
    message.rest(self.data);
  }
};

/// From a joining node to the tail: what to begin with.
struct Fetch {
  static constexpr wire::CallRow kCall{
      .id = kFetch,
      .name = "chain_fetch",
      .summary = "answers a piece of the newest checkpoint of the tail of a chain",
      .right = wire::Right::replica,
      .object = wire::Names::all};
  using Reply = Fetched;

  Wanted wanted{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.wanted, "Wanted"); }
};

/// Most bytes of a piece, and of its answer's data.
inline constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

}  // namespace espalier::chain_calls
