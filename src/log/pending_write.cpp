// SPDX-License-Identifier: Apache-2.0
#include "log/pending_write.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "log/planted_log_bugs.hpp"

namespace espalier::log {

WriteOrder::WriteOrder(std::size_t writes_max) : writes_max_(writes_max) {
  ESPALIER_ASSERT(writes_max != 0);
  under_way_.reserve(writes_max);
}

void WriteOrder::begin(PendingWrite& write) {
  ESPALIER_ASSERT(!full());
  ESPALIER_ASSERT(under_way_.empty() || under_way_.back()->last_ < write.first_);
  under_way_.push_back(&write);
  if (write.last_ != write.first_) {
    gathering_ = kGathering;
  } else if (gathering_ != 0) {
    --gathering_;
  }
}

void WriteOrder::end(PendingWrite& write) {
  const auto at = std::ranges::find(under_way_, &write);
  ESPALIER_ASSERT(at != under_way_.end());
  const bool is_oldest = at == under_way_.begin() || planted(Bug::acknowledged_out_of_order);
  RecordList& before = is_oldest ? written_ : (*std::prev(at))->records_;
  move_records(write.records_, before);
  under_way_.erase(at);
}

RecordList WriteOrder::take_written() { return std::exchange(written_, RecordList()); }

}  // namespace espalier::log
