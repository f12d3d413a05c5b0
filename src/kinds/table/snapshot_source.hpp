// SPDX-License-Identifier: Apache-2.0
// The rows of a snapshot as the source of a run.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kinds/table/run.hpp"
#include "kinds/table/snapshot.hpp"

namespace espalier::table {

class SnapshotSource final : public RowSource {
 public:
  explicit SnapshotSource(std::shared_ptr<const Table> table) : snapshot_(std::move(table)) {}

  /// One page at a time. Errors: dropped.
  Result<RowSpan> next() override {
    if (page_ == snapshot_.pages()) return RowSpan{};
    return snapshot_.page(page_++);
  }

  [[nodiscard]] const TableSnapshot& snapshot() const { return snapshot_; }

 private:
  TableSnapshot snapshot_;
  std::uint64_t page_ = 0;
};

}  // namespace espalier::table
