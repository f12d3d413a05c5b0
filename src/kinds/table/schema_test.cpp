// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/schema.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/random.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

Schema parsed(std::string_view text) {
  auto schema = Schema::parse(text);
  EXPECT_TRUE(schema) << text << ": " << schema.error().position << ": " << schema.error().reason;
  return *std::move(schema);
}

std::vector<std::byte> encoded(const Schema& schema) {
  std::vector<std::byte> bytes(schema.encoded_bytes());
  schema.encode(bytes);
  return bytes;
}

TEST(Schema, ReadsEveryType) {
  const std::string text =
      "a i8, b i16, c i32, d i64, e float, f double, g decimal(18,18), h date, i timestamp, "
      "j bool, k char(1), l text(1024)";
  EXPECT_EQ(parsed(text).to_text(), text);
  EXPECT_EQ(parsed("a smallint, b int, c integer, d bigint, e real, f numeric(3), g boolean, "
                   "h varchar(9)")
                .to_text(),
            "a i16, b i32, c i32, d i64, e float, f decimal(3,0), g bool, h text(9)");
}

TEST(Schema, SpaceCaseAndNamesAreAsInSql) {
  EXPECT_EQ(parsed("  A\tI64\nNOT\rNULL ,b Decimal ( 12 , 2 ) null").to_text(),
            "a i64 not null, b decimal(12,2)");
  const Schema schema = parsed("\"A b\" i8, \"say \"\"x\"\"\" i8, \"plain\" i8, \"1\" i8, tür i8");
  EXPECT_EQ(schema.column(0).name, "A b");
  EXPECT_EQ(schema.column(1).name, "say \"x\"");
  EXPECT_EQ(schema.to_text(), "\"A b\" i8, \"say \"\"x\"\"\" i8, plain i8, \"1\" i8, tür i8");
  EXPECT_EQ(schema.find("plain"), 2u);
  EXPECT_EQ(schema.find("a b"), std::nullopt);
}

TEST(Schema, LaysOutRowsAsTheFormatSays) {
  const Schema schema = parsed("a i64 not null, b decimal(12,2), c text(20)");
  EXPECT_EQ(schema.column(0).offset, 0u);
  EXPECT_EQ(schema.column(0).null_mask, 0);
  EXPECT_EQ(schema.column(1).offset, 8u);
  EXPECT_EQ(schema.column(1).null_byte, 38u);
  EXPECT_EQ(schema.column(1).null_mask, 1);
  EXPECT_EQ(schema.column(2).offset, 16u);
  EXPECT_EQ(schema.column(2).bytes, 22u);
  EXPECT_EQ(schema.column(2).null_mask, 2);
  EXPECT_EQ(schema.null_offset(), 38u);
  EXPECT_EQ(schema.null_bytes(), 1u);
  EXPECT_EQ(schema.row_bytes(), 40u);
}

TEST(Schema, AlignsWhatFollowsSmallerTypes) {
  const Schema schema = parsed(
      "a i8 not null, b i16 not null, c bool not null, d i32 not null, e char(3) not null, "
      "f text(1) not null, g double not null, h date not null");
  const std::uint32_t offsets[] = {0, 2, 4, 8, 12, 16, 24, 32};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(schema.column(i).offset, offsets[i]) << i;
  EXPECT_EQ(schema.null_bytes(), 0u);
  EXPECT_EQ(schema.row_bytes(), 40u);
}

TEST(Schema, TheNinthNullBitBeginsAByte) {
  const Schema schema = parsed("a i8,b i8,c i8,d i8,e i8,f i8,g i8,h i8,i i8");
  EXPECT_EQ(schema.null_offset(), 9u);
  EXPECT_EQ(schema.column(7).null_byte, 9u);
  EXPECT_EQ(schema.column(7).null_mask, 0x80);
  EXPECT_EQ(schema.column(8).null_byte, 10u);
  EXPECT_EQ(schema.column(8).null_mask, 1);
  EXPECT_EQ(schema.row_bytes(), 16u);
}

TEST(Schema, RowsOf64BytesFillAPage) {
  const Schema schema = parsed("a i64 not null, b char(56) not null");
  EXPECT_EQ(schema.row_bytes(), 64u);
  EXPECT_EQ(schema.rows_per_page(), 32'767u);
}

struct Wrong {
  std::string_view text;
  std::size_t position;
  std::string_view reason;
};

TEST(Schema, SaysWhatIsWrongAndWhere) {
  const std::string long_name(64, 'n');
  const std::string with_long_name = "a i8, " + long_name + " i8";
  for (const Wrong& wrong : {
           Wrong{"", 0, "expected the name of a column"},
           Wrong{"a i8,", 5, "expected the name of a column"},
           Wrong{"a", 1, "expected a type"},
           Wrong{"a i8 b i8", 5, "expected not null, a comma or the end"},
           Wrong{"a i8 not b", 9, "expected null behind not"},
           Wrong{"a i8; b i8", 4, "expected a comma or the end"},
           Wrong{"a uuid", 2, "no type uuid"},
           Wrong{"a decimal", 9, "expected (, for decimal needs a length"},
           Wrong{"a decimal(19)", 10, "expected a number of digits from 1 to 18"},
           Wrong{"a decimal(4,5)", 12, "expected digits behind the point from 0 to 4"},
           Wrong{"a decimal(4,2", 13, "expected )"},
           Wrong{"a char(0)", 7, "expected a length in bytes from 1 to 1024"},
           Wrong{"a text(1025)", 7, "expected a length in bytes from 1 to 1024"},
           Wrong{"a text(99999999999)", 7, "expected a length in bytes from 1 to 1024"},
           Wrong{"a i8, b i8, A i16", 12, "two columns named a"},
           Wrong{"a i8, \"\" i8", 6, "a column without a name"},
           Wrong{"\"a", 0, "a quote that does not close"},
           Wrong{"\"a\n\" i8", 0, "a name with a control character"},
           Wrong{with_long_name, 6, "a name of more than 63 bytes"},
       }) {
    const auto schema = Schema::parse(wrong.text);
    ASSERT_FALSE(schema) << wrong.text;
    EXPECT_EQ(schema.error().position, wrong.position) << wrong.text;
    EXPECT_TRUE(schema.error().reason.starts_with(wrong.reason)) << schema.error().reason;
  }
}

TEST(Schema, LimitsOfColumnsAndRowsHold) {
  std::string text = "c0 i8";
  for (int i = 1; i < 256; ++i) text += ", c" + std::to_string(i) + " i8";
  EXPECT_EQ(parsed(text).columns().size(), 256u);
  EXPECT_EQ(Schema::parse(text + ", d i8").error().reason, "more than 256 columns");
  std::string wide = "c0 char(1024) not null";
  for (int i = 1; i < 32; ++i) wide += ", c" + std::to_string(i) + " char(1024) not null";
  EXPECT_EQ(parsed(wide).row_bytes(), wire::kRowBytesMax);
  const auto wider = Schema::parse(wide + ", d bool not null");
  ASSERT_FALSE(wider);
  EXPECT_EQ(wider.error().reason, "rows of 32776 bytes; they may have at most 32768");
  EXPECT_EQ(wider.error().position, wide.size() + 2);
}

TEST(Schema, RandomOnesComeBackFromTextAndBytes) {
  base::Random random(base::seed_from_environment(1));
  for (int i = 0; i < 500; ++i) {
    const Schema schema = random_schema(random);
    EXPECT_EQ(parsed(schema.to_text()), schema);
    const auto decoded = Schema::decode(encoded(schema));
    ASSERT_TRUE(decoded) << schema.to_text();
    EXPECT_EQ(*decoded, schema);
    // No two columns share a byte, and all lie before the null bits.
    std::uint32_t end = 0;
    for (const Column& column : schema.columns()) {
      EXPECT_GE(column.offset, end);
      EXPECT_EQ(column.offset % alignment(column.type), 0u);
      end = column.offset + column.bytes;
    }
    EXPECT_EQ(schema.null_offset(), end);
    EXPECT_LT(schema.row_bytes(), end + schema.null_bytes() + 8);
    EXPECT_GE(schema.row_bytes(), end + schema.null_bytes());
  }
}

TEST(Schema, RefusesForeignBytesThatAreNoSchema) {
  const std::vector<std::byte> good =
      encoded(parsed("a i64 not null, b decimal(12,2), c text(20)"));
  ASSERT_TRUE(Schema::decode(good));
  const auto refused = [&](std::size_t at, int value, std::uint32_t rule) {
    std::vector<std::byte> bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    const auto schema = Schema::decode(bytes);
    ASSERT_FALSE(schema) << at;
    EXPECT_EQ(schema.error(), (Error{Code::corrupt, 0, rule})) << at;
  };
  refused(0, 2, 2);         // format
  refused(2, 0, 2);         // no columns
  refused(2, 4, 1);         // more columns than bytes
  refused(3, 2, 2);         // too many columns
  refused(4, 1, 2);         // reserved
  refused(8, 0, 3);         // no type
  refused(8, 13, 3);        // unknown type
  refused(9, 2, 3);         // nullable
  refused(10, 1, 3);        // an integer with digits
  refused(80 + 2, 19, 3);   // digits
  refused(80 + 3, 13, 3);   // scale
  refused(152 + 5, 4, 3);   // length
  refused(8 + 6, 0, 4);     // a name that the length does not cover
  refused(8 + 6, 64, 4);    // name too long
  refused(8 + 8, '\n', 5);  // control character
  refused(80 + 8, 'a', 5);  // the same name twice
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(Schema::decode(std::span(good).first(size))) << size;
  }
  std::vector<std::byte> longer = good;
  longer.push_back({});
  EXPECT_FALSE(Schema::decode(longer));
}

}  // namespace
}  // namespace espalier::table
