// SPDX-License-Identifier: Apache-2.0
// A simulated store with a log on a disk that crashes, in one thread except for recovery, from a
// seed: what was acknowledged, and what a reader has seen, is there after each crash, and nothing
// that was never written. Checkpoints are made in steps between writes.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "catalog/unflushed_age.hpp"
#include "engine/checkpoint_run.hpp"
#include "engine/parallel_redo.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "kinds/table/table_object.hpp"
#include "log/testing/small_log.hpp"
#include "tests/support/key_truth.hpp"

namespace espalier::test {

/// What survives the process: the disk, and the expected state.
struct StoreWorld {
  explicit StoreWorld(std::uint64_t seed) : random(seed), disk(random()) {}

  base::Random random;
  log::FaultyFolder disk;
  std::map<std::string, KeyTruth> map;
  std::map<std::string, KeyTruth> hash;
  NumberTruth rows;
  NumberTruth sealed_rows;                                  // of an encrypted table
  std::set<std::pair<std::uint64_t, std::uint64_t>> slots;  // slots that it was given: page, slot
  NumberTruth numbered_rows;                                // of an embedding table
  std::map<std::uint64_t, KeyTruth> numbered;               // the content of each
  KeyTruth grouped;                                         // rows of its group; empty: none
  KeyTruth names;                                           // of tables that exchange them: ids
  std::uint64_t next_number = 0;
  std::uint64_t next_count = 0;
  std::uint64_t values = 0;
  std::uint64_t seals = 0;       // how often slots were reserved
  KeyTruth other;                // the id of the object that is made and dropped; empty: none
  std::uint64_t highest_id = 0;  // acknowledged
  std::set<std::string> filled;  // such hash maps, by their ids, whose items are acknowledged
  std::map<std::string, NumberTruth> other_rows;  // of such tables, by their ids
  std::uint64_t highest_version = 0;              // of the map, released
  std::uint64_t highest_hash_version = 0;
  std::uint64_t recoveries = 0;
  bool makes_checkpoints = true;
  bool appends = true;  // rows to a table
  /// Writes are answered before they are durable: then what was durable is there, and no answered
  /// write is lost that is so many steps older than the last answer.
  bool async = false;
  /// Each object is made with that durability, and the sink promises the other one.
  bool by_object = false;
  /// What readers have seen of the map in all lives: by key and version.
  std::map<std::pair<std::string, std::uint64_t>, std::string> by_version;
  // What seldom happens:
  std::uint64_t checkpoints = 0;     // that were finished
  std::uint64_t begun_with_one = 0;  // lives
  std::uint64_t crashed_in_one = 0;
  std::uint64_t segments_removed = 0;
  std::uint64_t lost = 0;    // answers whose writes a crash has lost
  std::uint64_t waited = 0;  // writes that waited for the disk
  std::uint64_t renames = 0;
};

/// One run of the process, from recovery to a crash.
class StoreLife final : private Handler {
 public:
  /// Of its embedding table.
  static constexpr std::uint32_t kNumbersOfARow = 8;

  explicit StoreLife(StoreWorld& world) : world_(world) {}
  ~StoreLife() override;
  StoreLife(const StoreLife&) = delete;
  StoreLife& operator=(const StoreLife&) = delete;

  /// False: the disk crashed meanwhile, or its content is refused, which fails the test.
  bool recover();
  /// Compares the content with the expected state.
  void check();
  /// Runs until the disk crashes, or for so many steps.
  void work(int steps);

 private:
  struct Pending {
    Request request;
    std::string key;
    std::string value;
    std::uint64_t number = 0;  // of the write
    bool read = false;
    KeyTruth::Since since;  // a read: it began
  };
  struct PendingRow {
    std::uint64_t row = 0;
    std::uint64_t number = 0;
    std::uint64_t sequence = 0;
  };
  struct PendingHash {
    std::string key;
    std::uint64_t number = 0;
    std::uint64_t version = 0;
    std::uint64_t sequence = 0;  // at least
  };
  /// A write that was answered before it was durable.
  struct Answered {
    std::uint64_t sequence = 0;  // at least
    std::uint64_t at_step = 0;
    KeyTruth* key = nullptr;   // null: of rows
    std::uint64_t number = 0;  // of the write; or so many rows there are
    NumberTruth* rows = nullptr;
  };
  /// A creation or drop of the object that is made and dropped.
  struct PendingOther {
    std::uint64_t number = 0;
    std::uint64_t sequence = 0;
    std::uint64_t id = 0;  // 0: dropped
  };

  log::LogResult<std::unique_ptr<log::Log>> open_log();
  void open_objects();
  void step();
  std::string random_value();
  void submit(Pending& pending, Op op);
  void write_map();
  void look();
  void saw_version(const std::string& key, std::uint64_t version, const std::string& value);
  void done(const Completion& completion) override;
  std::string get(const std::string& key);
  void write_hash();
  void append();
  void append_to(table::Table& table, NumberTruth& truth);
  void take();
  [[nodiscard]] bool must_wait();
  void answered_early(Answered answer);
  void take_early_answers(std::uint64_t durable);
  [[nodiscard]] bool saw(KeyTruth& truth, const std::string& value) const;
  void make_or_drop();
  bool fill(hash::HashMap& map);
  void append_other();
  [[nodiscard]] std::optional<Durability> own_durability() const;
  void open_lost();
  void write_lost();
  void seal();
  void fill_slots(const table::Reservation& reservation);
  void check_sealed();
  void append_numbers();
  void replace_numbers();
  void group_numbers();
  [[nodiscard]] std::string group_text() const;
  [[nodiscard]] std::vector<std::byte> random_numbers(std::string& text);
  [[nodiscard]] std::string numbers_of(std::uint64_t row) const;
  void check_numbers();
  [[nodiscard]] std::string names_text() const;
  void rename_some();
  void check_names();
  void check_other();
  void go_on_with_checkpoint();
  void flush();
  void take_acknowledgements();
  void crash();

  static constexpr bool kNever = false;

  StoreWorld& world_;
  std::unique_ptr<log::Log> log_;  // outlives the objects whose records it takes
  std::unique_ptr<catalog::UnflushedAge> age_;
  // Here nothing frees what dropped tables and earlier groups had, over all lives.
  tree::StoreCore core_ = tree::make_store(std::uint64_t{1} << 30);
  offload::Services services_{core_, std::uint64_t{64} << 20};
  offload::RedoTarget target_{services_, {}};
  hash::HashStore& hash_maps_ = hash::hash_store_of(core_.catalog);
  hash::HashThread hash_thread_ = *hash::HashThread::join(hash_maps_);
  tree::ThreadContext context_{core_, std::move(*core_.epochs.join()), 0};
  std::shared_ptr<tree::MapCore> map_;
  std::shared_ptr<hash::HashMap> hash_;
  std::shared_ptr<table::Table> table_;
  std::shared_ptr<table::Table> sealed_;
  std::optional<table::Reservation> reserved_;  // of that, with slots not given out yet
  std::uint64_t reserved_sequence_ = 0;
  std::shared_ptr<embedding::EmbeddingTable> embedding_;
  std::shared_ptr<sequencer::Sequencer> numbers_;
  std::unique_ptr<tree::HostExecutor<tree::HostAccess>> executor_;
  std::unique_ptr<offload::CheckpointRun> checkpoint_;
  std::deque<Pending> pending_;  // addresses stay valid until the end
  std::set<std::string> busy_;
  std::vector<PendingHash> hashes_;
  std::vector<Answered> early_;
  std::uint64_t last_answer_step_ = 0;
  std::vector<PendingRow> replaced_;
  std::vector<PendingRow> grouped_;
  std::vector<PendingRow> named_;
  std::vector<std::uint8_t> group_size_;  // of the grouping in progress, some pieces a step
  std::vector<std::uint32_t> group_rows_;
  std::uint64_t group_number_ = 0;
  std::optional<embedding::Grouping> grouping_;  // destroyed before the table
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counted_;
  std::vector<PendingOther> others_;
  std::shared_ptr<hash::HashMap> filling_;  // its items are not acknowledged yet
  std::uint64_t filling_version_ = 0;
  std::uint64_t filling_sequence_ = 0;
  std::shared_ptr<hash::HashMap> lost_;  // lost in a crash, without effects on other objects
  std::shared_ptr<table::Table> lost_rows_;
  std::shared_ptr<table::Table> other_table_;  // the object that is made and dropped, or null
  std::string found_;
};

/// Runs so many lives, until something is wrong, which fails the test.
void live_some_lives(StoreWorld& world, int lives);

}  // namespace espalier::test
