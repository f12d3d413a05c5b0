// SPDX-License-Identifier: Apache-2.0
#include "tools/json_record.hpp"

#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

TEST(JsonRecord, EveryPairOfBytesComesBack) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; b += 5) {
      const std::string bytes{static_cast<char>(a), static_cast<char>(b)};
      std::string line;
      append_json_record(line, bytes, bytes + bytes);
      EXPECT_EQ(line.find('\n'), std::string::npos);
      std::string key;
      std::string value;
      ASSERT_EQ(parse_json_record(line, key, value), std::nullopt) << line;
      EXPECT_EQ(key, bytes);
      EXPECT_EQ(value, bytes + bytes);
    }
  }
}

TEST(JsonRecord, AMissingValueIsEmpty) {
  std::string key;
  std::string value = "left over";
  EXPECT_EQ(parse_json_record("{\"key\":\"k\",\"other\":[1,2]}", key, value), std::nullopt);
  EXPECT_EQ(key, "k");
  EXPECT_EQ(value, "");
}

TEST(JsonRecord, DeepNestingIsRefusedWithoutHarm) {
  std::string key;
  std::string value;
  EXPECT_EQ(parse_json_record(std::string(1 << 20, '['), key, value), "is not valid JSON");
  std::string closed = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(parse_json_record(closed, key, value), "is JSON, but not an object");
}

}  // namespace
}  // namespace espalier::tools
