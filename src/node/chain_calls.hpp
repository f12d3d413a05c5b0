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
inline constexpr auto kFetch = static_cast<wire::OffloadId>(96);

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
      .right = wire::Right::none};
  using Reply = Told;

  static constexpr void fields(auto&, auto&) {}
};

/// Which piece of a checkpoint one that joins wants.
struct Wanted {
  std::uint64_t chain = 0;
  std::uint64_t member = 0;  ///< its own number
  std::uint64_t number = 0;  ///< of the checkpoint; 0: the newest there is
  std::uint64_t offset = 0;
};

struct Piece {
  std::uint64_t store = 0;   ///< whose it is, as the file says
  std::uint64_t number = 0;  ///< 0: there is no checkpoint, and the log is there from its beginning
  std::uint64_t bytes = 0;   ///< of the file, as far as it counts

  friend bool operator==(const Piece&, const Piece&) = default;
};

struct Fetched {
  Piece piece{};
  std::string_view data;  ///< of the file, from the offset on; none: it ends there

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.piece);
    message.rest(self.data);
  }
};

/// The tail, by one that joins the chain: what to begin with.
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

/// Of a piece, and the most that its answer has.
inline constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

}  // namespace espalier::chain_calls
