// SPDX-License-Identifier: Apache-2.0
// Accounts for one query in the counts of its table and of the node: from begin to end it is in
// exactly one state, even if its client disconnects.
//
// Thread: that of the scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/table.hpp"

namespace espalier::offload {

class CountedQuery {
 public:
  CountedQuery() = default;
  CountedQuery(const CountedQuery&) = delete;
  CountedQuery& operator=(const CountedQuery&) = delete;
  /// Ended, unless counted otherwise.
  ~CountedQuery() {
    if (state_ != nullptr) end(&Counts::ended);
  }

  /// Requires: it has not begun.
  void begin(std::shared_ptr<table::Table> table, table::QueryCounts& of_node) {
    table_ = std::move(table);
    counts_ = {&table_->query_counts(), &of_node};
    move_to(&Counts::waiting);
  }
  [[nodiscard]] bool begun() const { return table_ != nullptr; }
  [[nodiscard]] const std::shared_ptr<table::Table>& table() const { return table_; }

  void run() { move_to(&Counts::running); }
  /// Counts what the run has read so far.
  void read(const wire::QueryNumbers& numbers) {
    add(&Counts::rows_read, numbers.rows_read - counted_.rows_read);
    add(&Counts::bytes_read, numbers.bytes_read - counted_.bytes_read);
    counted_.rows_read = numbers.rows_read;
    counted_.bytes_read = numbers.bytes_read;
  }
  /// Counts all rows of the run so far as sent.
  void sent(const wire::QueryNumbers& numbers) {
    add(&Counts::rows_sent, numbers.rows_sent - counted_.rows_sent);
    add(&Counts::bytes_sent, numbers.bytes_sent - counted_.bytes_sent);
    counted_.rows_sent = numbers.rows_sent;
    counted_.bytes_sent = numbers.bytes_sent;
  }
  void fail() { end(&Counts::failed); }
  void refuse() { end(&Counts::refused); }

 private:
  using Counts = table::QueryCounts;
  using Count = std::atomic<std::uint64_t> Counts::*;

  void add(Count count, std::uint64_t amount) {
    for (Counts* const counts : counts_) {
      (counts->*count).fetch_add(amount, std::memory_order_relaxed);
    }
  }
  void move_to(Count state) {
    if (state_ != nullptr) add(state_, ~std::uint64_t{0});  // one less
    state_ = state;
    if (state_ != nullptr) add(state_, 1);
  }
  void end(Count how) {
    move_to(nullptr);
    add(how, 1);
  }

  std::shared_ptr<table::Table> table_;
  std::array<Counts*, 2> counts_{};
  Count state_ = nullptr;  // waiting, running; null: not begun, or over
  wire::QueryNumbers counted_{};
};

}  // namespace espalier::offload
