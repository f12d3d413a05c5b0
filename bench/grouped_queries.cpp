// SPDX-License-Identifier: Apache-2.0
#include "bench/grouped_queries.hpp"

#include <algorithm>
#include <bit>

#include "base/random.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::bench {

QuerySet uniform_queries(const InferenceShape& shape, std::uint64_t bags, std::uint32_t length) {
  QuerySet queries{draw_ids(shape, bags * length), {}};
  for (std::uint64_t i = 0; i < bags; ++i) queries.ends.push_back((i + 1) * length);
  return queries;
}

std::optional<std::uint32_t> category_items(std::string_view category, double scale) {
  for (const embedding::ReviewCategory& known : embedding::review_categories()) {
    if (known.name != category) continue;
    return static_cast<std::uint32_t>(known.items * scale);
  }
  return std::nullopt;
}

ReviewData::ReviewData(const InferenceShape& shape)
    : shape_(shape), lists_(embedding::review_lists(shape.rows, shape.seed)) {}

QuerySet ReviewData::queries(std::uint64_t bags) const {
  const embedding::QueryLists& lists = lists_.held_out;
  std::vector<std::uint64_t> up_to(lists.size());
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < lists.size(); ++i) up_to[i] = all += lists.weight(i);
  base::Random random(shape_.seed);
  QuerySet queries;
  for (std::uint64_t bag = 0; bag < bags && all != 0; ++bag) {
    const auto at = std::ranges::upper_bound(up_to, random.below(all)) - up_to.begin();
    const auto ids = lists.list(static_cast<std::size_t>(at));
    queries.ids.insert(queries.ids.end(), ids.begin(), ids.end());
    queries.ends.push_back(queries.ids.size());
  }
  return queries;
}

const embedding::GroupLists& ReviewData::groups(double ratio) {
  const auto found = groups_.find(ratio);
  if (found != groups_.end()) return found->second;
  if (!communities_) communities_ = embedding::find_communities(lists_.learned, shape_.rows);
  const std::uint64_t sums = embedding::sums_for_ratio(
      shape_.rows, shape_.dimension * static_cast<std::uint32_t>(sizeof(float)), shape_.dimension,
      ratio);
  embedding::GroupingOptions options;
  options.sums_max = sums;
  return groups_.emplace(ratio, embedding::greedy_groups(lists_.learned, *communities_, options))
      .first->second;
}

MerciGrouped::MerciGrouped(const InferenceShape& shape, const embedding::GroupLists& groups)
    : numbering_(groups.get()), numbers_(shape.rows), alone_(shape.rows) {
  std::vector<std::uint32_t> next(RowGroups::kRowsMax + 1);
  for (std::uint32_t size = RowGroups::kRowsMin; size <= RowGroups::kRowsMax; ++size) {
    next[size] = numbering_.first_of_size(size);
  }
  for (std::uint32_t row = 0; row < shape.rows; ++row) numbers_[row] = row;
  std::vector<std::uint32_t> rows(numbering_.places());
  std::size_t at = 0;
  for (const std::uint8_t size : groups.sizes) {
    for (std::uint32_t i = 0; i < size; ++i, ++at) {
      rows[next[size]] = groups.rows[at];
      numbers_[groups.rows[at]] = next[size]++ | embedding::kPlaceBit;
    }
  }
  begins_.resize(numbering_.places());
  std::vector<float> values(shape.dimension);
  for (std::uint32_t place = 0; place < numbering_.places();) {
    const embedding::GroupPlace group = numbering_.group_of(place);
    const std::size_t begin = sums_.size();
    sums_.resize(begin + (std::size_t{1} << group.rows) - 1, std::vector<float>(shape.dimension));
    for (std::uint32_t bit = 0; bit < group.rows; ++bit) {
      begins_[place + bit] = begin;
      fill_row(shape, rows[place + bit], values);
      for (std::uint32_t mask = 1; mask < std::uint32_t{1} << group.rows; ++mask) {
        if ((mask >> bit & 1) == 0) continue;
        for (std::size_t c = 0; c < values.size(); ++c) sums_[begin + mask - 1][c] += values[c];
      }
    }
    place += group.rows;
  }
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    if ((numbers_[row] & embedding::kPlaceBit) != 0) continue;
    alone_[row].resize(shape.dimension);
    fill_row(shape, row, alone_[row]);
  }
  buffer_.reserve(kBuffer);
}

std::vector<std::uint32_t> MerciGrouped::renumbered(std::span<const std::uint32_t> ids) const {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(ids.size());
  for (const std::uint32_t id : ids) numbers.push_back(numbers_[id]);
  std::ranges::sort(numbers);
  return numbers;
}

void MerciGrouped::flush(std::vector<float>& sum) {
  for (std::size_t i = 0; i < buffer_.size(); ++i) {
    if (i + 2 < buffer_.size()) __builtin_prefetch(buffer_[i + 2]->data());
    const std::vector<float>& row = *buffer_[i];
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += row[c];
  }
  taken_ += buffer_.size();
  buffer_.clear();
}

void MerciGrouped::take(const std::vector<float>& row, std::vector<float>& sum) {
  if (buffer_.size() == kBuffer) flush(sum);
  buffer_.push_back(&row);
}

std::uint64_t MerciGrouped::sum(const std::vector<std::uint32_t>& query, std::vector<float>& sum) {
  std::ranges::fill(sum, 0.0F);
  taken_ = 0;
  for (std::size_t i = 0; i < query.size();) {
    if ((query[i] & embedding::kPlaceBit) == 0) {
      take(alone_[query[i++]], sum);
      continue;
    }
    const std::uint32_t place = query[i] & ~embedding::kPlaceBit;
    const embedding::GroupPlace group = numbering_.group_of(place);
    std::uint32_t mask = 0;
    for (; i < query.size(); ++i) {
      const std::uint32_t bit = (query[i] & ~embedding::kPlaceBit) - group.first;
      if ((query[i] & embedding::kPlaceBit) == 0 || bit >= group.rows) break;
      mask |= std::uint32_t{1} << bit;
    }
    take(sums_[begins_[place] + mask - 1], sum);
  }
  flush(sum);
  return taken_;
}

}  // namespace espalier::bench
