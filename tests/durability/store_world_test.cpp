// SPDX-License-Identifier: Apache-2.0
// A store over a log over a disk that crashes, in one thread, from a seed: what was acknowledged,
// and what a reader has seen, is there after each crash, and nothing that was never written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/testing/redo_tables.hpp"
#include "log/testing/small_log.hpp"
#include "tests/support/key_truth.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kWorldKeys = 30;

/// What outlives the process: the disk, and what was promised.
struct StoreWorld {
  explicit StoreWorld(std::uint64_t seed) : random(seed), disk(random()) {}

  base::Random random;
  log::FaultyFolder disk;
  std::map<std::string, KeyTruth> map;
  std::map<std::string, KeyTruth> hash;
  NumberTruth rows;
  std::uint64_t next_number = 0;
  std::uint64_t values = 0;
};

/// One run of the process, from recovery to a crash.
class StoreLife final : private Handler {
 public:
  explicit StoreLife(StoreWorld& world) : world_(world) {}
  ~StoreLife() override {
    executor_.reset();
    map_.reset();
    hash_.reset();
    table_.reset();
    numbers_.reset();
  }
  StoreLife(const StoreLife&) = delete;
  StoreLife& operator=(const StoreLife&) = delete;

  /// False: the disk crashed meanwhile.
  bool recover() {
    auto opened = log::Log::open(
        world_.disk, log::small_options(),
        [this](std::uint64_t, std::span<const std::byte> record) {
          return target_.apply({reinterpret_cast<const char*>(record.data()), record.size()});
        });
    if (!opened) {
      EXPECT_TRUE(world_.disk.crashed()) << log::message(opened.error());
      return false;
    }
    log_ = std::move(*opened);
    core_.catalog.record_to(&log_->writer());
    open_objects();
    return true;
  }
  /// What is there, against what was promised.
  void check() {
    for (auto& [key, truth] : world_.map) {
      const std::string value = get(key);
      const std::string may_be = truth.text();
      EXPECT_TRUE(truth.found(value)) << key << ": " << value << " not " << may_be;
    }
    for (auto& [key, truth] : world_.hash) {
      const std::string value = hash_->get(hash_thread_, key)->value_or("");
      const std::string may_be = truth.text();
      EXPECT_TRUE(truth.found(value)) << key << ": " << value << " not " << may_be;
    }
    EXPECT_TRUE(world_.rows.may_be(table_->rows())) << table_->rows() << world_.rows.text();
    world_.rows = {table_->rows(), table_->rows()};
    EXPECT_GE(numbers_->facts().next, world_.next_number);
    EXPECT_EQ(tree::audit_store(core_), std::vector<std::string>{});
  }
  /// Works until the disk crashes, or for so many steps.
  void work(int steps) {
    for (; steps > 0 && !world_.disk.crashed(); --steps) {
      switch (world_.random.below(9)) {
        case 0:
        case 1:
        case 2: write_map(); break;
        case 3: write_hash(); break;
        case 4: append(); break;
        case 5: take(); break;
        case 6: look(); break;
        default: flush(); break;
      }
    }
    crash();
  }

 private:
  struct Pending {
    Request request;
    std::string key;
    std::string value;
    std::uint64_t number = 0;  // of the write
    bool read = false;
  };
  struct PendingHash {
    std::string key;
    std::uint64_t number = 0;
    std::uint64_t version = 0;
  };

  void open_objects() {
    const auto must = [](auto result) { return std::move(*result); };
    auto map = core_.catalog.open<tree::MapCore>("map");
    map_ = map ? *map : must(tree::create_map(core_, "map", {.node_bytes = 512}));
    auto hash = core_.catalog.open<hash::HashMap>("hash");
    hash_ = hash ? *hash : must(hash::create_hash_map(hash_maps_, "hash", {.partitions = 2}));
    auto table = core_.catalog.open<table::Table>("rows");
    table_ =
        table
            ? *table
            : must(table::create_table(core_.catalog, core_.pool, "rows", table::append_schema()));
    auto numbers = core_.catalog.open<sequencer::Sequencer>("numbers");
    numbers_ = numbers ? *numbers : must(sequencer::create_sequencer(core_.catalog, "numbers", 0));
    executor_ = std::make_unique<tree::HostExecutor<tree::HostAccess>>(
        context_, *map_, 8, [this](std::uint32_t, base::ReadyQueue& queue) {
          return tree::HostAccess(map_->base, queue, true, &kNever);
        });
  }

  std::string random_value() {
    std::string value = std::to_string(++world_.values);
    if (world_.random.below(6) == 0) value.append(world_.random.below(1500), ' ');
    return value;
  }
  void submit(Pending& pending, Op op) {
    pending.request.op = op;
    pending.request.tag = pending_.size() - 1;  // it is the last one
    pending.request.key = pending.key;
    pending.request.value = pending.value;
    executor_->submit({&pending.request, 1}, *this);
    for (std::uint64_t turns = world_.random.below(6); turns != 0; --turns) executor_->advance();
  }
  // No key twice: which of two comes first, only the map knows.
  void write_map() {
    const std::string key = std::to_string(world_.random.below(kWorldKeys));
    if (!busy_.insert(key).second) return;
    const bool erases = world_.random.below(4) == 0;
    Pending& pending = pending_.emplace_back();
    pending.key = key;
    if (!erases) pending.value = random_value();
    pending.number = world_.map[key].begin(pending.value);
    submit(pending, erases ? Op::erase : Op::put);
  }
  void look() {
    Pending& pending = pending_.emplace_back();
    pending.key = std::to_string(world_.random.below(kWorldKeys));
    pending.read = true;
    submit(pending, Op::get);
  }
  void done(const Completion& completion) override {
    Pending& pending = pending_[completion.tag];
    KeyTruth& truth = world_.map[pending.key];
    if (pending.read) {
      EXPECT_TRUE(completion.ok);
      const std::string value(completion.found ? completion.value : "");
      EXPECT_TRUE(truth.seen(value)) << pending.key;
      found_ = value;
      return;
    }
    busy_.erase(pending.key);
    if (completion.ok) return truth.acknowledged(pending.number);
    EXPECT_TRUE(log_->writer().acknowledgements().error()) << message(completion.error);
    // Of what was refused with the log's own error nothing was done; but who asks is not told.
  }
  std::string get(const std::string& key) {
    Pending& pending = pending_.emplace_back();
    pending.key = key;
    pending.read = true;
    submit(pending, Op::get);
    executor_->drain();
    return found_;
  }

  void write_hash() {
    const std::string key = std::to_string(world_.random.below(kWorldKeys));
    const bool erases = world_.random.below(4) == 0;
    const std::string value = random_value();
    const std::uint64_t number = world_.hash[key].begin(erases ? "" : value);
    const auto begun =
        hash_->begin(hash_thread_, erases ? hash::WriteOp::erase : hash::WriteOp::put, key, value);
    if (begun.answer) hashes_.push_back({key, number, begun.version});
    const std::string seen = hash_->get(hash_thread_, key)->value_or("");
    EXPECT_TRUE(world_.hash[key].seen(seen)) << key;
  }
  void append() {
    const auto count = static_cast<std::int64_t>(1 + world_.random.below(3));
    world_.rows.asked += static_cast<std::uint64_t>(count);
    const std::uint64_t visible = table_->rows();
    const auto first = table_->append(table::rows_of_append(table_->schema(), 1, count));
    if (!first) world_.rows.asked -= static_cast<std::uint64_t>(count);
    EXPECT_EQ(table_->rows(), visible) << "no record can be durable yet";
  }
  void take() {
    const auto range = numbers_->take(wire::kAnyEpoch, 2);
    if (!range) return;
    EXPECT_GE(range->first, world_.next_number);
    taken_.push_back({range->end(), log_->writer().handed_over()});
  }

  void flush() {
    static_cast<void>(log_->writer().flush());
    if (world_.random.below(3) == 0) static_cast<void>(log_->writer().prepare_spare());
    for (int turns = 0; turns < 4; ++turns) executor_->advance();
    take_acknowledgements();
  }
  // As a node gives them: once versions and rows are released, and records durable.
  void take_acknowledgements() {
    std::erase_if(hashes_, [&](const PendingHash& each) {
      if (hash_->clock().released() < each.version) return false;
      world_.hash[each.key].acknowledged(each.number);
      return true;
    });
    world_.rows.acknowledged = std::max(world_.rows.acknowledged, table_->rows());
    for (const auto& [next, sequence] : taken_) {
      if (sequence <= log_->writer().mark().released()) world_.next_number = next;
    }
  }
  // What waits hears of it, and nothing more is acknowledged.
  void crash() {
    take_acknowledgements();
    world_.disk.crash();
    if (executor_->pending() != 0) {
      // So that there is something to fail with.
      static_cast<void>(numbers_->take(wire::kAnyEpoch, 1));
      EXPECT_FALSE(log_->writer().flush());
    }
    executor_->drain();
  }

  static constexpr bool kNever = false;

  StoreWorld& world_;
  std::unique_ptr<log::Log> log_;  // outlives the objects whose records it takes
  tree::StoreCore core_ = tree::make_store();
  offload::Services services_{core_, std::uint64_t{64} << 20};
  offload::RedoTarget target_{services_, {}};
  hash::HashStore& hash_maps_ = hash::hash_store_of(core_.catalog);
  hash::HashThread hash_thread_ = *hash::HashThread::join(hash_maps_);
  tree::ThreadContext context_{core_, std::move(*core_.epochs.join()), 0};
  std::shared_ptr<tree::MapCore> map_;
  std::shared_ptr<hash::HashMap> hash_;
  std::shared_ptr<table::Table> table_;
  std::shared_ptr<sequencer::Sequencer> numbers_;
  std::unique_ptr<tree::HostExecutor<tree::HostAccess>> executor_;
  std::deque<Pending> pending_;  // where they are until the end
  std::set<std::string> busy_;
  std::vector<PendingHash> hashes_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;
  std::string found_;
};

void live_once(StoreWorld& world) {
  StoreLife process(world);
  if (world.random.below(4) == 0) world.disk.crash_in(1 + world.random.below(30));
  if (!process.recover()) return;
  process.check();
  if (world.random.below(5) != 0) world.disk.crash_in(1 + world.random.below(60));
  process.work(300);
}

void live_some_lives(std::uint64_t seed) {
  StoreWorld world(seed);
  for (int life = 0; life < 12; ++life) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", life " + std::to_string(life));
    live_once(world);
    if (testing::Test::HasFailure()) return;
    world.disk.restart(world.random.below(2) == 0);
  }
}

TEST(StoreWorld, WhatWasAcknowledgedOrSeenIsThereAfterACrash) {
  base::Random seeds(base::seed_from_environment(17));
  for (int world = 0; world < 30 && !testing::Test::HasFailure(); ++world) {
    live_some_lives(seeds());
  }
}

}  // namespace
}  // namespace espalier::test
