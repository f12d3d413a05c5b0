// SPDX-License-Identifier: Apache-2.0
// Golden bytes of what travels with calls on tables.
#include "kinds/table/format/table_calls.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"
#include "kinds/table/format/result_buffers.hpp"
#include "wire/message.hpp"

namespace espalier::wire {
namespace {

using base::bytes_of;

TEST(ResultBuffers, FieldsLieWhereTheDocumentDrawsThem) {
  const ResultOffer offer{0x0102030405060708, 0x0A0B, 3, 0x0C0D0E0F, 0};
  EXPECT_EQ(bytes_of(offer), std::string("\x08\x07\x06\x05\x04\x03\x02\x01\x0B\x0A\0\0\x03\0\0\0"
                                         "\x0F\x0E\x0D\x0C\0\0\0\0",
                                         24));
  const ResultPlace place{1, 0x0200, 0x0304, kBufferFull};
  EXPECT_EQ(bytes_of(place), std::string("\x01\0\0\0\0\x02\0\0\x04\x03\0\0\x01\0\0\0", 16));
  EXPECT_EQ(static_cast<int>(ChunkKind::placed), 0x20);
}

TEST(TableCalls, FieldsLieWhereTheDocumentDrawsThem) {
  TableFacts facts{};
  facts.rows = 0x0102;
  facts.pages = 3;
  facts.memory_bytes = 0x0405060708;
  facts.row_bytes = 9;
  facts.schema_bytes = 0x0A0B;
  EXPECT_EQ(bytes_of(facts), std::string("\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
                                         "\x08\x07\x06\x05\x04\0\0\0\x09\0\0\0\x0B\x0A\0\0",
                                         32));
  QueryNumbers numbers{};
  numbers.rows_read = 1;
  numbers.rows_passed = 2;
  numbers.rows_sent = 3;
  numbers.bytes_read = 4;
  numbers.bytes_sent = 5;
  numbers.flushes = 6;
  numbers.busy_ns = 7;
  numbers.memory_bytes = 8;
  const std::string_view bytes = bytes_of(numbers);
  ASSERT_EQ(bytes.size(), 64u);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(bytes[i], i % 8 == 0 ? static_cast<char>(i / 8 + 1) : '\0') << i;
  }
}

}  // namespace
}  // namespace espalier::wire
