// SPDX-License-Identifier: Apache-2.0
#include "bench/placement_model.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/prefetch.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kLinesOfGranule = fabric::kGranuleBytes / base::kLineBytes;
constexpr std::uint32_t kAllLines = (1U << kLinesOfGranule) - 1;

}  // namespace

void ModelledMemory::write_line(std::uint64_t line) {
  if (kind_ == fabric::MemoryKind::volatile_memory) {
    traffic_.written_bytes += base::kLineBytes;
    return;
  }
  const std::uint64_t granule = line / kLinesOfGranule;
  auto place = std::ranges::find_if(
      buffer_, [&](const Gathered& each) { return each.written != 0 && each.granule == granule; });
  if (place == buffer_.end()) {
    place = std::ranges::min_element(buffer_, {}, &Gathered::written);
    if (place->written != 0) leave(*place);
    *place = {granule, 0, 0};
  }
  place->written = ++writes_;
  place->lines |= 1U << line % kLinesOfGranule;
}

void ModelledMemory::leave(const Gathered& granule) {
  traffic_.written_bytes += fabric::kGranuleBytes;
  if (granule.lines != kAllLines) traffic_.read_bytes += fabric::kGranuleBytes;
}

ModelledCache::ModelledCache(ModelledMemory& memory, std::uint64_t bytes, std::uint64_t seed)
    : memory_(memory), lines_max_(bytes / base::kLineBytes), random_(seed) {
  ESPALIER_ASSERT(lines_max_ != 0);
}

void ModelledCache::store_line(std::uint64_t line) {
  if (where_.contains(line)) return;
  if (lines_.size() < lines_max_) {
    where_[line] = lines_.size();
    lines_.push_back(line);
    return;
  }
  const std::size_t victim = random_.below(lines_max_);
  memory_.write_line(lines_[victim]);
  where_.erase(lines_[victim]);
  lines_[victim] = line;
  where_[line] = victim;
}

void ModelledCache::store_past(std::uint64_t line) { memory_.write_line(line); }

}  // namespace espalier::bench
