// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/client/embedding_opening.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"
#include "kinds/embedding/calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kOfferedBytes = std::uint64_t{1} << 30;

std::string field_of_opening(wire::FieldKind kind, std::string_view content) {
  wire::FieldHeader header{};
  header.kind = static_cast<std::uint16_t>(kind);
  header.bytes = static_cast<std::uint32_t>(content.size());
  std::string bytes(base::bytes_of(header));
  bytes += content;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

std::string embedding_opening(const embedding::EmbeddingPlace& place, std::uint64_t lease = 5) {
  return field_of_opening(
             wire::FieldKind::lease,
             base::bytes_of(wire::LeaseGrant{lease, 40, 20'000'000, 200'000'000, 1'000'000'000})) +
         field_of_opening(embedding_calls::kEmbeddingField, base::bytes_of(place)) +
         field_of_opening(wire::FieldKind::region,
                          base::bytes_of(wire::OfferedRegion{0x1000, kOfferedBytes, 77, 0}));
}

constexpr embedding::EmbeddingPlace kSomePlace{65'536, 9, 3, {64, 4, {}}};
constexpr EmbeddingOptions kSomeOptions{64, EmbeddingType::int8};

Error error_of_place(const embedding::EmbeddingPlace& place, std::uint64_t lease = 5) {
  const auto opening = EmbeddingOpening::read(embedding_opening(place, lease));
  EXPECT_TRUE(opening);
  const auto target = opening->target_of(9, kSomeOptions);
  return target ? Error{} : target.error();
}

TEST(EmbeddingOpening, TellsWhereATableLies) {
  const auto opening = EmbeddingOpening::read(embedding_opening(kSomePlace));
  ASSERT_TRUE(opening);
  EXPECT_EQ(opening->region.key, 77u);
  EXPECT_EQ(opening->lease.lease, 5u);
  const auto target = opening->target_of(9, kSomeOptions);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->header_offset, 65'536u);
  EXPECT_EQ(target->generation, 3u);
  EXPECT_EQ(target->row_bytes, 68u);
}

TEST(EmbeddingOpening, WhatWasNotAskedForIsRefused) {
  const auto corrupt = [](std::uint32_t detail) { return Error{Code::corrupt, 0, detail}; };
  auto place = kSomePlace;
  place.table_id = 8;
  EXPECT_EQ(error_of_place(place), corrupt(kOpeningNotAsked));
  place = kSomePlace;
  place.shape.dimension = 72;
  EXPECT_EQ(error_of_place(place), corrupt(kOpeningNotAsked));
  EXPECT_EQ(error_of_place(kSomePlace, 0), corrupt(kOpeningNotAsked));
  place = kSomePlace;
  place.header_offset = kOfferedBytes;
  EXPECT_EQ(error_of_place(place), corrupt(kOpeningOutside));
  place = kSomePlace;
  place.shape.type = 0;
  EXPECT_EQ(error_of_place(place), corrupt(kOpeningOutside));
  const std::string whole = embedding_opening(kSomePlace);
  EXPECT_EQ(EmbeddingOpening::read(whole.substr(0, whole.size() - 1)).error(),
            corrupt(kOpeningCut));
  EXPECT_EQ(EmbeddingOpening::read(whole.substr(0, 48)).error(), corrupt(kOpeningCut));
}

}  // namespace
}  // namespace espalier::client
