// SPDX-License-Identifier: Apache-2.0
#include "chain/view.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.hpp"
#include "base/number_text.hpp"

namespace espalier::chain {
namespace {

constexpr std::string_view kFirstLine = "espalier-chain 1";
constexpr std::size_t kNameBytesMax = 64;
constexpr std::size_t kAddressBytesMax = 512;

/// The text up to the next space; removes both.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool is_word(std::string_view text, std::size_t most) {
  if (text.empty() || text.size() > most) return false;
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// Parses one line after the first into a view. Returns whether it is valid.
bool read_line(std::string_view line, View& view) {
  const std::string_view key = take_word(line);
  const auto number = [&](std::uint64_t& into) {
    const auto read = base::parse_digits<std::uint64_t>(take_word(line));
    if (read) into = *read;
    return read && line.empty();
  };
  if (key == "chain") return number(view.chain);
  if (key == "epoch") return number(view.epoch);
  if (key == "fence_ms") return number(view.fence_ms);
  if (key == "whole") return line.empty() && !std::exchange(view.whole, true);
  if (key == "given") {
    const auto read = base::parse_digits<std::uint32_t>(line);
    view.given = read.value_or(0);
    return read.has_value();
  }
  const bool is_joining = key == "joining" && !view.joining;
  if (!is_joining && (key != "member" || view.members.size() == kMembersMax)) return false;
  MemberEntry entry;
  const auto read = base::parse_digits<std::uint32_t>(take_word(line));
  if (!read) return false;
  entry.number = *read;
  entry.name = take_word(line);
  entry.address = line;
  if (is_joining) {
    view.joining = std::move(entry);
  } else {
    view.members.push_back(std::move(entry));
  }
  return true;
}

/// The highest member number in a view.
std::uint32_t highest_number(const View& view) {
  std::uint32_t highest = view.joining ? view.joining->number : 0;
  for (const MemberEntry& entry : view.members) highest = std::max(highest, entry.number);
  return highest;
}

std::optional<std::string> mistake_in_entry(const MemberEntry& entry) {
  if (entry.number == 0) return "a member's number is from 1 on";
  if (!is_word(entry.name, kNameBytesMax)) return "a member's name is 1 to 64 letters";
  if (is_word(entry.address, kAddressBytesMax)) return std::nullopt;
  return "the address of member '" + entry.name + "' is none";
}

}  // namespace

const MemberEntry* View::find(std::uint32_t number) const {
  const auto found = std::ranges::find(members, number, &MemberEntry::number);
  return found != members.end() ? &*found : nullptr;
}

const MemberEntry* View::find(std::string_view name) const {
  const auto found = std::ranges::find(members, name, &MemberEntry::name);
  return found != members.end() ? &*found : nullptr;
}

std::optional<std::size_t> View::place_of(std::uint32_t number) const {
  const MemberEntry* const found = find(number);
  if (found == nullptr) return std::nullopt;
  return static_cast<std::size_t>(found - members.data());
}

View View::without(const std::vector<std::uint32_t>& numbers) const {
  View next = again();
  const auto leaves = [&](const MemberEntry& entry) {
    return std::ranges::find(numbers, entry.number) != numbers.end();
  };
  std::erase_if(next.members, leaves);
  if (next.joining && leaves(*next.joining)) next.joining.reset();
  ESPALIER_ASSERT(!next.members.empty());
  const std::uint32_t highest = std::max(given, highest_number(*this));
  if (highest > highest_number(next)) next.given = highest;
  return next;
}

View View::with_joining(std::string name, std::string address) const {
  View next = again();
  const std::uint32_t number = std::max(given, highest_number(*this)) + 1;
  next.joining = MemberEntry{number, std::move(name), std::move(address)};
  return next;
}

View View::with_joined() const {
  ESPALIER_ASSERT(joining.has_value());
  View next = again();
  next.members.push_back(*std::exchange(next.joining, std::nullopt));
  return next;
}

View View::restored(MemberEntry member) const {
  View next = again();
  next.members.clear();
  next.joining.reset();
  next.members.push_back(std::move(member));
  next.whole = true;  // no member begins with an empty folder any more
  const std::uint32_t highest = std::max(given, highest_number(*this));
  if (highest > highest_number(next)) next.given = highest;
  return next;
}

View View::again() const {
  View next = *this;
  ++next.epoch;
  return next;
}

std::string print(const View& view) {
  std::string text(kFirstLine);
  text += "\nchain " + std::to_string(view.chain);
  text += "\nepoch " + std::to_string(view.epoch);
  text += "\nfence_ms " + std::to_string(view.fence_ms) + "\n";
  if (view.whole) text += "whole\n";
  if (view.given != 0) text += "given " + std::to_string(view.given) + "\n";
  const auto add = [&](std::string_view what, const MemberEntry& entry) {
    text += what;
    text += " " + std::to_string(entry.number) + " " + entry.name + " " + entry.address + "\n";
  };
  for (const MemberEntry& entry : view.members) add("member", entry);
  if (view.joining) add("joining", *view.joining);
  return text;
}

std::expected<View, std::string> parse_view(std::string_view text) {
  if (text.size() > kViewBytesMax) return std::unexpected("it is too long for a chain");
  View view;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool good = number == 1 ? line == kFirstLine : read_line(line, view);
    if (!good) return std::unexpected("line " + std::to_string(number) + " is none of a chain");
  }
  if (auto mistake = mistake_in(view)) return std::unexpected(std::move(*mistake));
  return view;
}

std::optional<std::string> mistake_in(const View& view) {
  if (view.chain == 0) return "it names no chain";
  if (view.epoch == 0) return "it names no epoch";
  if (view.fence_ms < kFenceMsMin || view.fence_ms > kFenceMsMax) {
    return "fence_ms is from 100 to 60000";
  }
  if (view.members.empty()) return "it has no member";
  if (view.members.size() + (view.joining ? 1 : 0) > kMembersMax) {
    return "it has more than 8 members";
  }
  for (const MemberEntry& entry : view.members) {
    if (auto mistake = mistake_in_entry(entry)) return mistake;
    const bool twice = view.find(entry.number) != &entry || view.find(entry.name) != &entry;
    if (twice) return "member '" + entry.name + "' is in it twice";
  }
  if (!view.joining) return std::nullopt;
  if (auto mistake = mistake_in_entry(*view.joining)) return mistake;
  const MemberEntry& joining = *view.joining;
  const bool is_member = view.find(joining.number) != nullptr || view.find(joining.name) != nullptr;
  if (is_member) return "member '" + joining.name + "' is in it twice";
  return std::nullopt;
}

}  // namespace espalier::chain
