// SPDX-License-Identifier: Apache-2.0
// Records of a whole store (docs/design/records.md): objects of all kinds are made, written and
// dropped at random, under reused names, and the records restore the same store.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "catalog/redo_record.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "engine/parallel_redo.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "engine/store_copy.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/reducer.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/region/region_object.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/testing/redo_tables.hpp"
#include "store/clock_groups.hpp"

namespace espalier::test {
namespace {

constexpr const char* kCounters[] = {"a", "b"};
/// The keys of hash maps are the numbers below.
constexpr int kHashKeys = 20;

/// A store, with workers for its maps, and counters.
struct WholeStore {
  explicit WholeStore(bool shared_clock = false) {
    if (shared_clock) core.groups->share();
  }

  tree::StoreCore core = tree::make_store();
  hash::HashStore& hash_maps = hash::hash_store_of(core.catalog);
  hash::HashThread hash_thread = *hash::HashThread::join(hash_maps);
  tree::ThreadContext context{core, std::move(*core.epochs.join()), 0};
  // What a node applies records by.
  offload::Services services{core, std::uint64_t{64} << 20};
  offload::RedoTarget target{services, {}};
  sequencer::Counters& counters = core.parts.of<sequencer::Counters>();

  template <class T>
  [[nodiscard]] std::shared_ptr<T> find(std::uint32_t id) const {
    return core.catalog.find<T>(id);
  }
  Result<void> apply(std::string_view record) { return target.apply(record); }
  /// Applies those from one on, up to another.
  void apply_some(const std::vector<std::string_view>& records, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) ASSERT_TRUE(apply(records[i])) << "record " << i;
  }
};

/// The numbers in an embedding table, each row as a bag of its own.
std::string numbers_of(const embedding::EmbeddingTable& table) {
  std::vector<std::uint32_t> ids(table.rows());
  for (std::uint32_t row = 0; row < ids.size(); ++row) ids[row] = row;
  std::vector<float> numbers(ids.size() * table.options().dimension);
  EXPECT_TRUE(embedding::reduce(table, {Reduction::sum, {ids, ids}}, numbers));
  std::string text;
  for (const float number : numbers) text += " " + std::to_string(number);
  return text;
}

/// Everything of a store that records keep, by the names of its objects and counters.
std::map<std::string, std::string> contents(WholeStore& store) {
  std::map<std::string, std::string> all;
  for (const catalog::EntryPointer& entry : store.core.catalog.list()) {
    std::string text = std::to_string(entry->id);
    if (const auto map = store.find<tree::MapCore>(entry->id)) {
      for (const auto& [key, value] : tree::MapUser(store.context, map).items()) {
        text += " " + key + "=" + value;
      }
    } else if (const auto table = store.find<table::Table>(entry->id)) {
      for (const table::PageImage& page : table::pages_of(table)) {
        text += " " + std::to_string(page.cipher_page) + ":" + page.rows;
      }
    } else if (const auto numbers = store.find<sequencer::Sequencer>(entry->id)) {
      const wire::SequencerFacts facts = numbers->facts();
      for (const std::uint64_t part : {facts.first, facts.next, std::uint64_t{facts.epoch}}) {
        text += " " + std::to_string(part);
      }
    } else if (const auto hashed = store.find<hash::HashMap>(entry->id)) {
      for (int i = 0; i < kHashKeys; ++i) {
        text += " " + hashed->get(store.hash_thread, std::to_string(i))->value_or("none");
      }
    } else if (const auto made = store.find<region::RegionObject>(entry->id)) {
      text += " " + std::to_string(made->bytes());
    }
    if (const auto rows = store.find<embedding::EmbeddingTable>(entry->id)) {
      text += numbers_of(*rows);
    }
    all.emplace(entry->name, std::move(text));
  }
  for (const std::string name : kCounters) {
    all.emplace("counter " + name, std::to_string(*store.counters.take(name, 0)));
  }
  return all;
}

/// Which objects there are.
enum class Objects : std::uint8_t { all, copied };  // those that can be in a checkpoint

class RandomStore {
 public:
  RandomStore(WholeStore& store, catalog::RedoSink& sink, std::uint64_t seed,
              Objects objects = Objects::all)
      : store_(store), sink_(sink), random_(seed), objects_(objects) {
    store.core.catalog.record_to(&sink);
  }

  void step() {
    if (random_.below(20) == 0) {
      ASSERT_TRUE(store_.counters.take(kCounters[random_.below(2)], 3, &sink_));
      return;
    }
    const std::string name(1, static_cast<char>('a' + random_.below(8)));
    const catalog::EntryPointer there = store_.core.catalog.find_any(name);
    if (there == nullptr) return make(name);
    if (random_.below(40) == 0) {
      ASSERT_TRUE(store_.core.catalog.drop(name));
    } else if (const auto map = store_.find<tree::MapCore>(there->id)) {
      tree::MapUser user(store_.context, map);
      const Op op = random_.below(3) == 0 ? Op::erase : Op::put;
      ASSERT_TRUE(user.write(op, tree::random_key(random_, 8), std::to_string(random_())).ok);
    } else if (const auto table = store_.find<table::Table>(there->id)) {
      append(*table);
    } else if (const auto hashed = store_.find<hash::HashMap>(there->id)) {
      const std::string key = std::to_string(random_.below(kHashKeys));
      const auto op = random_.below(3) == 0 ? hash::WriteOp::erase : hash::WriteOp::put;
      ASSERT_TRUE(hashed->write(store_.hash_thread, op, key, std::to_string(random_())));
    } else if (const auto made = store_.find<region::RegionObject>(there->id)) {
      ASSERT_TRUE(made->fetch_add(0, 1));
    } else if (const auto rows = store_.find<embedding::EmbeddingTable>(there->id)) {
      const std::vector<float> values(8, static_cast<float>(random_.below(1000)));
      const auto bytes = std::as_bytes(std::span(values));
      if (rows->rows() == 0 || random_.below(2) == 0) {
        ASSERT_TRUE(rows->append(bytes));
      } else {
        ASSERT_TRUE(rows->replace(random_.below(rows->rows()), bytes));
      }
    } else {
      const auto numbers = store_.find<sequencer::Sequencer>(there->id);
      if (random_.below(10) == 0) {
        ASSERT_TRUE(numbers->advance(wire::kAnyEpoch, 0));
      } else {
        ASSERT_TRUE(numbers->take(wire::kAnyEpoch, 3));
      }
    }
  }

 private:
  void make(const std::string& name) {
    tree::StoreCore& core = store_.core;
    std::uint64_t what = random_.below(7);
    if (objects_ == Objects::copied && (what == 2 || what == 6)) what = 3;
    if (what == 0) {
      ASSERT_TRUE(tree::create_map(core, name, {.node_bytes = 512}));
    } else if (what == 4) {
      ASSERT_TRUE(hash::create_hash_map(store_.hash_maps, name, {.partitions = 2}));
    } else if (what == 5) {
      ASSERT_TRUE(region::create_region(core.catalog, name, 8 + random_.below(10'000)));
    } else if (what == 6) {
      ASSERT_TRUE(embedding::create_embedding_table(core.catalog, core.pool, name,
                                                    embedding::shape_of({.dimension = 8})));
    } else if (what == 1) {
      ASSERT_TRUE(sequencer::create_sequencer(core.catalog, name, random_.below(100)));
    } else {
      ASSERT_TRUE(table::create_table(core.catalog, core.pool, name, table::append_schema(),
                                      {.encrypted = what == 2}));
    }
  }
  void append(table::Table& table) {
    const auto count = static_cast<std::int64_t>(1 + random_.below(20));
    const auto rows = table::rows_of_append(table.schema(), 1, count);
    if (!table.encrypted()) {
      ASSERT_TRUE(table.append(rows));
      return;
    }
    now_ns_ += table::Table::kReservationNs;
    const auto slots = table.reserve_slots(static_cast<std::uint64_t>(count), now_ns_);
    ASSERT_TRUE(slots);
    if (random_.below(20) == 0) return;  // they are never filled
    ASSERT_TRUE(table.append_reserved(slots->number, rows));
  }

  WholeStore& store_;
  catalog::RedoSink& sink_;
  base::Random random_;
  Objects objects_;
  std::uint64_t now_ns_ = 0;
};

class Redo : public ::testing::Test {
 protected:
  Redo() {
    RandomStore random(store_, sink_, seed_);
    for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) random.step();
    records_ = sink_.records();
    wanted_ = contents(store_);
  }

  const std::uint64_t seed_ = base::seed_from_environment(63);
  catalog::RecordingSink sink_;
  WholeStore store_;
  std::vector<std::string_view> records_;
  std::map<std::string, std::string> wanted_;
};

TEST_F(Redo, RecordsMakeTheSameStore) {
  WholeStore other;
  base::Random begin(seed_);
  // Twice all of them, and once from one on that was applied before.
  for (const std::size_t from : {std::size_t{0}, std::size_t{0}, begin.below(records_.size())}) {
    ASSERT_NO_FATAL_FAILURE(other.apply_some(records_, from, records_.size()));
    EXPECT_EQ(contents(other), wanted_);
  }
  EXPECT_EQ(tree::audit_store(other.core), std::vector<std::string>{});
  for (const catalog::EntryPointer& entry : other.core.catalog.list(ObjectKind::hash)) {
    const auto map = other.find<hash::HashMap>(entry->id);
    map->trim();
    EXPECT_EQ(hash::audit(*map).wrong, std::vector<std::string>{});
  }
  for (const catalog::EntryPointer& entry : other.core.catalog.list(ObjectKind::embedding)) {
    EXPECT_EQ(embedding::audit(*other.find<embedding::EmbeddingTable>(entry->id)),
              std::vector<std::string>{});
  }
}

class ParallelRedoConcurrency : public Redo {
 protected:
  /// Pieces of some records each, so that threads take turns.
  static offload::ParallelRedo::Terms terms_for(WholeStore& store, std::uint32_t threads,
                                                std::size_t piece_bytes = 300) {
    return {.services = store.services, .own = {}, .threads = threads, .piece_bytes = piece_bytes};
  }
  /// All records that are not short are applied where they lie.
  static constexpr std::size_t kTinyPiece = 16;
  static Result<void> apply(offload::ParallelRedo& redo, std::string_view record) {
    return redo.apply(std::as_bytes(std::span(record)));
  }
};

TEST_F(ParallelRedoConcurrency, ThreadsMakeTheSameStore) {
  base::Random begin(seed_);
  for (const std::uint32_t threads : {1U, 2U, 5U, 6U}) {
    SCOPED_TRACE(threads);
    WholeStore other;
    const std::size_t piece_bytes = threads == 2 || threads == 6 ? kTinyPiece : 300;
    // Twice all of them, and once from one on that was applied before.
    for (const std::size_t from : {std::size_t{0}, std::size_t{0}, begin.below(records_.size())}) {
      auto redo = offload::ParallelRedo::start(terms_for(other, threads, piece_bytes));
      ASSERT_TRUE(redo);
      for (std::size_t i = from; i < records_.size(); ++i) {
        ASSERT_TRUE(apply(**redo, records_[i])) << "record " << i;
      }
      ASSERT_TRUE((*redo)->finish());
      EXPECT_FALSE((*redo)->refused());
      redo->reset();
      EXPECT_EQ(contents(other), wanted_);
    }
    EXPECT_EQ(tree::audit_store(other.core), std::vector<std::string>{});
  }
}

// Each record of a map moves the clock that all maps have, and one thread alone may do so.
TEST_F(ParallelRedoConcurrency, ThreadsMakeTheSameStoreOfOneClock) {
  catalog::RecordingSink sink;
  WholeStore shared(true);
  RandomStore random(shared, sink, seed_);
  for (int i = 0; i < 2000; ++i) ASSERT_NO_FATAL_FAILURE(random.step());
  WholeStore other(true);
  auto redo = offload::ParallelRedo::start(terms_for(other, 5));
  ASSERT_TRUE(redo);
  EXPECT_EQ((*redo)->threads(), 5u);
  for (const std::string_view record : sink.records()) ASSERT_TRUE(apply(**redo, record));
  ASSERT_TRUE((*redo)->finish());
  redo->reset();
  EXPECT_EQ(contents(other), contents(shared));
  EXPECT_EQ(tree::audit_store(other.core), std::vector<std::string>{});
  shared.core.catalog.record_to(nullptr);
}

// Many records in flight take later versions than one by one, and how many are depends on threads.
// What a reader has seen after one recovery stays taken in the next.
TEST_F(ParallelRedoConcurrency, VersionsThatAreTakenMeanwhileStandInARecord) {
  catalog::RecordingSink sink;
  WholeStore first;
  first.core.catalog.record_to(&sink);
  const auto map = *tree::create_map(first.core, "map", {.node_bytes = 1024});
  for (int i = 0; i < 600; ++i) {
    tree::MapUser(first.context, map).put(std::to_string(i * 7919 % 1000), "value");
  }
  first.core.catalog.record_to(nullptr);
  WholeStore other;
  auto redo = offload::ParallelRedo::start(terms_for(other, 2, 65536));
  ASSERT_TRUE(redo);
  for (const std::string_view record : sink.records()) ASSERT_TRUE(apply(**redo, record));
  ASSERT_TRUE((*redo)->finish());
  redo->reset();
  const auto made = other.find<tree::MapCore>(map->id);
  const std::uint64_t taken = made->clock.taken();
  EXPECT_GT(taken, map->clock.taken());

  catalog::RecordingSink after;
  other.core.catalog.record_to(&after);
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(offload::record_recovered(other.services, {}));
    EXPECT_EQ(after.count(), 1u) << "it stands there once";
  }
  WholeStore alone;
  for (const std::string_view record : sink.records()) ASSERT_TRUE(alone.apply(record));
  EXPECT_LT(alone.find<tree::MapCore>(map->id)->clock.taken(), taken);
  ASSERT_TRUE(alone.apply(after.records().front()));
  EXPECT_EQ(alone.find<tree::MapCore>(map->id)->clock.taken(), taken);
  other.core.catalog.record_to(nullptr);
}

// Whatever other threads were doing meanwhile.
TEST_F(ParallelRedoConcurrency, TheFirstRecordThatIsRefusedIsNamed) {
  base::Random random(seed_);
  for (int round = 0; round < 8; ++round) {
    std::vector<std::string> wrong(records_.begin(), records_.end());
    std::size_t first = wrong.size();
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random.below(wrong.size());
      wrong[at][offsetof(catalog::RedoHead, type)] = static_cast<char>(255);
      first = std::min(first, at);
    }
    WholeStore other;
    const std::size_t piece_bytes = round % 2 == 0 ? 300 : kTinyPiece;
    const auto redo = offload::ParallelRedo::start(terms_for(other, 3, piece_bytes));
    ASSERT_TRUE(redo);
    Result<void> applied;
    for (std::size_t i = 0; i < wrong.size() && applied; ++i) applied = apply(**redo, wrong[i]);
    if (applied) applied = (*redo)->finish();
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code, Code::corrupt);
    ASSERT_TRUE((*redo)->refused());
    // Records of a dropped object are skipped, whatever they are.
    std::size_t refused = 0;
    WholeStore alone;
    while (refused < wrong.size() && alone.apply(wrong[refused])) ++refused;
    EXPECT_EQ((*redo)->refused()->index, refused);
    EXPECT_GE(refused, first);
    EXPECT_EQ(apply(**redo, wrong[0]).error(), applied.error()) << "it is over";
    EXPECT_EQ((*redo)->finish().error(), applied.error());
  }
}

// As when a start is given up: threads end, with records in their queues.
TEST_F(ParallelRedoConcurrency, EndsWithRecordsThatAreNotApplied) {
  for (int round = 0; round < 8; ++round) {
    WholeStore other;
    const auto redo = offload::ParallelRedo::start(terms_for(other, 4));
    ASSERT_TRUE(redo);
    for (std::size_t i = 0; i < records_.size() / 8 * static_cast<std::size_t>(round); ++i) {
      ASSERT_TRUE(apply(**redo, records_[i]));
    }
  }
}

// As recovery does: from what was there at some moment, and from a record on that was before it. Of
// what was made and dropped by then the store knows nothing.
TEST_F(Redo, RecordsGoOnFromTheObjectsOfAMoment) {
  base::Random random(seed_);
  for (int round = 0; round < 4; ++round) {
    const std::size_t moment = random.below(records_.size());
    WholeStore before;
    ASSERT_NO_FATAL_FAILURE(before.apply_some(records_, 0, moment));
    std::set<std::uint32_t> there{0};  // that of counters
    for (const catalog::EntryPointer& entry : before.core.catalog.list()) there.insert(entry->id);
    WholeStore other;
    for (std::size_t i = 0; i < moment; ++i) {
      if (there.contains(catalog::read_redo_head(records_[i])->object)) {
        ASSERT_TRUE(other.apply(records_[i])) << "record " << i;
      }
    }
    EXPECT_EQ(contents(other), contents(before));
    const std::size_t from = random.below(moment + 1);
    ASSERT_NO_FATAL_FAILURE(other.apply_some(records_, from, records_.size()));
    EXPECT_EQ(contents(other), wanted_) << moment << " from " << from;
  }
}

/// Copies a store while it is written, and objects are made and dropped. Returns the copy's
/// records.
std::vector<std::string> copy_meanwhile(WholeStore& store, RandomStore& random, base::Random& turns,
                                        std::uint64_t& sequence) {
  offload::StoreCopy copy(store.services, {});
  sequence = copy.sequence();
  std::vector<std::string> records;
  offload::CopyPiece piece(200);
  // Nothing waits, since this sink reports all records as durable; each step copies something.
  for (int steps = 0;; ++steps) {
    for (std::uint64_t left = turns.below(4); left != 0; --left) random.step();
    piece.clear();
    const auto step = copy.next(piece);
    EXPECT_TRUE(step) << message(step.error());
    if (!step || *step == offload::CopyStep::wait || steps > 100'000) {
      ADD_FAILURE() << "it does not end";
      return {};
    }
    piece.each([&](std::span<const std::byte> record) {
      records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
      return true;
    });
    if (*step == offload::CopyStep::done) return records;
  }
}

// Of all kinds: what was copied while it changed, and the records from the copy's sequence on.
TEST(RedoOfCopies, ACopyAndTheRecordsBehindItMakeTheSameStore) {
  base::Random seeds(base::seed_from_environment(64));
  for (int round = 0; round < 12; ++round) {
    const std::uint64_t seed = seeds();
    SCOPED_TRACE("seed " + std::to_string(seed));
    catalog::RecordingSink sink;
    WholeStore store;
    RandomStore random(store, sink, seed, Objects::copied);
    base::Random turns(seed);
    for (std::uint64_t steps = turns.below(2000); steps != 0; --steps) random.step();
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    std::uint64_t sequence = 0;
    const std::vector<std::string> copied = copy_meanwhile(store, random, turns, sequence);
    for (std::uint64_t steps = turns.below(100); steps != 0; --steps) random.step();
    WholeStore other;
    for (const std::string& record : copied) ASSERT_TRUE(other.apply(record));
    const std::vector<std::string_view> records = sink.records();
    ASSERT_NO_FATAL_FAILURE(other.apply_some(records, sequence - 1, records.size()));
    EXPECT_EQ(contents(other), contents(store));
    EXPECT_EQ(tree::audit_store(other.core), std::vector<std::string>{});
    // An id is never given again, and no version.
    const auto given = [](const WholeStore& of) { return of.core.catalog.inventory().given; };
    EXPECT_EQ(given(other), given(store));
    for (const catalog::EntryPointer& entry : store.core.catalog.list(ObjectKind::map)) {
      EXPECT_GE(other.find<tree::MapCore>(entry->id)->clock.taken(),
                store.find<tree::MapCore>(entry->id)->clock.taken());
    }
    for (const catalog::EntryPointer& entry : store.core.catalog.list(ObjectKind::hash)) {
      EXPECT_GE(other.find<hash::HashMap>(entry->id)->clock().taken(),
                store.find<hash::HashMap>(entry->id)->clock().taken());
    }
  }
}

// The records of its appends, which are applied after the copy, continue rows that the copy does
// not have.
TEST(RedoOfCopies, ATableThatIsDroppedMeanwhileIsLeftOut) {
  for (const bool is_begun : {false, true}) {
    catalog::RecordingSink sink;
    WholeStore store;
    store.core.catalog.record_to(&sink);
    const auto table =
        table::create_table(store.core.catalog, store.core.pool, "t", table::append_schema());
    ASSERT_TRUE(table);
    ASSERT_TRUE((*table)->append(table::rows_of_append((*table)->schema(), 1, 100)));
    offload::StoreCopy copy(store.services, {});
    offload::CopyPiece piece(64);
    WholeStore other;
    const auto copy_some = [&] {
      piece.clear();
      const auto step = copy.next(piece);
      piece.each([&](std::span<const std::byte> record) {
        EXPECT_TRUE(other.apply({reinterpret_cast<const char*>(record.data()), record.size()}));
        return true;
      });
      return step && *step == offload::CopyStep::more;
    };
    ASSERT_TRUE(copy_some());
    ASSERT_TRUE(!is_begun || copy_some());
    const auto copied = other.core.catalog.open<table::Table>("t");
    ASSERT_TRUE(copied);
    EXPECT_EQ((*copied)->rows() != 0, is_begun);
    EXPECT_LT((*copied)->rows(), 100u);
    ASSERT_TRUE((*table)->append(table::rows_of_append((*table)->schema(), 101, 10)));
    ASSERT_TRUE(store.core.catalog.drop("t"));
    for (int steps = 0; copy_some(); ++steps) ASSERT_LT(steps, 1000);
    const std::vector<std::string_view> records = sink.records();
    ASSERT_NO_FATAL_FAILURE(other.apply_some(records, copy.sequence() - 1, records.size()));
    EXPECT_EQ(other.core.catalog.find_any("t"), nullptr);
    EXPECT_EQ(other.core.catalog.inventory().given, 1u);
  }
}

// While new ones make the table of them grow, and the copy of them begin again.
TEST(RedoOfCopies, CountersAreCopiedSomeAtATime) {
  constexpr std::uint32_t kCountersBefore = 3000;
  catalog::RecordingSink sink;
  WholeStore store;
  store.core.catalog.record_to(&sink);
  for (std::uint32_t i = 0; i < kCountersBefore; ++i) {
    ASSERT_TRUE(store.counters.take(std::to_string(i), 1 + i % 5, &sink));
  }
  offload::StoreCopy copy(store.services, {});
  offload::CopyPiece piece(100);
  WholeStore other;
  int steps = 0;
  for (auto step = copy.next(piece); step == offload::CopyStep::more; step = copy.next(piece)) {
    std::size_t bytes = 0;
    piece.each([&](std::span<const std::byte> record) {
      bytes += record.size();
      EXPECT_TRUE(other.apply({reinterpret_cast<const char*>(record.data()), record.size()}));
      return true;
    });
    EXPECT_LT(bytes, std::size_t{64} << 10);
    piece.clear();
    ASSERT_TRUE(store.counters.take("new " + std::to_string(++steps), 1, &sink));
    ASSERT_LT(steps, 100'000);
  }
  EXPECT_GT(steps, 5);
  piece.each([&](std::span<const std::byte> record) {
    EXPECT_TRUE(other.apply({reinterpret_cast<const char*>(record.data()), record.size()}));
    return true;
  });
  for (std::uint32_t i = 0; i < kCountersBefore; ++i) {
    ASSERT_EQ(*other.counters.take(std::to_string(i), 0), 1 + i % 5) << i;
  }
}

TEST(RedoOfCopies, AKindOfAProgramsOwnIsDurableWithACopyAlone) {
  offload::Offload make{};
  make.opens = true;
  const std::span<const offload::Offload> group(&make, 1);
  offload::KindRedo redo;
  offload::Kind kind{};
  kind.name = "own";
  kind.calls = {&group, 1};
  EXPECT_EQ(offload::kind_without_records({&kind, 1}), &kind);
  kind.redo = &redo;
  EXPECT_EQ(offload::kind_without_records({&kind, 1}), &kind);
  redo.copy = [](offload::Services&, const std::shared_ptr<const catalog::Entry>&)
      -> Result<std::unique_ptr<offload::ObjectCopy>> {
    return std::make_unique<offload::EmptyCopy>();
  };
  EXPECT_EQ(offload::kind_without_records({&kind, 1}), nullptr);
}

TEST(RedoOfCopies, ObjectsThatCannotBeCopiedAreNamed) {
  catalog::RecordingSink sink;
  WholeStore store;
  store.core.catalog.record_to(&sink);
  ASSERT_TRUE(tree::create_map(store.core, "m", {.versions = false}));
  offload::StoreCopy copy(store.services, {});
  offload::CopyPiece piece;
  const auto step = copy.next(piece);
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Code::unsupported);
}

// The highest id that was given names no object any more.
TEST(RedoOfCopies, AnIdThatWasGivenStaysGiven) {
  catalog::RecordingSink sink;
  WholeStore store;
  store.core.catalog.record_to(&sink);
  ASSERT_TRUE(hash::create_hash_map(store.hash_maps, "stays", {.partitions = 1}));
  ASSERT_TRUE(hash::create_hash_map(store.hash_maps, "goes", {.partitions = 1}));
  ASSERT_TRUE(store.core.catalog.drop("goes"));
  offload::StoreCopy copy(store.services, {});
  offload::CopyPiece piece;
  ASSERT_EQ(copy.next(piece), offload::CopyStep::done);
  WholeStore other;
  piece.each([&](std::span<const std::byte> record) {
    EXPECT_TRUE(other.apply({reinterpret_cast<const char*>(record.data()), record.size()}));
    return true;
  });
  const auto made = hash::create_hash_map(other.hash_maps, "goes", {.partitions = 1});
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->id(), 3u);
}

}  // namespace
}  // namespace espalier::test
