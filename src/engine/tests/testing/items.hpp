// SPDX-License-Identifier: Apache-2.0
// The items of an answer, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/payload_reader.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

using Items = std::vector<std::pair<std::string, std::string>>;

/// Keys and values; expects nothing after them.
inline Items items_of(std::string_view payload) {
  Items items;
  PayloadReader reader(payload);
  while (reader.good() && !reader.rest().empty()) {
    const auto header = reader.take<wire::ItemHeader>();
    const std::string key(reader.text(header.key_bytes));
    items.emplace_back(key, reader.text(header.value_bytes));
  }
  EXPECT_TRUE(reader.complete());
  return items;
}

}  // namespace espalier::offload
