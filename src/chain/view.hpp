// SPDX-License-Identifier: Apache-2.0
// A chain as its members agree on it (docs/design/chains.md): who is in it, in which order, in
// which epoch. What a membership keeps is its text.
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

/// One node of a chain, by the number that it keeps while it is in it. Whoever comes again has
/// another one, so that nothing which an earlier life of it says or hears is taken for its own.
struct MemberEntry {
  std::uint32_t number = 0;  ///< from 1 on
  std::string name;
  std::string address;  ///< of the fabric, at which the other members and clients reach it
  friend bool operator==(const MemberEntry&, const MemberEntry&) = default;
};

/// The first member is the head, the last one the tail.
struct View {
  std::uint64_t chain = 0;     ///< drawn when the chain was made
  std::uint64_t epoch = 0;     ///< from 1 on, one more with each change
  std::uint64_t fence_ms = 0;  ///< T: after so long a silence a member may be left out
  std::vector<MemberEntry> members;
  /// One that gets the records of the tail, behind which it will be; what is acknowledged does not
  /// wait for it yet.
  std::optional<MemberEntry> joining{};
  /// Each member has had all that the head of the first epoch began with.
  bool whole = false;
  std::uint32_t given = 0;  ///< the highest number of those that left, where it is above all here

  /// Members, and not who joins.
  [[nodiscard]] const MemberEntry* find(std::uint32_t number) const;
  [[nodiscard]] const MemberEntry* find(std::string_view name) const;
  /// Where a member stands, from 0 on; nothing: it is not in this view.
  [[nodiscard]] std::optional<std::size_t> place_of(std::uint32_t number) const;
  /// The next view, without these, who joins perhaps among them. Requires: some members are left.
  [[nodiscard]] View without(const std::vector<std::uint32_t>& numbers) const;
  /// The next view, in which this one joins, under a new number, in place of who did.
  [[nodiscard]] View with_joining(std::string name, std::string address) const;
  /// The next view, in which who joins is the tail. Requires: one does.
  [[nodiscard]] View with_joined() const;
  /// The next view, of one member alone that was left out: what it holds is the chain from then on.
  [[nodiscard]] View restored(MemberEntry member) const;
  /// The next view, which is like this one.
  [[nodiscard]] View again() const;
  friend bool operator==(const View&, const View&) = default;
};

/// Bounds of what is believed of a membership.
inline constexpr std::size_t kMembersMax = 8;
inline constexpr std::size_t kViewBytesMax = 16384;
inline constexpr std::uint64_t kFenceMsMin = 100;
inline constexpr std::uint64_t kFenceMsMax = 60'000;

/// The text of a view: lines of words, which people may read.
[[nodiscard]] std::string print(const View& view);
/// Reads such a text, of any bytes. Errors: a sentence that says what is wrong and in which line.
[[nodiscard]] std::expected<View, std::string> parse_view(std::string_view text);
/// What is wrong with a view, in a sentence; nothing: it is good.
[[nodiscard]] std::optional<std::string> mistake_in(const View& view);

}  // namespace espalier::chain
