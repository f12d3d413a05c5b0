// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/tables_reducer.hpp"

#include "base/assert.hpp"

namespace espalier::embedding {

TableError error_at(const std::string& table, TableError error) {
  if (!error.words.empty()) error.words = table + ": " + error.words;
  return error;
}

TableError TablesReducer::in_words(std::size_t number, TableError error) const {
  return error_at(works_[number].table->name(), std::move(error));
}

TableResult<void> TablesReducer::open(std::size_t number) {
  if (number >= works_.size()) return {};
  const TableWork& of = works_[number];
  std::optional<Reducer>& reducer = reducers_[number % 2];
  reducer.emplace(*of.table, of.work, of.results);
  const auto begun = reducer->begin();
  if (!begun) return std::unexpected(in_words(number, error_of(begun.error())));
  return {};
}

TableResult<void> TablesReducer::begin() {
  if (const auto opened = open(0); !opened) return opened;
  return open(1);
}

TableResult<bool> TablesReducer::step() {
  if (now_ == works_.size()) return false;
  const TableWork& of = works_[now_];
  std::optional<Reducer>& reducer = reducers_[now_ % 2];
  if (!of.work.bags.offsets.empty()) {
    const auto more = reducer->step();
    if (!more) return std::unexpected(in_words(now_, error_of(more.error())));
    if (*more) return true;
    of.table->count(reducer->counts());
  }
  reducer.reset();  // it holds no groups longer than necessary
  ++now_;
  if (const auto opened = open(now_ + 1); !opened) return std::unexpected(opened.error());
  return now_ < works_.size();
}

std::optional<std::string> fault_of_tables(std::span<const TableWork> works) {
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (auto fault = fault_of_work(works[i].work, works[i].table->options().dimension)) {
      return works[i].table->name() + ": " + *std::move(fault);
    }
  }
  return std::nullopt;
}

TableResult<void> reduce_tables(std::span<const TableWork> works) {
  TablesReducer reducer(works);
  if (const auto begun = reducer.begin(); !begun) return begun;
  for (;;) {
    const auto more = reducer.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
  }
}

}  // namespace espalier::embedding
