// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recorder.hpp"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "tests/support/question.hpp"

namespace espalier::test {
namespace {

// Fills the answer of an operation on one key from a read that returned an item or nothing.
template <class Answer>
void take_item(Operation& operation, const Answer& answer, const std::string& key) {
  if (answer) operation.items.push_back({key, answer->value, answer->version});
}

}  // namespace

Operation Recorder::begin(Kind kind, std::string key) {
  Operation operation;
  operation.kind = kind;
  operation.thread = thread_;
  operation.key = std::move(key);
  return begin(std::move(operation));
}

Operation Recorder::begin(Operation&& operation) {
  operation.invoked = clock_.tick();
  return std::move(operation);
}

void Recorder::end(Operation&& operation) {
  operation.responded = clock_.tick();
  log_.push_back(std::move(operation));
}

void Recorder::end_read(Operation&& operation) {
  if (!operation.items.empty()) last_item_ = operation.items.front();
  end(std::move(operation));
}

void Recorder::refused(Operation& operation, const Error& error) {
  operation.refused = true;
  if (error.code == Code::out_of_memory || error.code == Code::snapshot_expired) return;
  if (!unexpected_) {
    unexpected_ = fmt::format("{} ended with {}", describe(operation), message(error));
  }
}

void Recorder::end_write(Operation&& operation, const Result<Written>& result) {
  operation.responded = clock_.tick();
  if (result) {
    operation.applied = result->applied;
    // Of several keys it has no result.
    operation.existed = operation.kind != Kind::batch && result->existed;
    operation.version = result->version;
  } else if (operation.kind == Kind::batch && result.error().code == Code::condition_failed) {
    operation.failed_condition = result.error().detail;
  } else {
    refused(operation, result.error());
  }
  log_.push_back(std::move(operation));
}

ItemSink Recorder::collect(Operation& operation) const {
  return [this, &operation](std::span<const Item> items) {
    take_items(operation, items);
    if (in_between) in_between();
    return true;
  };
}

void Recorder::get(const std::string& key) {
  Operation operation = begin(Kind::get, key);
  const auto result = map_.get(key);
  if (result) {
    take_item(operation, *result, key);
  } else {
    refused(operation, result.error());
  }
  end_read(std::move(operation));
}

void Recorder::put(const std::string& key, const std::string& value) {
  Operation operation = begin(Kind::put, key);
  operation.value = value;
  end_write(std::move(operation), map_.put(key, value));
}

void Recorder::insert(const std::string& key, const std::string& value) {
  Operation operation = begin(Kind::insert, key);
  operation.value = value;
  end_write(std::move(operation), map_.insert(key, value));
}

void Recorder::update(const std::string& key, const std::string& value) {
  Operation operation = begin(Kind::update, key);
  operation.value = value;
  end_write(std::move(operation), map_.update(key, value));
}

void Recorder::erase(const std::string& key) {
  Operation operation = begin(Kind::erase, key);
  end_write(std::move(operation), map_.erase(key));
}

void Recorder::modify(const std::string& key, const std::optional<std::string>& value) {
  Operation operation = begin(Kind::modify, key);
  operation.value = value;
  const auto change = [&](std::optional<std::string_view> current) {
    operation.seen.reset();
    if (current) operation.seen = std::string(*current);
    if (in_between) in_between();
    return value;
  };
  end_write(std::move(operation), map_.modify(key, change));
}

void Recorder::write(const WriteBatch& batch) {
  Operation operation = begin(Kind::batch, {});
  operation.writes = batch.writes();
  operation.conditions = batch.conditions();
  for (WriteBatch::Check& check : operation.conditions) {
    // What was read together with the version, for checkers that know values only.
    if (check.kind != ConditionKind::version || !last_item_) continue;
    if (last_item_->key == check.key) check.value = last_item_->value;
  }
  end_write(std::move(operation), map_.write(batch));
}

void Recorder::floor(const std::string& key) {
  Operation operation = begin(Kind::floor, key);
  const auto result = map_.floor(key);
  if (!result) {
    refused(operation, result.error());
  } else if (*result) {
    take_item(operation, *result, (*result)->key);
  }
  end_read(std::move(operation));
}

void Recorder::scan(const std::string& low, const std::string& high, ScanOptions options) {
  Operation operation = begin(Kind::scan, low);
  operation.high = high;
  operation.options = options;
  const auto result = map_.scan(low, high, collect(operation), options);
  if (!result) {
    refused(operation, result.error());
  } else if (*result != operation.items.size() && !unexpected_) {
    unexpected_ = fmt::format("{} returned the number {}", describe(operation), *result);
  }
  end_read(std::move(operation));
}

void Recorder::count(const std::string& low, const std::string& high) {
  Operation operation = begin(Kind::count, low);
  operation.high = high;
  const auto result = map_.count(low, high);
  if (result) {
    operation.counted = *result;
  } else {
    refused(operation, result.error());
  }
  end(std::move(operation));
}

void Recorder::hold_snapshot() {
  Operation operation = begin(Kind::snapshot, {});
  snapshot_.reset();
  auto result = map_.snapshot();
  if (result) {
    snapshot_.emplace(std::move(*result));
    operation.read_version = snapshot_->version();
  } else {
    refused(operation, result.error());
  }
  end(std::move(operation));
}

Operation Recorder::begin_held(Kind kind, const std::string& key) {
  Operation operation = begin(kind, key);
  operation.pinned = true;
  operation.read_version = snapshot_->version();
  return operation;
}

void Recorder::get_held(const std::string& key) {
  if (!snapshot_) return;
  Operation operation = begin_held(Kind::get, key);
  const auto result = snapshot_->get(key);
  if (result) {
    take_item(operation, *result, key);
  } else {
    refused(operation, result.error());
  }
  end(std::move(operation));
}

void Recorder::floor_held(const std::string& key) {
  if (!snapshot_) return;
  Operation operation = begin_held(Kind::floor, key);
  const auto result = snapshot_->floor(key);
  if (!result) {
    refused(operation, result.error());
  } else if (*result) {
    take_item(operation, *result, (*result)->key);
  }
  end(std::move(operation));
}

void Recorder::scan_held(const std::string& low, const std::string& high, ScanOptions options) {
  if (!snapshot_) return;
  Operation operation = begin_held(Kind::scan, low);
  operation.high = high;
  operation.options = options;
  const auto result = snapshot_->scan(low, high, collect(operation), options);
  if (!result) refused(operation, result.error());
  end(std::move(operation));
}

History merge_logs(std::vector<Recorder>& recorders, Contents initial, Version initial_version) {
  History history;
  history.initial = std::move(initial);
  history.initial_version = initial_version;
  for (Recorder& recorder : recorders) {
    std::move(recorder.log().begin(), recorder.log().end(), std::back_inserter(history.operations));
    recorder.log().clear();
  }
  return history;
}

}  // namespace espalier::test
