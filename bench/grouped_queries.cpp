// SPDX-License-Identifier: Apache-2.0
#include "bench/grouped_queries.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

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
  QuerySet drawn;
  for (std::uint64_t bag = 0; bag < bags && all != 0; ++bag) {
    const auto at = std::ranges::upper_bound(up_to, random.below(all)) - up_to.begin();
    const auto ids = lists.list(static_cast<std::size_t>(at));
    drawn.ids.insert(drawn.ids.end(), ids.begin(), ids.end());
    drawn.ends.push_back(drawn.ids.size());
  }
  return drawn;
}

const embedding::GroupLists& ReviewData::groups(double ratio, std::uint32_t row_bytes) {
  const auto found = groups_.find({ratio, row_bytes});
  if (found != groups_.end()) return found->second;
  if (!communities_) communities_ = embedding::find_communities(lists_.learned, shape_.rows);
  embedding::GroupingOptions options;
  options.sums_max = embedding::sums_for_ratio(shape_.rows, row_bytes, shape_.dimension, ratio);
  return groups_
      .emplace(std::pair(ratio, row_bytes),
               embedding::greedy_groups(lists_.learned, *communities_, options))
      .first->second;
}

namespace {

embedding::GroupSizes sizes_of(const embedding::GroupLists& groups) {
  embedding::GroupSizes sizes;
  if (const auto fault = sizes.add(groups.sizes)) throw std::runtime_error(*fault);
  return sizes;
}

void flush_rows(std::vector<float>& into, MerciGrouped::Buffer& buffer) {
  for (std::size_t i = 0; i < buffer.rows.size(); ++i) {
    if (i + 2 < buffer.rows.size()) __builtin_prefetch(buffer.rows[i + 2]->data());
    const std::vector<float>& row = *buffer.rows[i];
    for (std::size_t c = 0; c < into.size(); ++c) into[c] += row[c];
  }
  buffer.taken += buffer.rows.size();
  buffer.rows.clear();
}

void take_merci_row(const std::vector<float>& row, std::vector<float>& into,
                    MerciGrouped::Buffer& buffer) {
  if (buffer.rows.size() == MerciGrouped::Buffer::kRows) flush_rows(into, buffer);
  buffer.rows.push_back(&row);
}

}  // namespace

MerciGrouped::MerciGrouped(const InferenceShape& shape, const embedding::GroupLists& groups)
    : numbering_(sizes_of(groups)), numbers_(shape.rows), alone_(shape.rows) {
  std::vector<std::uint32_t> next(RowGroups::kRowsMax + 1);
  for (std::uint32_t size = RowGroups::kRowsMin; size <= RowGroups::kRowsMax; ++size) {
    next[size] = numbering_.first_of_size(size);
  }
  for (std::uint32_t row = 0; row < shape.rows; ++row) numbers_[row] = row;
  begins_.resize(numbering_.groups());
  std::vector<float> values(shape.dimension);
  std::size_t at = 0;
  for (const std::uint8_t size : groups.sizes) {
    const std::uint32_t number = next[size]++;
    const std::size_t begin = begins_[number] = sums_.size();
    const std::size_t masks = (std::size_t{1} << size) - 1;
    sums_.resize(begin + masks, std::vector<float>(shape.dimension));
    for (std::uint32_t member = 0; member < size; ++member, ++at) {
      numbers_[groups.rows[at]] = embedding::place_in(number, member) | embedding::kPlaceBit;
      fill_row(shape, groups.rows[at], values);
      for (std::size_t mask = 1; mask <= masks; ++mask) {
        if ((mask >> member & 1) == 0) continue;
        for (std::size_t c = 0; c < values.size(); ++c) sums_[begin + mask - 1][c] += values[c];
      }
    }
  }
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    if ((numbers_[row] & embedding::kPlaceBit) != 0) continue;
    alone_[row].resize(shape.dimension);
    fill_row(shape, row, alone_[row]);
  }
}

std::vector<std::uint32_t> MerciGrouped::renumbered(std::span<const std::uint32_t> ids) const {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(ids.size());
  for (const std::uint32_t id : ids) numbers.push_back(numbers_[id]);
  std::ranges::sort(numbers);
  return numbers;
}

std::uint64_t MerciGrouped::sum(const std::vector<std::uint32_t>& query, std::vector<float>& into,
                                Buffer& buffer) const {
  std::ranges::fill(into, 0.0F);
  buffer.taken = 0;
  for (std::size_t i = 0; i < query.size();) {
    if ((query[i] & embedding::kPlaceBit) == 0) {
      take_merci_row(alone_[query[i++]], into, buffer);
      continue;
    }
    const std::uint32_t group = embedding::group_of_place(query[i]);
    std::uint32_t mask = 0;
    for (; i < query.size() && embedding::group_of_place(query[i]) == group; ++i) {
      mask |= embedding::bit_of_place(query[i]);
    }
    take_merci_row(sums_[begins_[group & ~(embedding::kPlaceBit >> 3)] + mask - 1], into, buffer);
  }
  flush_rows(into, buffer);
  return buffer.taken;
}

}  // namespace espalier::bench
