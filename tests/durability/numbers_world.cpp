// SPDX-License-Identifier: Apache-2.0
// Embedding tables in the world of a store (store_world.hpp): rows of one number each, and a group.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/memo.hpp"
#include "tests/durability/store_world.hpp"

namespace espalier::test {
namespace {

std::string text_of_group(std::span<const std::uint32_t> rows) {
  std::string text;
  for (const std::uint32_t row : rows) text += std::to_string(row) + " ";
  return text;
}

}  // namespace

/// A row of one number, which no other has.
std::vector<std::byte> StoreLife::random_numbers(std::string& text) {
  const std::vector<float> values(kNumbersOfARow, static_cast<float>(++world_.values));
  text = std::to_string(world_.values);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Empty where its numbers differ.
std::string StoreLife::numbers_of(std::uint64_t row) const {
  std::vector<float> values(kNumbersOfARow);
  embedding_->copy_rows(row, std::as_writable_bytes(std::span(values)));
  const bool whole = std::ranges::count(values, values.front()) == kNumbersOfARow;
  return whole ? std::to_string(static_cast<std::uint64_t>(values.front())) : "";
}

void StoreLife::append_numbers() {
  if (!world_.appends) return;
  std::string text;
  const std::uint64_t visible = embedding_->rows();
  const auto row = embedding_->append(random_numbers(text));
  if (!row) return;
  EXPECT_EQ(*row, world_.numbered_rows.asked++);
  world_.numbered[*row].begin(text);
  EXPECT_EQ(embedding_->rows(), visible) << "no record can be durable yet";
}

void StoreLife::replace_numbers() {
  const std::uint64_t rows = embedding_->rows();
  if (!world_.appends || rows == 0) return;
  const std::uint64_t row = world_.random.below(rows);
  const std::string before = numbers_of(row);
  EXPECT_TRUE(world_.numbered[row].seen(before)) << "row " << row << ": " << before;
  std::string text;
  const auto bytes = random_numbers(text);
  const std::uint64_t number = world_.numbered[row].begin(text);
  if (!embedding_->replace(row, bytes)) return world_.numbered[row].refused(number);
  replaced_.push_back({row, number, log_->writer().handed_over()});
  EXPECT_EQ(numbers_of(row), before) << "no record can be durable yet";
}

std::string StoreLife::group_text() const {
  const auto memo = embedding_->memo();
  if (memo == nullptr) return "";
  const embedding::NumberedGroup group = memo->numbering().group(0);
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < group.rows; ++i) rows.push_back(memo->row_of(group, i));
  return text_of_group(rows);
}

/// Some pieces, so that a checkpoint may begin between two records of it, and a life end.
void StoreLife::group_numbers() {
  if (!world_.appends) return;
  if (!grouping_) {
    const std::uint64_t rows = embedding_->rows();
    group_rows_.clear();
    group_size_.clear();
    if (rows >= 2 && world_.random.below(4) != 0) {
      const auto first = static_cast<std::uint32_t>(world_.random.below(rows - 1));
      const std::uint64_t size = std::min(rows - first, 2 + world_.random.below(7));
      for (std::uint32_t i = 0; i < size; ++i) group_rows_.push_back(first + i);
      group_size_.push_back(static_cast<std::uint8_t>(size));
    }
    group_number_ = world_.grouped.begin(text_of_group(group_rows_));
    grouping_.emplace(*embedding_, RowGroups{group_size_, group_rows_});
  }
  for (std::uint64_t pieces = 1 + world_.random.below(6); pieces != 0; --pieces) {
    const auto more = grouping_->step();
    if (more && *more) continue;
    grouping_.reset();
    if (!more) return world_.grouped.refused(group_number_);
    grouped_.push_back({0, group_number_, log_->writer().handed_over()});
    EXPECT_EQ(group_text(), text_of_group(group_rows_));
    return;
  }
}

void StoreLife::check_numbers() {
  const std::string groups = group_text();
  const std::string may_be_groups = world_.grouped.text();
  EXPECT_TRUE(world_.grouped.found(groups)) << groups << " not " << may_be_groups;
  const std::uint64_t rows = embedding_->rows();
  EXPECT_TRUE(world_.numbered_rows.may_be(rows)) << rows << world_.numbered_rows.text();
  world_.numbered_rows = {rows, rows};
  world_.numbered.erase(world_.numbered.lower_bound(rows), world_.numbered.end());
  for (auto& [row, truth] : world_.numbered) {
    const std::string numbers = numbers_of(row);
    const std::string may_be = truth.text();
    EXPECT_TRUE(truth.found(numbers)) << "row " << row << ": " << numbers << " not " << may_be;
  }
  EXPECT_EQ(embedding::audit(*embedding_), std::vector<std::string>{});
}

}  // namespace espalier::test
