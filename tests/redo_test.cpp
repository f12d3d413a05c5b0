// SPDX-License-Identifier: Apache-2.0
// Records of a whole store (docs/design/records.md): objects of all kinds are made, written and
// dropped at random, under names that come again, and the records make the same store.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "sequencer/sequencer.hpp"
#include "table/table_object.hpp"
#include "table/testing/redo_tables.hpp"
#include "tree/testing/map_objects.hpp"
#include "tree/write/apply_redo.hpp"

namespace espalier::test {
namespace {

/// A store, with a worker for its maps.
struct WholeStore {
  tree::StoreCore core = tree::make_store();
  tree::ThreadContext context{core, std::move(*core.epochs.join()), 0};

  template <class T>
  [[nodiscard]] std::shared_ptr<T> find(std::uint32_t id) const {
    return core.catalog.find<T>(id);
  }
  Result<void> make(const catalog::CreatedObject& created) {
    const auto made = [](const auto& restored) {
      return restored ? Result<void>() : std::unexpected(restored.error());
    };
    switch (created.kind) {
      case ObjectKind::map: return made(tree::restore_map(core, created));
      case ObjectKind::table: return made(table::restore_table(core.catalog, core.pool, created));
      case ObjectKind::sequencer: return made(sequencer::restore_sequencer(core.catalog, created));
      case ObjectKind::any: break;
    }
    return fail(Code::unsupported);
  }
  Result<void> apply(std::string_view record) {
    const auto head = catalog::read_redo_head(record);
    if (!head) return std::unexpected(head.error());
    const auto type = static_cast<catalog::RedoType>(head->type);
    if (type == catalog::RedoType::created) return make(*catalog::read_created(record));
    if (type == catalog::RedoType::dropped) {
      static_cast<void>(core.catalog.drop_again(*catalog::read_dropped(record)));
      return {};
    }
    // What is no longer there was dropped later.
    if (const auto map = find<tree::MapCore>(head->object)) {
      return tree::apply_redo(context, *map, record);
    }
    if (const auto table = find<table::Table>(head->object)) {
      return table::apply_redo(*table, record);
    }
    if (const auto numbers = find<sequencer::Sequencer>(head->object)) {
      return numbers->apply_redo(record);
    }
    return {};
  }
};

/// Everything of a store that records keep, by the names of its objects.
std::map<std::string, std::string> contents(WholeStore& store) {
  std::map<std::string, std::string> all;
  for (const catalog::EntryPointer& entry : store.core.catalog.list()) {
    std::string text = std::to_string(entry->id);
    if (const auto map = store.find<tree::MapCore>(entry->id)) {
      for (const auto& [key, value] : tree::MapUser(store.context, map).items()) {
        text += " " + key + "=" + value;
      }
    } else if (const auto table = store.find<table::Table>(entry->id)) {
      for (const table::PageImage& page : table::pages_of(table)) text += page.rows;
    } else if (const auto numbers = store.find<sequencer::Sequencer>(entry->id)) {
      const wire::SequencerFacts facts = numbers->facts();
      for (const std::uint64_t part : {facts.first, facts.next, std::uint64_t{facts.epoch}}) {
        text += " " + std::to_string(part);
      }
    }
    all.emplace(entry->name, std::move(text));
  }
  return all;
}

class RandomStore {
 public:
  RandomStore(WholeStore& store, std::uint64_t seed) : store_(store), random_(seed) {}

  void step() {
    const std::string name(1, static_cast<char>('a' + random_.below(6)));
    const catalog::EntryPointer there = store_.core.catalog.find_any(name);
    if (there == nullptr) return make(name);
    if (random_.below(40) == 0) {
      ASSERT_TRUE(store_.core.catalog.drop(name));
    } else if (const auto map = store_.find<tree::MapCore>(there->id)) {
      tree::MapUser user(store_.context, map);
      const Op op = random_.below(3) == 0 ? Op::erase : Op::put;
      ASSERT_TRUE(user.write(op, tree::random_key(random_, 8), std::to_string(random_())).ok);
    } else if (const auto table = store_.find<table::Table>(there->id)) {
      const auto count = static_cast<std::int64_t>(1 + random_.below(20));
      ASSERT_TRUE(table->append(table::rows_of_append(table->schema(), 1, count)));
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
    switch (random_.below(3)) {
      case 0: ASSERT_TRUE(tree::create_map(core, name, {.node_bytes = 512})); break;
      case 1:
        ASSERT_TRUE(table::create_table(core.catalog, core.pool, name, table::append_schema()));
        break;
      default: ASSERT_TRUE(sequencer::create_sequencer(core.catalog, name, random_.below(100)));
    }
  }

  WholeStore& store_;
  base::Random random_;
};

TEST(Redo, RecordsMakeTheSameStore) {
  const std::uint64_t seed = base::seed_from_environment(63);
  catalog::RecordingSink sink;
  WholeStore store;
  store.core.catalog.record_to(&sink);
  RandomStore random(store, seed);
  for (int i = 0; i < 3000; ++i) ASSERT_NO_FATAL_FAILURE(random.step());
  const auto records = sink.records();
  const auto wanted = contents(store);
  WholeStore other;
  base::Random begin(seed);
  // Twice all of them, and once from one on that was applied before.
  for (const std::size_t from : {std::size_t{0}, std::size_t{0}, begin.below(records.size())}) {
    for (std::size_t i = from; i < records.size(); ++i) {
      ASSERT_TRUE(other.apply(records[i])) << "record " << i << " from " << from;
    }
    EXPECT_EQ(contents(other), wanted);
  }
  EXPECT_EQ(tree::audit_store(other.core), std::vector<std::string>{});
}

// An object that has no sink is what it was, and makes no record.
TEST(Redo, AStoreWithoutASinkRecordsNothing) {
  WholeStore store;
  RandomStore random(store, 1);
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(random.step());
  for (const catalog::EntryPointer& entry : store.core.catalog.list()) {
    EXPECT_EQ(entry->object->redo(), nullptr);
  }
}

}  // namespace
}  // namespace espalier::test
