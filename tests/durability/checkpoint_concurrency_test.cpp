// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a store whose threads write as fast as they can: each ends, and the store that is
// restored from the last one, and from the log after it, is the same.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "engine/checkpoint_run.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/testing/redo_tables.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kKeysOfThread = 300;
constexpr std::uint64_t kDeadlineNs = 120'000'000'000;

using Truth = std::map<std::string, std::string>;  // of one thread's keys, once it has ended

log::LogOptions threaded_options() {
  log::LogOptions options = log::small_options();
  options.writer.segment_bytes = 64 * log::kUnitBytes;
  options.writer.block_bytes_max = 16 * log::kUnitBytes;
  options.writer.segments_max = 4096;
  options.threads = true;
  return options;
}

/// A store that was made of what a folder has, and writes on there.
struct LoggedStore {
  explicit LoggedStore(log::FaultyFolder& folder) {
    auto opened = log::Log::open(
        folder, threaded_options(), [this](std::uint64_t, std::span<const std::byte> record) {
          return target.apply({reinterpret_cast<const char*>(record.data()), record.size()});
        });
    EXPECT_TRUE(opened) << log::message(opened.error());
    log = std::move(*opened);
    core.catalog.record_to(&log->writer());
  }

  std::unique_ptr<log::Log> log;  // outlives the objects
  tree::StoreCore core = tree::make_store();
  offload::Services services{core, std::uint64_t{64} << 20};
  offload::RedoTarget target{services, {}};
  hash::HashStore& hash_maps = hash::hash_store_of(core.catalog);
};

std::string key_of(std::uint64_t thread, std::uint64_t i) {
  return std::to_string(thread) + "-" + std::to_string(i);
}

/// Overwrites and erases its own keys until it is stopped. Each write waits for the disk.
void write_map(LoggedStore& store, std::uint64_t thread, const std::atomic<bool>& stop,
               Truth& truth) {
  base::Random random(thread + 1);
  tree::ThreadContext context(store.core, std::move(*store.core.epochs.join()), 0);
  tree::MapUser user(context, *store.core.catalog.open<tree::MapCore>("map"));
  for (std::uint64_t n = 1; !stop; ++n) {
    const std::string key = key_of(thread, random.below(kKeysOfThread));
    const bool erases = random.below(4) == 0;
    const std::string value = erases ? "" : std::to_string(n);
    ASSERT_TRUE(user.write(erases ? Op::erase : Op::put, key, value).ok);
    truth[key] = value;
  }
}

void write_hash(LoggedStore& store, const std::atomic<bool>& stop, Truth& truth) {
  base::Random random(77);
  auto thread = hash::HashThread::join(store.hash_maps);
  const auto map = *store.core.catalog.open<hash::HashMap>("hash");
  for (std::uint64_t n = 1; !stop; ++n) {
    const std::string key = std::to_string(random.below(kKeysOfThread));
    const bool erases = random.below(4) == 0;
    const std::string value = erases ? "" : std::to_string(n);
    const auto op = erases ? hash::WriteOp::erase : hash::WriteOp::put;
    ASSERT_TRUE(map->write(*thread, op, key, value));
    truth[key] = value;
  }
}

void append_rows(LoggedStore& store, const std::atomic<bool>& stop, std::uint64_t& rows) {
  const auto table = *store.core.catalog.open<table::Table>("rows");
  while (!stop) {
    ASSERT_TRUE(table->append(table::rows_of_append(table->schema(), 1, 3)));
    rows += 3;
    while (table->rows() < rows) std::this_thread::yield();  // until they are durable
  }
}

void make_checkpoint(LoggedStore& store, log::FaultyFolder& folder) {
  const std::uint64_t deadline_ns = base::monotonic_ns() + kDeadlineNs;
  offload::CheckpointRun::Terms terms{
      store.services, {}, folder, log::kSomeNode, store.log->writer(), 4 * log::kUnitBytes, 1024};
  auto run = offload::CheckpointRun::begin(terms);
  ASSERT_TRUE(run) << log::message(run.error());
  while (true) {
    const auto state = (*run)->step();
    ASSERT_TRUE(state) << log::message(state.error());
    if (*state == offload::CheckpointRun::State::done) return;
    ASSERT_LT(base::monotonic_ns(), deadline_ns) << "it does not end";
    if (*state == offload::CheckpointRun::State::waiting) std::this_thread::yield();
  }
}

TEST(CheckpointConcurrency, EndsUnderRandomOverwritesAndHasWhatWasWritten) {
  log::FaultyFolder folder(1);
  Truth of_maps[2];
  Truth of_hash;
  std::uint64_t rows = 0;
  {
    LoggedStore store(folder);
    ASSERT_TRUE(tree::create_map(store.core, "map", {.node_bytes = 512}));
    ASSERT_TRUE(hash::create_hash_map(store.hash_maps, "hash", {.partitions = 2}));
    ASSERT_TRUE(
        table::create_table(store.core.catalog, store.core.pool, "rows", table::append_schema()));
    std::atomic<bool> stop = false;
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] { write_map(store, i, stop, of_maps[i]); });
    }
    threads.emplace_back([&] { write_hash(store, stop, of_hash); });
    threads.emplace_back([&] { append_rows(store, stop, rows); });
    for (int i = 0; i < 3 && !HasFatalFailure(); ++i) make_checkpoint(store, folder);
    stop = true;
  }
  folder.crash();
  folder.restart(true);
  LoggedStore again(folder);
  ASSERT_TRUE(again.log->recovered().checkpoint);
  tree::ThreadContext context(again.core, std::move(*again.core.epochs.join()), 0);
  tree::MapUser user(context, *again.core.catalog.open<tree::MapCore>("map"));
  for (const Truth& truth : of_maps) {
    for (const auto& [key, value] : truth) EXPECT_EQ(user.get(key), value) << key;
  }
  auto thread = hash::HashThread::join(again.hash_maps);
  const auto map = *again.core.catalog.open<hash::HashMap>("hash");
  for (const auto& [key, value] : of_hash) {
    EXPECT_EQ(map->get(*thread, key)->value_or(""), value) << key;
  }
  EXPECT_EQ((*again.core.catalog.open<table::Table>("rows"))->rows(), rows);
  EXPECT_EQ(tree::audit_store(again.core), std::vector<std::string>{});
}

}  // namespace
}  // namespace espalier::test
