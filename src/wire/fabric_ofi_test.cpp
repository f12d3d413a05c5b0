// SPDX-License-Identifier: Apache-2.0
// Golden bytes of the fabric's transport over libfabric. A test that fails here says that the
// format changed, and then its version must.
#include "wire/fabric_ofi.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::wire::ofi {
namespace {

using base::bytes_of;
using std::string_literals::operator""s;

TEST(FabricOfiFormat, Heads) {
  EXPECT_EQ(bytes_of(FrameHead{1, 2, {}, 3, 0, 4}),
            "\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes_of(RecordHead{1, 2, 3, 0, 4, 5, 6, 7, 0, 8}),
            "\1\2\3\0\4\0\0\0\5\0\0\0\6\0\0\0\7\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0"s);
}

TEST(FabricOfiFormat, Payloads) {
  EXPECT_EQ(bytes_of(Greeting{kMagic, kFormat, 0}), "ESPBFOFI\1\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes_of(Operands{1, 2}), "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s);
}

TEST(FabricOfiFormat, Lengths) {
  EXPECT_EQ(record_bytes(0), 32u);
  EXPECT_EQ(record_bytes(1), 40u);
  EXPECT_EQ(record_bytes(8), 40u);
  EXPECT_EQ(record_bytes(kPayloadMax) + sizeof(FrameHead), kFrameBytesMax);
}

TEST(FabricOfiFormat, Requests) {
  EXPECT_FALSE(is_request(RecordKind::end));
  EXPECT_TRUE(is_request(RecordKind::read));
  EXPECT_TRUE(is_request(RecordKind::more));
  EXPECT_FALSE(is_request(RecordKind::data));
}

}  // namespace
}  // namespace espalier::wire::ofi
