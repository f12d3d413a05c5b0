// SPDX-License-Identifier: Apache-2.0
// Golden bytes of embedding tables, and of values as they are stored.
#include "kinds/embedding/format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "kinds/embedding/row_codec.hpp"
#include "kinds/embedding/row_place.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"

namespace espalier::embedding {
namespace {

using base::bytes_of;

std::string zeros(std::size_t count) { return std::string(count, '\0'); }

TEST(EmbeddingFormat, FieldsLieWhereTheDocumentDrawsThem) {
  EXPECT_EQ(bytes_of(EmbeddingShape{64, 4, {}}), std::string("\x40\0\0\0\x04", 5) + zeros(11));
  EmbeddingHeader header{};
  header.table_id = 7;
  header.generation = 9;
  header.magic = kEmbeddingMagic;
  header.format = kEmbeddingFormat;
  header.row_bytes = 256;
  header.shape = {64, 1, {}};
  header.rows = 0x0102;
  header.pages = 3;
  header.list = 0x8080;
  header.list_buffer = 0x0504;
  EXPECT_EQ(bytes_of(header),
            std::string("\7\0\0\0\x09\0\0\0", 8) + zeros(16) + "ELIR EMB" +
                std::string("\1\0\0\0\0\1\0\0", 8) + std::string("\x40\0\0\0\1", 5) + zeros(19) +
                std::string("\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16) +
                std::string("\x80\x80\0\0\0\0\0\0\4\5\0\0\0\0\0\0", 16) + zeros(32));
  EXPECT_EQ(bytes_of(PageEntry{0x0201, 4}), std::string("\1\2\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 16));
  PageHeader page{};
  page.table_id = 7;
  page.page = 1;
  page.first_row = 8191;
  page.row_bytes = 256;
  EXPECT_EQ(bytes_of(page), std::string("\7", 1) + zeros(23) + std::string("\1", 1) + zeros(7) +
                                std::string("\xff\x1f", 2) + zeros(6) + std::string("\0\1", 2) +
                                zeros(22));
}

TEST(EmbeddingFormat, RowsHaveTheseBytes) {
  EXPECT_EQ(row_bytes_of(EmbeddingType::fp32, 64), 256u);
  EXPECT_EQ(row_bytes_of(EmbeddingType::fp16, 64), 128u);
  EXPECT_EQ(row_bytes_of(EmbeddingType::bf16, 1024), 2048u);
  EXPECT_EQ(row_bytes_of(EmbeddingType::int8, 64), 68u);
  EXPECT_EQ(rows_per_page(256), 8191u);
  EXPECT_EQ(rows_per_page(4096), 511u);
}

TEST(EmbeddingFormat, PagesOfRowsAreThoseOfADivision) {
  base::Random random(1);
  for (const EmbeddingType type : kAllTypes) {
    for (std::uint32_t dimension = 8; dimension <= kDimensionMax; dimension += 8) {
      const std::uint32_t rows = rows_per_page(row_bytes_of(type, dimension));
      const PageDivider divider(rows);
      for (int i = 0; i < 200; ++i) {
        const std::uint64_t page = random.below((std::uint64_t{1} << 32) / rows);
        for (const std::uint64_t row : {page * rows, page * rows + rows - 1, random() >> 32}) {
          if (row > kRowsMax) continue;
          ASSERT_EQ(divider.page_of(static_cast<std::uint32_t>(row)), row / rows) << row;
        }
      }
      ASSERT_EQ(divider.page_of(~std::uint32_t{0}), ~std::uint32_t{0} / rows);
    }
  }
}

TEST(EmbeddingCodec, HalvesComeBackAndRoundToTheNearest) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_EQ(bits & 0x7C00, 0x7C00u);
      EXPECT_TRUE(std::isnan(float_of_half(half_of_float(value))));
      continue;
    }
    ASSERT_EQ(half_of_float(value), bits);
    if (std::isinf(value) || (bits & 0x7FFF) == 0x7BFF) continue;
    // Between it and the next one away from zero: nearest, of two the even one.
    const float next = float_of_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = value + (next - value) / 2;
    ASSERT_EQ(half_of_float(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(half_of_float(std::nextafter(middle, value)), bits);
    ASSERT_EQ(half_of_float(std::nextafter(middle, next)), bits + 1);
  }
  EXPECT_EQ(half_of_float(65519.0F), 0x7BFF);
  EXPECT_EQ(half_of_float(65520.0F), 0x7C00);
  EXPECT_EQ(half_of_float(-1e30F), 0xFC00);
  EXPECT_EQ(half_of_float(1e-30F), 0);
}

TEST(EmbeddingCodec, BfloatsAreUpperHalves) {
  EXPECT_EQ(bfloat_of_float(1.0F), 0x3F80);
  EXPECT_EQ(float_of_bfloat(0x3F80), 1.0F);
  EXPECT_EQ(bfloat_of_float(std::bit_cast<float>(0x3F808000)), 0x3F80) << "to the even one";
  EXPECT_EQ(bfloat_of_float(std::bit_cast<float>(0x3F818000)), 0x3F82);
  EXPECT_EQ(bfloat_of_float(std::bit_cast<float>(0x3F808001)), 0x3F81);
  EXPECT_EQ(bfloat_of_float(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(float_of_bfloat(bfloat_of_float(std::bit_cast<float>(0x7F800001)))));
}

TEST(EmbeddingCodec, BytesAreWithinHalfAStep) {
  std::vector<float> values(64);
  base::Random random(2);
  for (float& value : values) value = static_cast<float>(random.below(20000)) / 1000 - 10;
  std::vector<std::byte> row(row_bytes_of(EmbeddingType::int8, 64));
  ASSERT_TRUE(store_rows(EmbeddingType::int8, 64, values, row));
  std::vector<float> back(64);
  load_row(EmbeddingType::int8, row, back);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(back[i], values[i], 20.0 / 255 * 0.52 + 0.01);
  const std::vector<float> same(64, 3.25F);
  ASSERT_TRUE(store_rows(EmbeddingType::int8, 64, same, row));
  load_row(EmbeddingType::int8, row, back);
  EXPECT_EQ(back, same);
}

TEST(EmbeddingCodec, BytesTakeFiniteNumbersOnly) {
  std::vector<float> values(16, 1.0F);
  std::vector<std::byte> rows(2 * row_bytes_of(EmbeddingType::int8, 8));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 70000.0F,
                          -std::numeric_limits<float>::infinity()}) {
    values[11] = bad;
    const auto stored = store_rows(EmbeddingType::int8, 8, values, rows);
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error(), (Error{Code::invalid_argument, 0, 11}));
  }
}

}  // namespace
}  // namespace espalier::embedding
