// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <thread>

#include "client/impl.hpp"
#include "tree/planted.hpp"

namespace espalier {

WriteBatch& WriteBatch::put(std::string_view key, std::string_view value) {
  writes_.push_back({std::string(key), std::string(value), false});
  return *this;
}
WriteBatch& WriteBatch::erase(std::string_view key) {
  writes_.push_back({std::string(key), {}, true});
  return *this;
}
WriteBatch& WriteBatch::only_if_absent(std::string_view key) {
  conditions_.push_back({std::string(key), {}, 0, Condition::absent});
  return *this;
}
WriteBatch& WriteBatch::only_if_present(std::string_view key) {
  conditions_.push_back({std::string(key), {}, 0, Condition::present});
  return *this;
}
WriteBatch& WriteBatch::only_if_value(std::string_view key, std::string_view value) {
  conditions_.push_back({std::string(key), std::string(value), 0, Condition::value});
  return *this;
}
WriteBatch& WriteBatch::only_if_version(std::string_view key, Version version) {
  conditions_.push_back({std::string(key), {}, version, Condition::version});
  return *this;
}
void WriteBatch::clear() {
  writes_.clear();
  conditions_.clear();
}

namespace client {
namespace {

constexpr std::size_t kWritesMax = 65536;

// A batch in the form that the tree takes: sorted, each key once, large values stored.
class PreparedBatch {
 public:
  PreparedBatch(tree::Worker& worker, tree::MapCore& map) : worker_(worker), map_(map) {}
  PreparedBatch(const PreparedBatch&) = delete;
  PreparedBatch& operator=(const PreparedBatch&) = delete;
  ~PreparedBatch() {
    for (const wire::ValueRef& value : stored_) tree::discard_value(worker_, map_, value);
  }

  Result<void> prepare(const WriteBatch& batch) {
    if (batch.writes().empty() || batch.writes().size() > kWritesMax ||
        batch.conditions().size() > kWritesMax) {
      return fail(Code::invalid_argument);
    }
    if (const auto lengths = check_lengths(batch); !lengths) return lengths;
    prepare_conditions(batch);
    return prepare_writes(batch);
  }

  /// The stored values now belong to the tree.
  void keep_values() { stored_.clear(); }

  [[nodiscard]] std::span<const tree::WriteIntent> writes() const { return writes_; }
  [[nodiscard]] std::span<const tree::KeyCondition> conditions() const { return conditions_; }

 private:
  Result<void> check_lengths(const WriteBatch& batch) const {
    const std::uint32_t most = map_.geometry.key_bytes_max;
    const auto bad = [&](const auto& one) { return one.key.empty() || one.key.size() > most; };
    if (std::any_of(batch.writes().begin(), batch.writes().end(), bad) ||
        std::any_of(batch.conditions().begin(), batch.conditions().end(), bad)) {
      return fail(Code::key_too_long, most);
    }
    for (const WriteBatch::Write& write : batch.writes()) {
      if (write.value.size() > wire::kValueBytesMax) {
        return fail(Code::value_too_long, wire::kValueBytesMax);
      }
    }
    return {};
  }

  void prepare_conditions(const WriteBatch& batch) {
    using Kind = tree::WriteCondition::Kind;
    condition_keys_.resize(batch.conditions().size());
    for (std::size_t i = 0; i < batch.conditions().size(); ++i) {
      const WriteBatch::Check& check = batch.conditions()[i];
      condition_keys_[i].assign(check.key);
      tree::KeyCondition condition;
      condition.key = &condition_keys_[i];
      condition.condition.version = check.version;
      condition.condition.value = check.value;
      switch (check.kind) {
        case WriteBatch::Condition::absent: condition.condition.kind = Kind::absent; break;
        case WriteBatch::Condition::present: condition.condition.kind = Kind::present; break;
        case WriteBatch::Condition::value: condition.condition.kind = Kind::value; break;
        case WriteBatch::Condition::version: condition.condition.kind = Kind::version; break;
      }
      conditions_.push_back(condition);
    }
  }

  Result<void> prepare_writes(const WriteBatch& batch) {
    // By key, and the last write of a key first: the others are dropped.
    std::vector<std::size_t> order(batch.writes().size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = tree::compare_keys(batch.writes()[a].key, batch.writes()[b].key);
      return compared != 0 ? compared < 0 : a > b;
    });
    const auto same = [&](std::size_t a, std::size_t b) {
      return batch.writes()[a].key == batch.writes()[b].key;
    };
    order.erase(std::unique(order.begin(), order.end(), same), order.end());
    write_keys_.resize(order.size());
    stored_.reserve(order.size());  // the intents point into it
    for (std::size_t i = 0; i < order.size(); ++i) {
      const WriteBatch::Write& write = batch.writes()[order[i]];
      write_keys_[i].assign(write.key);
      tree::WriteIntent intent;
      intent.op = write.erase ? Op::erase : Op::put;
      intent.key = &write_keys_[i];
      intent.value = write.value;
      if (!write.erase && write.value.size() > map_.geometry.inline_value_bytes_max) {
        const auto value = tree::store_value(worker_, map_, write.value);
        if (!value) return std::unexpected(value.error());
        stored_.push_back(*value);
        intent.out_of_line = true;
        intent.value = {reinterpret_cast<const char*>(&stored_.back()), sizeof(wire::ValueRef)};
      }
      writes_.push_back(intent);
    }
    return {};
  }

  tree::Worker& worker_;
  tree::MapCore& map_;
  std::vector<tree::SearchKey> write_keys_;
  std::vector<tree::SearchKey> condition_keys_;
  std::vector<wire::ValueRef> stored_;
  std::vector<tree::WriteIntent> writes_;
  std::vector<tree::KeyCondition> conditions_;
};

}  // namespace
}  // namespace client

Result<Written> Map::write(const WriteBatch& batch) {
  const auto session = client::SessionLease::take(impl_->sessions);
  if (!session) return std::unexpected(session.error());
  tree::Worker& worker = (*session)->worker;
  tree::MapCore& core = *impl_->core;
  client::PreparedBatch prepared(worker, core);
  if (const auto done = prepared.prepare(batch); !done) return std::unexpected(done.error());
  tree::BatchOutcome outcome;
  for (int attempt = 0; attempt < 3; ++attempt) {
    worker.slot.enter();
    outcome = tree::write_batch(worker, core, prepared.writes(), prepared.conditions());
    worker.slot.exit();
    if (outcome.status != tree::WriteStatus::out_of_memory) break;
    core.store.reclaimer.collect(worker.cache);
  }
  if (outcome.status == tree::WriteStatus::out_of_memory) return fail(Code::out_of_memory);
  const bool at_once = tree::planted(tree::Bug::acknowledge_before_release);
  while (!at_once && core.clock.released() < outcome.wait_for) std::this_thread::yield();
  if (core.store.reclaimer.due()) core.store.reclaimer.collect(worker.cache);
  if (outcome.status == tree::WriteStatus::condition_failed) {
    return fail(Code::condition_failed, outcome.failed_condition);
  }
  prepared.keep_values();
  return Written{outcome.version, true, outcome.existed};
}

}  // namespace espalier
