// SPDX-License-Identifier: Apache-2.0
// Golden bytes of pipelines.
#include "kinds/table/format/pipeline.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::wire {
namespace {

using base::bytes_of;
using std::string_literals::operator""s;

TEST(PipelineFormat, Header) {
  const PipelineHeader header{kPipelineMagic, 1, 0, 0x01020304, 5, 6, 7, 8, 0x090A0B0C, 0};
  EXPECT_EQ(bytes_of(header),
            "ESPI\1\0\0\0\4\3\2\1\5\0\6\0\7\0\x08\0\x0C\x0B\x0A\x09\0\0\0\0\0\0\0\0"s);
}

TEST(PipelineFormat, Operator) {
  const OperatorHeader header{static_cast<std::uint16_t>(OperatorKind::group_by), 0, 2, 3,
                              0x0807060504030201};
  EXPECT_EQ(bytes_of(header), "\7\0\0\0\2\0\3\0\1\2\3\4\5\6\7\x08"s);
}

TEST(PipelineFormat, Constant) {
  const ConstantValue constant{
      static_cast<std::uint8_t>(ValueKind::decimal), 2, 1, 0, 0x04030201, 0x0C0B0A0908070605};
  EXPECT_EQ(bytes_of(constant), "\3\2\1\0\1\2\3\4\5\6\7\x08\x09\x0A\x0B\x0C"s);
}

TEST(PipelineFormat, NodeAndItem) {
  const ExpressionNode node{static_cast<std::uint8_t>(ExpressionKind::between), 0, 0x0201, 0x0403,
                            0x0605};
  EXPECT_EQ(bytes_of(node), "\x10\0\1\2\3\4\5\6"s);
  const PipelineItem item{0x0201, static_cast<std::uint8_t>(Aggregate::avg), 0, 0};
  EXPECT_EQ(bytes_of(item), "\1\2\6\0\0\0\0\0"s);
}

TEST(PipelineFormat, NumbersStayWhatTheyAre) {
  EXPECT_EQ(static_cast<int>(OperatorKind::decrypt), 1);
  EXPECT_EQ(static_cast<int>(OperatorKind::regular_expression), 4);
  EXPECT_EQ(static_cast<int>(OperatorKind::encrypt), 9);
  EXPECT_EQ(static_cast<int>(OperatorKind::pack), 10);
  EXPECT_EQ(static_cast<int>(ExpressionKind::like), 18);
  EXPECT_EQ(static_cast<int>(ExpressionKind::matches), 19);
  EXPECT_EQ(static_cast<int>(ValueKind::text), 7);
  EXPECT_EQ(static_cast<int>(Addressing::smart), 2);
}

}  // namespace
}  // namespace espalier::wire
