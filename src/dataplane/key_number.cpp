// SPDX-License-Identifier: Apache-2.0
#include "dataplane/key_number.hpp"

#include <limits>
#include <optional>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
// Whether all keys with the number of this one are at least it: then the number alone decides on
// which side of it a key lies. The least key of a number has no zeros at its end, for without them
// it would be less and have the same number. The number 0 is also that of keys below the prefix.
bool is_least_of_its_number(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix)) return false;
  const std::string_view rest = key.substr(prefix.size());
  return !rest.empty() && rest.size() <= sizeof(std::uint64_t) && rest.back() != '\0';
}

}  // namespace

std::uint64_t key_number(std::string_view prefix, std::string_view key) {
  if (key.starts_with(prefix)) return base::load_be64_prefix(key.substr(prefix.size()));
  return base::compare(key, prefix) < 0 ? 0 : kLargest;
}

std::size_t shared_prefix(std::span<const std::string_view> keys) {
  if (keys.empty()) return 0;
  std::string_view shared = keys.front();
  for (const std::string_view key : keys) {
    shared = shared.substr(0, base::common_prefix_bytes(shared, key));
  }
  return shared.size();
}

Branches number_branches(std::string_view prefix, std::span<const std::string_view> separators,
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
