// SPDX-License-Identifier: Apache-2.0
#include "dataplane/key_number.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "base/assert.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

// Whether all keys with the number of this one are at least it: then the number alone tells on
// which side of it a key lies. The least key of a number has no zeros at its end, for without them
// it would be less and have the same number. The number 0 is also that of keys below the prefix.
bool is_least_of_its_number(KeyBytes prefix, KeyBytes key) {
  if (key.size() < prefix.size() || !std::ranges::equal(prefix, key.first(prefix.size()))) {
    return false;
  }
  const KeyBytes rest = key.subspan(prefix.size());
  return !rest.empty() && rest.size() <= kNumberBytes && rest.back() != std::byte{0};
}

}  // namespace

std::uint64_t key_number(KeyBytes prefix, KeyBytes key) {
  const std::size_t common = std::min(prefix.size(), key.size());
  const int order = common == 0 ? 0 : std::memcmp(key.data(), prefix.data(), common);
  if (order != 0) return order < 0 ? 0 : kLargest;
  if (key.size() < prefix.size()) return 0;
  const KeyBytes rest = key.subspan(prefix.size());
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    number = number << 8 | (i < rest.size() ? std::to_integer<std::uint64_t>(rest[i]) : 0);
  }
  return number;
}

std::size_t shared_prefix(std::span<const KeyBytes> keys) {
  if (keys.empty()) return 0;
  std::size_t shared = keys.front().size();
  for (const KeyBytes key : keys) {
    const auto ends = std::ranges::mismatch(keys.front().first(shared), key);
    shared = static_cast<std::size_t>(ends.in1 - keys.front().begin());
  }
  return shared;
}

Branches number_branches(KeyBytes prefix, std::span<const KeyBytes> separators,
                         std::span<const NodeNumber> children) {
  ESPALIER_ASSERT(separators.size() + 1 == children.size());
  Branches made;
  made.children.push_back(children.front());
  // From `low` on, numbers lead to `child`; what begins at the same number is replaced.
  const auto begin = [&made](std::uint64_t low, NodeNumber child) {
    if (low == 0) {
      made.separators.clear();
      made.children.assign(1, child);
    } else if (!made.separators.empty() && made.separators.back() == low) {
      made.children.back() = child;
    } else {
      made.separators.push_back(low);
      made.children.push_back(child);
    }
  };
  std::optional<std::uint64_t> doubtful;
  for (std::size_t i = 0; i < separators.size(); ++i) {
    const std::uint64_t number = key_number(prefix, separators[i]);
    if (is_least_of_its_number(prefix, separators[i])) {
      begin(number, children[i + 1]);
    } else {
      if (doubtful != number) begin(number, kHere);
      doubtful = number;
      if (number != kLargest) begin(number + 1, children[i + 1]);
    }
  }
  return made;
}

}  // namespace espalier::dataplane
