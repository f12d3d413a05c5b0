// SPDX-License-Identifier: Apache-2.0
// The byte format of the items of a piece of a walk: written by a node, read by its client.
//
// Thread: safe, no state.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "kinds/hash/format.hpp"

namespace espalier::hash {

/// Appends an item. Throws std::bad_alloc. Requires: a key has at most 65535 bytes.
inline void append_item(std::string& to, std::string_view key, std::string_view value,
                        std::uint64_t version) {
  const bool left_out = value.size() > kWalkedValueMax;
  if (left_out) value = {};
  const ItemOfWalk head{version, static_cast<std::uint32_t>(value.size()),
                        static_cast<std::uint16_t>(key.size()),
                        left_out ? std::uint16_t{1} : std::uint16_t{0}};
  to.append(base::bytes_of(head)).append(key).append(value);
}

/// A parsed item.
struct ItemRead {
  ItemOfWalk head{};
  std::string_view key;
  std::string_view value;
};

/// Parses the next item off the front. False: there is none, or it is invalid.
[[nodiscard]] inline bool take_item(std::string_view& from, ItemRead& item) {
  ItemOfWalk head{};
  if (from.size() < sizeof head) return false;
  std::memcpy(&head, from.data(), sizeof head);
  const std::size_t bytes = sizeof head + head.key_bytes + std::size_t{head.value_bytes};
  const bool good =
      head.key_bytes != 0 && head.left_out <= 1 && (head.left_out == 0 || head.value_bytes == 0);
  if (!good || from.size() < bytes) return false;
  item = {head, from.substr(sizeof head, head.key_bytes),
          from.substr(sizeof head + head.key_bytes, head.value_bytes)};
  from.remove_prefix(bytes);
  return true;
}

}  // namespace espalier::hash
