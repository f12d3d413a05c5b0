// SPDX-License-Identifier: Apache-2.0
// A chain as its members agree on it (docs/design/chains.md): its members, their order, and the
// epoch. A membership stores its text.
//
// Thread: any; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::chain {

/// One node of a chain, by a number that it keeps while it is in the chain. A node that rejoins
/// gets a new one, so that messages of its earlier run are not taken for its own.
struct MemberEntry {
  std::uint32_t number = 0;  ///< from 1 on
  std::string name;
  std::string address;  ///< in the fabric, for the other members and clients
  friend bool operator==(const MemberEntry&, const MemberEntry&) = default;
};

/// The first member is the head, the last one the tail.
struct View {
  std::uint64_t chain = 0;     ///< random, from the chain's creation
  std::uint64_t epoch = 0;     ///< from 1, one more with each change
  std::uint64_t fence_ms = 0;  ///< T: a member that is silent for so long may be excluded
  std::vector<MemberEntry> members;
  /// A node that receives records from the tail and will be behind it; acknowledgements do not wait
  /// for it yet.
  std::optional<MemberEntry> joining{};
  /// Each member has had all that the head of the first epoch began with.
  bool whole = false;
  std::uint32_t given = 0;  ///< highest number of nodes that left, if above all here

  /// Finds members, not the joining node.
  [[nodiscard]] const MemberEntry* find(std::uint32_t number) const;
  [[nodiscard]] const MemberEntry* find(std::string_view name) const;
  /// A member's position, from 0 on; nothing: it is not in this view.
  [[nodiscard]] std::optional<std::size_t> place_of(std::uint32_t number) const;
  /// The next view, without these, members or joining. Requires: some members are left.
  [[nodiscard]] View without(const std::vector<std::uint32_t>& numbers) const;
  /// The next view, in which this node joins, under a new number, in place of an earlier joining
  /// one.
  [[nodiscard]] View with_joining(std::string name, std::string address) const;
  /// The next view, in which the joining node is the tail. Requires: there is one.
  [[nodiscard]] View with_joined() const;
  /// The next view, of one excluded member alone: its records are the chain from then on.
  [[nodiscard]] View restored(MemberEntry member) const;
  /// The next view, otherwise equal to this one.
  [[nodiscard]] View again() const;
  friend bool operator==(const View&, const View&) = default;
};

/// Limits on a membership's contents.
inline constexpr std::size_t kMembersMax = 8;
inline constexpr std::size_t kViewBytesMax = 16384;
inline constexpr std::uint64_t kFenceMsMin = 100;
inline constexpr std::uint64_t kFenceMsMax = 60'000;

/// The text of a view: lines of words, readable for people.
[[nodiscard]] std::string print(const View& view);
/// Parses such a text, of any bytes. Errors: a sentence with the mistake and its line.
[[nodiscard]] std::expected<View, std::string> parse_view(std::string_view text);
/// What is wrong with a view, in a sentence; nothing: it is valid.
[[nodiscard]] std::optional<std::string> mistake_in(const View& view);

}  // namespace espalier::chain
