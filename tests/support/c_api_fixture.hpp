// SPDX-License-Identifier: Apache-2.0
// For tests: the C API on a store in this process, and on a node.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/espalier.h"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {

inline espalier_bytes b(std::string_view text) { return {text.data(), text.size()}; }
inline std::string text(espalier_bytes bytes) {
  return {static_cast<const char*>(bytes.data), bytes.size};
}
inline constexpr espalier_bytes kLie{nullptr, 3};

inline constexpr const char* kPlaces[] = {"embedded", "unix", "shm", "roce", "ofi"};

/// The parameter is the place: "embedded", or the transport to a node (NodeFixture::reach_by).
class CApi : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    address_ = GetParam();
    if (address_ != "embedded") {
      reach_by(address_);
      start();
      address_ = address();
    }
    espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
    options.memory_bytes_max = std::uint64_t{256} << 20;
    options.huge_pages = 0;
    good(espalier_store_open(address_.c_str(), &options, &store_));
    good(espalier_map_create(store_, b("fruit"), nullptr, &map_));
    good(espalier_item_create(&item_));
  }
  void TearDown() override {
    espalier_item_destroy(item_);
    espalier_map_close(map_);
    good(espalier_store_close(store_));
  }

  static void good(espalier_code code) { EXPECT_EQ(code, ESPALIER_OK) << espalier_error_message(); }
  /// Expects that a call refused, with a text.
  static void bad(espalier_code code, espalier_code expected, const std::string& words) {
    EXPECT_EQ(code, expected) << espalier_error_message();
    EXPECT_EQ(espalier_error_code(), expected);
    EXPECT_THAT(espalier_error_message(), testing::HasSubstr(words));
  }
  static void null(espalier_code code, const std::string& argument) {
    bad(code, ESPALIER_INVALID_ARGUMENT, ": " + argument + " is null");
  }
  static void lies(espalier_code code, const std::string& argument) {
    bad(code, ESPALIER_INVALID_ARGUMENT, ": " + argument + " has a size but no data");
  }

  void put(std::string_view key, std::string_view value) {
    good(espalier_map_put(map_, b(key), b(value), nullptr));
  }
  std::string get(std::string_view key) {
    std::uint32_t found = 7;
    good(espalier_map_get(map_, b(key), item_, &found));
    EXPECT_LE(found, 1u);
    EXPECT_EQ(text(espalier_item_key(item_)), found ? key : "");
    return found ? text(espalier_item_value(item_)) : "nothing";
  }
  using Items = std::vector<std::pair<std::string, std::string>>;
  static std::int32_t collect(void* context, const espalier_entry* items, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<Items*>(context)->emplace_back(text(items[i].key), text(items[i].value));
    }
    return 0;
  }
  static std::int32_t stop_at_once(void* context, const espalier_entry*, std::size_t) {
    ++*static_cast<int*>(context);
    return 1;
  }

  std::string address_;
  espalier_store* store_ = nullptr;
  espalier_map* map_ = nullptr;
  espalier_item* item_ = nullptr;
};

}  // namespace espalier::test
