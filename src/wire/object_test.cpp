// SPDX-License-Identifier: Apache-2.0
// Golden bytes of what is answered of an object of any kind.
#include "wire/object.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"
#include "espalier/kind.hpp"
#include "wire/message.hpp"

namespace espalier::wire {
namespace {

TEST(ObjectFormat, FieldsLieWhereTheDocumentDrawsThem) {
  ObjectEntry entry{};
  entry.entries = 0x0102;
  entry.memory_bytes = 0x030405;
  entry.kind = 6;
  EXPECT_EQ(
      base::bytes_of(entry),
      std::string("\x02\x01\0\0\0\0\0\0\x05\x04\x03\0\0\0\0\0\x06", 17) + std::string(7, '\0'));
}

TEST(ObjectFormat, NumbersOfKindsAndCalls) {
  EXPECT_EQ(static_cast<int>(ObjectKind::any), 0);
  EXPECT_EQ(static_cast<int>(ObjectKind::map), 1);
  EXPECT_EQ(static_cast<int>(ObjectKind::table), 2);
  EXPECT_EQ(static_cast<int>(ObjectKind::sequencer), 3);
  EXPECT_EQ(static_cast<int>(ObjectKind::hash), 4);
  EXPECT_EQ(static_cast<int>(ObjectKind::region), 5);
  EXPECT_EQ(static_cast<int>(ObjectKind::embedding), 6);
  EXPECT_EQ(static_cast<int>(ObjectKind::model), 7);
  EXPECT_EQ(static_cast<int>(OffloadId::object_drop), 19);
  EXPECT_EQ(static_cast<int>(OffloadId::object_list), 20);
  EXPECT_EQ(static_cast<int>(OffloadId::object_samples), 61);
}

}  // namespace
}  // namespace espalier::wire
