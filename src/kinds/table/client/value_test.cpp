// SPDX-License-Identifier: Apache-2.0
// Values, decimals and schemas of the public API, without a store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/random.hpp"
#include "espalier/table.hpp"
#include "espalier/value.hpp"

namespace espalier {
namespace {

using namespace literals;
using ::testing::HasSubstr;

TEST(Decimal, IsReadAndWritten) {
  static_assert(Decimal::parse("1.50")->unscaled == 150 && Decimal::parse("1.50")->scale == 2);
  EXPECT_EQ(Decimal::parse("-12.50")->to_text(), "-12.50");
  EXPECT_EQ(Decimal::parse(".5")->to_text(), "0.5");
  EXPECT_EQ(Decimal::parse("+7")->to_text(), "7");
  EXPECT_EQ(Decimal::parse(std::string(38, '9'))->to_text(), std::string(38, '9'));
  for (const char* wrong : {"", "-", ".", "1.2.3", "1e5", " 1", "1 ", "--1", "0x1"}) {
    EXPECT_FALSE(Decimal::parse(wrong)) << wrong;
  }
  EXPECT_FALSE(Decimal::parse(std::string(39, '1')));
}

TEST(Decimal, ComparesByItsValue) {
  EXPECT_EQ(1.5_dec, 1.50_dec);
  EXPECT_LT(1.49_dec, 1.5_dec);
  EXPECT_GT(0_dec, *Decimal::parse("-0.01"));
  const Decimal large{Int128{1} << 120, 0};
  const Decimal small{1, 38};
  EXPECT_GT(large, small);
  EXPECT_LT(small, large);
  EXPECT_LT((Decimal{-(Int128{1} << 120), 0}), small);
  base::Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    const auto draw = [&random] {
      return Decimal{static_cast<std::int64_t>(random.below(2001)) - 1000,
                     static_cast<std::uint8_t>(random.below(4))};
    };
    const Decimal a = draw();
    const Decimal b = draw();
    const auto scaled = [](const Decimal& d) {
      Int128 number = d.unscaled;
      for (unsigned scale = d.scale; scale < 3; ++scale) number *= 10;
      return number;
    };
    ASSERT_EQ(a < b, scaled(a) < scaled(b)) << a.to_text() << " " << b.to_text();
    ASSERT_EQ(a == b, scaled(a) == scaled(b));
  }
}

TEST(Decimal, BecomesOtherNumbers) {
  EXPECT_EQ((2.00_dec).to_int64(), 2);
  EXPECT_EQ((2.50_dec).to_int64(), std::nullopt);
  EXPECT_EQ((Decimal{Int128{1} << 64, 0}).to_int64(), std::nullopt);
  EXPECT_EQ((2.5_dec).to_double(), 2.5);
}

TEST(Value, HasTheKindOfWhatItIsMadeOf) {
  EXPECT_EQ(Value().kind(), ValueKind::null);
  EXPECT_EQ(Value(true).kind(), ValueKind::boolean);
  EXPECT_EQ(Value(std::uint8_t{7}).kind(), ValueKind::integer);
  EXPECT_EQ(Value(2.5F).kind(), ValueKind::real);
  EXPECT_EQ(Value("text").kind(), ValueKind::text);
  EXPECT_EQ(Value(std::string("text")).to_text(), "text");
  EXPECT_EQ(Value(Date{}).kind(), ValueKind::date);
  EXPECT_EQ(Value(Timestamp{}).kind(), ValueKind::timestamp);
  EXPECT_EQ(Value(std::optional<int>()).kind(), ValueKind::null);
  EXPECT_EQ(Value(std::numeric_limits<std::uint64_t>::max()).to_text(), "18446744073709551615");
  EXPECT_EQ(Value(Date(std::chrono::year(1995) / 1 / 31)).to_text(), "1995-01-31");
  static_assert(!Scalar<char> && !Scalar<void*> && !Scalar<char32_t> && !Scalar<std::nullptr_t>);
}

TEST(Schema, IsMadeOfTextAndOfColumns) {
  const auto read = Schema::parse("a i64 not null, \"B b\" decimal(12,2), c text(20)");
  ASSERT_TRUE(read);
  const auto made = Schema::make({{"a", ColumnType::i64(), false},
                                  {"B b", ColumnType::decimal(12, 2)},
                                  {"c", ColumnType::text(20)}});
  ASSERT_TRUE(made);
  EXPECT_EQ(*read, *made);
  EXPECT_EQ(read->columns(), made->columns());
  EXPECT_EQ(made->find("B b"), 1u);
  EXPECT_EQ(made->find("b b"), std::nullopt);
  EXPECT_EQ(Schema::parse(made->to_text())->to_text(), read->to_text());
  EXPECT_EQ(made->columns()[1].type.to_text(), "decimal(12,2)");
}

TEST(Schema, TellsWhatIsWrong) {
  const auto text = Schema::parse("a i64, b whatever");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().error.code, Code::invalid_argument);
  EXPECT_THAT(message(text.error()), HasSubstr("the schema is wrong at 10"));
  const auto columns = Schema::make({{"a", ColumnType::i64()}, {"b", ColumnType::text(0)}});
  ASSERT_FALSE(columns);
  EXPECT_THAT(message(columns.error()), HasSubstr("column b"));
  EXPECT_FALSE(Schema::make({{"a", ColumnType::i64()}, {"a", ColumnType::i8()}}));
  EXPECT_FALSE(Schema::make({}));
  EXPECT_FALSE(Schema::make({{"a", ColumnType{static_cast<ColumnKind>(77)}}}));
}

}  // namespace
}  // namespace espalier
