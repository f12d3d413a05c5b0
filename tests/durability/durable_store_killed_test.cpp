// SPDX-License-Identifier: Apache-2.0
// A program with a durable store in it that is killed at moments that the seed chooses, and started
// again: what a call had acknowledged is there, and so is what any of its threads had read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "node_api/durable_store.hpp"
#include "tests/support/child.hpp"

namespace espalier::test {
namespace {

const std::string kMapKey = "map";
const std::string kBatchKey = "batch";
const std::string kHashKey = "hash";
constexpr std::uint64_t kKilledBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kKilledSegment = std::uint64_t{1} << 20;  // checkpoints all the time
constexpr int kRounds = 8;

/// What the program tells, each a name and a number that never falls: "had" at its start, "done"
/// for what was acknowledged and for what was read.
class Reporter {
 public:
  explicit Reporter(Line& line) : line_(line) {}

  /// Returns false once nobody listens.
  bool report(const std::string& what, const std::string& name, std::uint64_t number) {
    const std::scoped_lock lock(mutex_);
    return line_.send(what + " " + name + " " + std::to_string(number));
  }

 private:
  std::mutex mutex_;
  Line& line_;
};

std::uint64_t number_in(const std::optional<Found>& found) {
  return found ? std::stoull(found->value) : 0;
}

/// The objects of the program.
struct Program {
  Store store;
  Map map;
  HashMap hash;
  Table table;
  Sequencer numbers;
  EmbeddingTable embedding;  // two rows, in a group
  Map lost;  // kept nowhere

  /// Opens them, or makes those that are not there. Throws std::runtime_error.
  static Program open(const std::string& dir) {
    auto store = node_api::open_durable_store(
        {.dir = dir, .checkpoint_log_bytes = kKilledSegment, .recovery_threads = 2},
        {.memory_bytes_max = kKilledBytes, .huge_pages = false}, kKilledSegment);
    if (!store) throw std::runtime_error(store.error().words);
    const auto opened_or = [](auto opened, const auto& make) {
      if (opened) return *std::move(opened);
      auto made = make();
      if (!made) throw std::runtime_error("an object cannot be made");
      return *std::move(made);
    };
    Map map = opened_or(store->open_map("m"), [&] { return store->create_map("m"); });
    HashMap hash =
        opened_or(store->open_hash_map("h"), [&] { return store->create_hash_map("h"); });
    Table table = opened_or(store->open_table("t"), [&] {
      return store->create_table("t", *Schema::parse("a i64 not null"));
    });
    Sequencer numbers =
        opened_or(store->open_sequencer("n"), [&] { return store->create_sequencer("n"); });
    EmbeddingTable embedding = opened_or(store->open_embedding_table("e"), [&] {
      return store->create_embedding_table("e", {.dimension = kColumns});
    });
    fill(embedding);
    Map lost = opened_or(store->open_map("l"), [&] {
      MapOptions none;
      none.durability = Durability::none;
      return store->create_map("l", none);
    });
    return {std::move(*store),  std::move(map),       std::move(hash), std::move(table),
            std::move(numbers), std::move(embedding), std::move(lost)};
  }
  /// What a bag of these rows comes to; each row has one number in all of its columns.
  [[nodiscard]] std::uint64_t sum(std::initializer_list<std::uint32_t> rows) const {
    const std::uint32_t offset = 0;
    const auto sums = embedding.reduce(
        Reduction::sum, {std::span(rows.begin(), rows.size()), std::span(&offset, 1)});
    if (!sums || std::ranges::count(*sums, sums->front()) != kColumns) {
      throw std::runtime_error("rows cannot be read, or are torn");
    }
    return static_cast<std::uint64_t>(sums->front());
  }
  [[nodiscard]] bool replace(std::uint64_t row, std::uint64_t number) {
    return embedding.replace(row, std::vector<float>(kColumns, static_cast<float>(number)))
        .has_value();
  }

 private:
  static constexpr std::uint32_t kColumns = 8;

  static void fill(EmbeddingTable& embedding) {
    const std::uint8_t pair[] = {2};
    const std::uint32_t rows[] = {0, 1};
    const auto there = embedding.stats();
    const bool filled = there &&
                        (there->rows != 0 || embedding.append(std::vector<float>(2 * kColumns))) &&
                        (there->groups != 0 || embedding.group({pair, rows}));
    if (!filled) throw std::runtime_error("rows cannot be made");
  }
};

/// Adds to what is there until it is killed.
int write_until_killed(Line& line, const std::string& dir) {
  Program program = Program::open(dir);
  if (*program.lost.count("", "") != 0) return 1;
  Reporter reporter(line);
  const std::uint64_t had_map = number_in(*program.map.get(kMapKey));
  const std::uint64_t had_batch = number_in(*program.map.get(kBatchKey));
  const std::uint64_t had_hash = number_in(*program.hash.get(kHashKey));
  if (number_in(*program.map.get(kBatchKey + "2")) != had_batch) return 1;
  reporter.report("had", kMapKey, had_map);
  reporter.report("had", kBatchKey, had_batch);
  reporter.report("had", kHashKey, had_hash);
  reporter.report("had", "rows", *program.table.rows());
  reporter.report("had", "numbers", program.numbers.take(1)->first);
  reporter.report("had", "counter", *program.store.sequence("c", 1));
  const std::uint64_t had_first = program.sum({0});
  const std::uint64_t had_second = program.sum({1});
  if (program.sum({0, 1}) != had_first + had_second) return 1;
  reporter.report("had", "first", had_first);
  reporter.report("had", "second", had_second);
  const auto forever = [&](auto work) {
    return std::thread([work]() mutable {
      while (work()) {
      }
    });
  };
  std::vector<std::thread> threads;
  threads.push_back(forever([&, next = had_map]() mutable {
    const bool written = program.map.put(kMapKey, std::to_string(++next)).has_value() &&
                         program.lost.put(kMapKey, std::to_string(next)).has_value();
    return written && reporter.report("done", kMapKey, next);
  }));
  threads.push_back(forever([&, next = had_batch]() mutable {
    const std::string value = std::to_string(++next);
    const auto written =
        program.map.write(WriteBatch().put(kBatchKey, value).put(kBatchKey + "2", value));
    return written && reporter.report("done", kBatchKey, next);
  }));
  threads.push_back(forever([&, next = had_hash]() mutable {
    const bool written = program.hash.put(kHashKey, std::to_string(++next)).has_value();
    return written && reporter.report("done", kHashKey, next);
  }));
  threads.push_back(forever([&]() {
    RowWriter writer = program.table.writer();
    if (!writer.add(std::int64_t{1})) return false;
    const auto first = writer.commit();
    return first && reporter.report("done", "rows", *first + 1);
  }));
  threads.push_back(forever([&]() {
    const auto taken = program.numbers.take(2);
    if (!taken || !reporter.report("done", "numbers", taken->first + 2)) return false;
    const auto counted = program.store.sequence("c", 2);
    return counted && reporter.report("done", "counter", *counted + 2);
  }));
  threads.push_back(forever([&, next = std::max(had_first, had_second)]() mutable {
    ++next;
    return program.replace(0, next) && reporter.report("done", "first", next) &&
           program.replace(1, next) && reporter.report("done", "second", next);
  }));
  // What it reads of the others is as good as acknowledged.
  threads.push_back(forever([&]() {
    // Sums may be of an older row and a newer one, but of each they are never below what is there.
    return reporter.report("done", "first", program.sum({0})) &&
           reporter.report("done", kMapKey, number_in(*program.map.get(kMapKey))) &&
           reporter.report("done", kBatchKey, number_in(*program.map.get(kBatchKey))) &&
           reporter.report("done", kHashKey, number_in(*program.hash.get(kHashKey))) &&
           reporter.report("done", "rows", *program.table.rows());
  }));
  for (std::thread& thread : threads) thread.join();
  return 0;
}

class KilledDurableStoreConcurrency : public testing::Test {
 protected:
  /// Starts the program, and kills it after so many messages of what was done.
  void run_and_kill(std::uint64_t messages) {
    Child program([this](Line& line) {
      try {
        return write_until_killed(line, dir_);
      } catch (const std::exception& error) {
        line.send(std::string("failed ") + error.what());
        return 1;
      }
    });
    std::string said;
    for (std::uint64_t heard = 0; heard < messages; ++heard) {
      ASSERT_TRUE(program.line().receive(said)) << "it has ended";
      ASSERT_NO_FATAL_FAILURE(hear(said));
    }
    program.kill();
    while (program.line().receive(said)) ASSERT_NO_FATAL_FAILURE(hear(said));
    program.wait();
  }
  void hear(const std::string& said) {
    std::istringstream words(said);
    std::string what;
    std::string name;
    std::uint64_t number = 0;
    ASSERT_TRUE(words >> what >> name >> number) << said;
    if (what == "had") {
      ++had_;
      EXPECT_GE(number, done_[name]) << name;
    }
    done_[name] = std::max(done_[name], number);
  }

  base::Random random_{base::seed_from_environment(41)};
  base::TemporaryFolder folder_;
  const std::string dir_ = (folder_ / "data").string();
  std::map<std::string, std::uint64_t> done_;
  int had_ = 0;
};

TEST_F(KilledDurableStoreConcurrency, WhatWasAcknowledgedOrReadIsThereAgain) {
  // A busy machine may kill it so early that a thread has done nothing.
  const auto all_wrote = [&] {
    return std::ranges::all_of(done_, [](const auto& each) { return each.second != 0; });
  };
  for (int round = 0; round < kRounds || (!all_wrote() && round < 10 * kRounds); ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(run_and_kill(8 + random_.below(400)));
    EXPECT_EQ(had_, 8 * (round + 1));
  }
  for (const auto& [name, number] : done_) EXPECT_GT(number, 0u) << name;
}

}  // namespace
}  // namespace espalier::test
