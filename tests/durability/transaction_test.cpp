// SPDX-License-Identifier: Apache-2.0
// Transactions over the maps of a store (docs/design/transactions.md): effects against a model,
// refusals, and their records with the store that is restored from them.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "catalog/transaction_record.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "store/starved_write.hpp"
#include "store/transaction_request.hpp"
#include "tests/durability/transaction_store.hpp"

namespace espalier::test {
namespace {

NamedStep put(std::string map, std::string key, std::string value) {
  return {std::move(map), StepKind::put, std::move(key), std::move(value)};
}
NamedStep get(std::string map, std::string key) {
  return {std::move(map), StepKind::get, std::move(key)};
}
NamedStep erase(std::string map, std::string key) {
  return {std::move(map), StepKind::erase, std::move(key)};
}
NamedStep only_if(ConditionKind kind, std::string map, std::string key, std::string value = {},
                  std::uint64_t version = 0) {
  return {std::move(map), StepKind::check, std::move(key), std::move(value), kind, version};
}

TEST(Transactions, ReadsSeeWhatWasThereBeforeItsWrites) {
  TransactionStore f;
  ASSERT_TRUE(f.transact({put("map_a", "k", "1"), put("hash_a", "k", "1")}));
  const auto done = f.transact({put("map_a", "k", "2"), get("map_a", "k"), get("hash_a", "none"),
                                put("hash_a", "k", "3"), get("hash_a", "k"), erase("map_b", "x")});
  ASSERT_TRUE(done);
  ASSERT_EQ(done->found.size(), 3u);
  EXPECT_EQ(done->found[0].value, "1");
  EXPECT_FALSE(done->found[1].found);
  EXPECT_EQ(done->found[2].value, "1");
  EXPECT_EQ(done->found[0].version, done->found[2].version) << "one version for all of it";
  EXPECT_EQ(f.get("map_a", "k"), "2");
  EXPECT_EQ(f.get("hash_a", "k"), "3");
  EXPECT_EQ(f.faults(), "");
}

TEST(Transactions, TheFirstConditionThatFailsIsNamedAndNothingIsWritten) {
  TransactionStore f;
  const auto made = f.transact({put("map_a", "k", "1"), put("hash_a", "k", "1")});
  ASSERT_TRUE(made);
  const auto failed = f.transact({put("map_b", "new", "1"), put("hash_b", "new", "1"),
                                  only_if(ConditionKind::present, "hash_a", "k"),
                                  only_if(ConditionKind::value, "hash_a", "k", "other"),
                                  only_if(ConditionKind::absent, "map_a", "k")});
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->failed_step, 3u);
  EXPECT_EQ(failed->version, 0u);
  EXPECT_GE(failed->wait_for, made->version);
  EXPECT_EQ(f.get("map_b", "new"), std::nullopt);
  EXPECT_EQ(f.get("hash_b", "new"), std::nullopt);
  const auto held =
      f.transact({only_if(ConditionKind::version, "map_a", "k", "", made->version),
                  only_if(ConditionKind::version, "hash_a", "k", "", made->version),
                  only_if(ConditionKind::absent, "map_b", "new"), put("map_b", "new", "1")});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->failed_step, std::nullopt);
  EXPECT_EQ(f.get("map_b", "new"), "1");
}

TEST(Transactions, ReadsAloneTakeNoVersion) {
  TransactionStore f;
  ASSERT_TRUE(f.transact({put("map_a", "k", "1")}));
  const std::uint64_t taken = f.clock().taken();
  const auto done = f.transact({get("map_a", "k"), get("hash_b", "k")});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->version, 0u);
  EXPECT_EQ(done->found[0].value, "1");
  EXPECT_EQ(f.clock().taken(), taken);
}

TEST(Transactions, MapsOfSeveralClocksAreRefusedAndThoseOfOneAreNot) {
  TransactionStore f(false);
  const auto refused = f.begin({put("map_a", "k", "1"), put("hash_a", "k", "1")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Code::unsupported, 0, 1}));
  EXPECT_EQ(f.get("map_a", "k"), std::nullopt);
  ASSERT_TRUE(f.begin({put("hash_a", "k", "1"), put("hash_a", "l", "2"), get("hash_a", "k")}));
  EXPECT_EQ(f.get("hash_a", "l"), "2");
}

TEST(Transactions, WhatCannotTakePartIsRefused) {
  TransactionStore f;
  ASSERT_TRUE(tree::create_map(f.core, "off", {.versions = false}));
  EXPECT_EQ(f.begin({put("off", "k", "1")}).error().code, Code::unsupported);
  EXPECT_EQ(f.begin({put("map_a", std::string(1000, 'k'), "1")}).error().code, Code::key_too_long);
  EXPECT_EQ(
      f.begin({put("hash_a", "k", "1"), put("map_a", std::string(1000, 'k'), "1")}).error().code,
      Code::key_too_long);
  EXPECT_EQ(f.get("hash_a", "k"), std::nullopt);
  EXPECT_EQ(f.faults(), "");
}

// Between what names them and their locks.
TEST(Transactions, AMapThatWasDroppedMeanwhileIsNotWritten) {
  for (const char* const dropped : {"map_b", "hash_b"}) {
    TransactionStore f;
    const std::vector<NamedStep> steps{put("map_a", "k", "1"), put("hash_a", "k", "1"),
                                       put(dropped, "k", "1")};
    auto objects = f.objects_of(steps);
    const std::uint64_t taken = f.clock().taken();
    ASSERT_TRUE(f.core.catalog.drop(dropped));
    const auto done = store::transact(f.core, objects);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(), (Error{Code::not_found, 0, 2}));
    EXPECT_EQ(f.clock().taken(), taken);
    EXPECT_EQ(f.get("map_a", "k"), std::nullopt);
    EXPECT_EQ(f.get("hash_a", "k"), std::nullopt);
  }
}

TEST(Transactions, ThoseThatTakeLongAreNotBegunBriefly) {
  TransactionStore f;
  const auto brief = [&](const std::vector<NamedStep>& steps) {
    auto objects = f.objects_of(steps);
    const auto done = store::transact(f.core, objects, {.briefly = true});
    EXPECT_TRUE(done);
    return done && !done->too_long;
  };
  const std::string half(std::size_t{33} << 10, 'v');
  EXPECT_TRUE(brief({put("map_a", "long", half)}));
  EXPECT_TRUE(brief({put("hash_a", "long", half)}));
  const std::uint64_t taken = f.clock().taken();
  EXPECT_FALSE(brief({put("map_a", "a", half), put("hash_a", "b", half)}));
  EXPECT_FALSE(brief({put("map_a", "a", "1"), get("map_a", "long"), get("hash_a", "long")}));
  std::vector<NamedStep> erases;
  for (int i = 0; i < 17; ++i) erases.push_back(erase("map_a", std::to_string(i)));
  EXPECT_FALSE(brief(erases));
  EXPECT_EQ(f.clock().taken(), taken);
  EXPECT_EQ(f.get("map_a", "a"), std::nullopt);
  erases.pop_back();
  EXPECT_TRUE(brief(erases));
  EXPECT_TRUE(f.transact({put("map_a", "a", "1"), get("map_a", "long"), get("hash_a", "long")}));
  EXPECT_EQ(f.get("map_a", "a"), "1");
  EXPECT_EQ(f.faults(), "");
}

// Each partition lacks its first segment, and records: few rounds fetch what all of them lack.
TEST(Transactions, WhatManyPartitionsLackIsFetchedAtATime) {
  TransactionStore f(true, 64);
  std::vector<NamedStep> steps;
  for (int i = 0; i < 60; ++i) steps.push_back(put("hash_a", std::to_string(i), "1"));
  for (int round = 0; round < 3; ++round) {
    auto objects = f.objects_of(steps);
    const auto done = store::transact(f.core, objects, {.briefly = true});
    ASSERT_TRUE(done) << message(done.error());
    EXPECT_FALSE(done->too_long) << "round " << round;
  }
  EXPECT_EQ(f.hash("hash_a")->numbers().entries, 60u);
  EXPECT_EQ(f.faults(), "");
}

TEST(Transactions, TheirAnswerIsMadeBeforeTheyAreDone) {
  catalog::RecordingSink sink;
  TransactionStore f;
  ASSERT_TRUE(f.transact({put("map_a", "k", "old")}));
  f.core.catalog.record_to(&sink);
  std::string answer;
  std::string known;
  sink.when_handed_over = [&](std::string_view) { known = answer; };
  const std::vector<NamedStep> steps{get("map_a", "k"), put("map_a", "k", "1")};
  auto objects = f.objects_of(steps);
  const auto done = store::transact(f.core, objects, {.answer = &answer});
  ASSERT_TRUE(done);
  EXPECT_NE(answer.find("old"), std::string::npos);
  EXPECT_EQ(known, answer) << "when its record was handed over";
  f.core.catalog.record_to(nullptr);
}

// Values out of line, new keys of a small map that splits, and all of them replaced and erased.
TEST(Transactions, ManyKeysAtATimeGrowAndShrinkTheirMaps) {
  TransactionStore f(true, 1);
  for (const bool erases : {false, true}) {
    for (int round = 0; round < 40; ++round) {
      std::vector<NamedStep> steps;
      for (int i = 0; i < 64; ++i) {
        const std::string key = std::to_string(round * 64 + i);
        const std::string map = kTransactedMaps[i % 4];
        const std::string value(i % 8 < 4 ? 10 : 1500, static_cast<char>('a' + i % 26));
        steps.push_back(erases ? erase(map, key) : put(map, key, value));
      }
      const auto done = f.transact(steps);
      ASSERT_TRUE(done) << message(done.error());
    }
    EXPECT_EQ(f.faults(), "");
    for (const char* const name : {"map_a", "map_b"}) {
      EXPECT_EQ(f.map(name)->items.sum(), erases ? 0u : 640u);
    }
    EXPECT_EQ(f.hash("hash_a")->numbers().entries, erases ? 0u : 640u);
  }
}

/// The same of keys of one number in an ordered map and in a hash map.
std::vector<NamedStep> steps_of_number(StepKind kind, std::size_t number,
                                       const std::string& value) {
  std::vector<NamedStep> steps;
  for (const char* const map : {"map_a", "hash_a"}) {
    for (int i = 0; i < 4; ++i) {
      steps.push_back({map, kind, std::to_string(number) + "/" + std::to_string(i), value});
    }
  }
  return steps;
}

// Each attempt reserves room for its record once.
TEST(Transactions, InAFullStorePutsAreRefusedWholeAndErasesFindMemory) {
  catalog::RecordingSink sink;
  TransactionStore store(true, 4, std::uint64_t{32} << 20);
  store.core.catalog.record_to(&sink);
  const std::string value(3000, 'v');
  Result<store::Transacted> done;
  std::size_t count = 0;
  std::size_t rooms = 0;
  for (;; ++count) {
    ASSERT_LT(count, 10'000u) << "the store is never full";
    rooms = sink.reserved();
    done = store.transact(steps_of_number(StepKind::put, count, value));
    if (!done) break;
  }
  EXPECT_EQ(done.error().code, Code::out_of_memory);
  EXPECT_EQ(sink.reserved() - rooms, 1 + tree::kAttemptsAtOnce);
  EXPECT_EQ(sink.rooms(), 0u);
  EXPECT_EQ(sink.count(), count);
  for (const NamedStep& step : steps_of_number(StepKind::get, count, {})) {
    EXPECT_EQ(store.get(step.map, step.key), std::nullopt) << step.map << " " << step.key;
  }
  for (const NamedStep& step : steps_of_number(StepKind::get, count - 1, {})) {
    EXPECT_EQ(store.get(step.map, step.key), value) << step.map << " " << step.key;
  }
  EXPECT_EQ(store.faults(), "");
  for (std::size_t i = 0; i < count; ++i) {
    const auto erased = store.transact(steps_of_number(StepKind::erase, i, {}));
    ASSERT_TRUE(erased) << i << ": " << message(erased.error());
  }
  done = store.transact(steps_of_number(StepKind::put, count, value));
  EXPECT_TRUE(done) << message(done.error());
  EXPECT_EQ(store.faults(), "");
  store.core.catalog.record_to(nullptr);
}

// Keys of one transaction have links of one version, which stay as long as the snapshot.
TEST(Transactions, WhatSnapshotsHoldStaysUntilTheyGo) {
  TransactionStore f(true, 1);
  std::vector<NamedStep> steps;
  for (int i = 0; i < 40; ++i) steps.push_back(put("hash_a", std::to_string(i), "old"));
  ASSERT_TRUE(f.transact(steps));
  const auto map = f.hash("hash_a");
  const hash::HashSnapshot snapshot = map->hold(f.thread).value();
  for (NamedStep& step : steps) step = erase("hash_a", step.key);
  ASSERT_TRUE(f.transact(steps));
  for (NamedStep& step : steps) step = put("hash_a", step.key, "new");
  ASSERT_TRUE(f.transact(steps));
  EXPECT_EQ(f.faults(), "");
  {
    hash::HashReader reader(*map, f.thread, snapshot);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(reader.get(std::to_string(i)).value, "old");
  }
  map->drop(snapshot);
  map->give_back(f.thread);
  EXPECT_EQ(f.get("hash_a", "7"), "new");
  EXPECT_EQ(f.faults(), "");
}

class TransactionModel {
 public:
  TransactionModel(TransactionStore& f, std::uint64_t seed) : f_(f), random_(seed) {}

  void step() {
    std::vector<NamedStep> steps;
    for (std::uint64_t i = 0; i <= random_.below(12); ++i) steps.push_back(draw());
    auto expected = contents_;
    std::vector<std::optional<std::string>> found;
    std::optional<std::uint32_t> failed;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const NamedStep& one = steps[i];
      const auto was = contents_.find({one.map, one.key});
      const bool there = was != contents_.end();
      if (one.kind == StepKind::get) {
        found.push_back(there ? std::optional(was->second) : std::nullopt);
      }
      if (one.kind == StepKind::put) expected[{one.map, one.key}] = one.value;
      if (one.kind == StepKind::erase) expected.erase({one.map, one.key});
      if (one.kind == StepKind::check && !failed && !holds(one, there ? &was->second : nullptr)) {
        failed = i;
      }
    }
    const auto done = f_.transact(steps);
    ASSERT_TRUE(done) << message(done.error());
    ASSERT_EQ(done->failed_step, failed);
    if (failed) return;
    contents_ = std::move(expected);
    ASSERT_EQ(done->found.size(), found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(done->found[i].found, found[i].has_value());
      if (found[i]) {
        ASSERT_EQ(done->found[i].value, *found[i]);
      }
    }
  }
  [[nodiscard]] const auto& contents() const { return contents_; }

 private:
  static bool holds(const NamedStep& step, const std::string* value) {
    if (step.condition == ConditionKind::absent) return value == nullptr;
    if (step.condition == ConditionKind::present) return value != nullptr;
    return value != nullptr && *value == step.value;
  }
  NamedStep draw() {
    NamedStep step{kTransactedMaps[random_.below(4)], StepKind::get,
                   std::to_string(random_.below(30))};
    const std::uint64_t what = random_.below(10);
    if (what < 2) return step;
    step.kind = what < 6 ? StepKind::put : StepKind::erase;
    if (what == 6) {
      step.kind = StepKind::check;
      step.condition = static_cast<ConditionKind>(1 + random_.below(3));
    }
    if (step.kind != StepKind::erase && step.condition != ConditionKind::absent &&
        step.condition != ConditionKind::present) {
      step.value = std::string(random_.below(20) == 0 ? 2000 : 3, 'a');
      step.value += std::to_string(random_.below(3));
    }
    return step;
  }

  TransactionStore& f_;
  base::Random random_;
  std::map<std::pair<std::string, std::string>, std::string> contents_;
};

TEST(Transactions, DoWhatTheModelDoes) {
  TransactionStore f;
  TransactionModel model(f, 77);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_NO_FATAL_FAILURE(model.step());
    if (i % 500 == 0) {
      ASSERT_EQ(f.faults(), "");
    }
  }
  for (const char* const name : kTransactedMaps) {
    for (int key = 0; key < 30; ++key) {
      const auto is = model.contents().find({name, std::to_string(key)});
      const auto expected = is == model.contents().end() ? std::nullopt : std::optional(is->second);
      EXPECT_EQ(f.get(name, std::to_string(key)), expected);
    }
  }
}

// --- records -------------------------------------------------------------------------------------

/// A store that records are applied to.
struct AppliedStore {
  TransactionStore f;
  offload::Services services{f.core, std::uint64_t{64} << 20};
  offload::RedoTarget target{services, {}};
};

TEST(Transactions, OneRecordHasAllItsEffectsAndMakesTheSameMaps) {
  catalog::RecordingSink sink;
  TransactionStore f;
  f.core.catalog.record_to(&sink);
  TransactionModel model(f, 78);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t taken = f.clock().taken();
    const std::size_t before = sink.count();
    ASSERT_NO_FATAL_FAILURE(model.step());
    ASSERT_LE(sink.count() - before, f.clock().taken() - taken);
  }
  EXPECT_EQ(sink.rooms(), 0u);
  AppliedStore other;
  for (int times = 0; times < 2; ++times) {
    for (const std::string_view record : sink.records()) {
      const auto applied = other.target.apply(record);
      ASSERT_TRUE(applied) << message(applied.error());
    }
  }
  EXPECT_GE(other.f.clock().released(), f.clock().released());
  for (const char* const name : kTransactedMaps) {
    for (int key = 0; key < 30; ++key) {
      EXPECT_EQ(other.f.get(name, std::to_string(key)), f.get(name, std::to_string(key)));
    }
  }
  EXPECT_EQ(other.f.faults(), "");
  f.core.catalog.record_to(nullptr);
}

// Also if one of its objects was dropped since, and for an object that is behind.
TEST(Transactions, WhatIsMadeOfARecordHasOneVersionWhichIsTheOneThatItHad) {
  catalog::RecordingSink sink;
  TransactionStore f;
  f.core.catalog.record_to(&sink);
  std::vector<std::uint64_t> versions;
  for (int i = 0; i < 3; ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto done =
        f.transact({put("hash_b", key, "1"), put("map_a", key, "1"), put("hash_b", "l" + key, "1"),
                    put("map_b", key, "1"), erase("hash_a", key)});
    ASSERT_TRUE(done);
    versions.push_back(done->version);
  }
  AppliedStore other;
  ASSERT_TRUE(other.f.core.catalog.drop("map_b"));
  for (const std::string_view record : sink.records()) ASSERT_TRUE(other.target.apply(record));
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto held =
        other.f.transact({only_if(ConditionKind::version, "map_a", key, "", versions[i]),
                          get("map_a", key), get("hash_b", key), get("hash_b", "l" + key)});
    ASSERT_TRUE(held);
    ASSERT_EQ(held->failed_step, std::nullopt) << "its version was told before the restart";
    for (const auto& found : held->found) EXPECT_EQ(found.version, versions[i]);
  }
  EXPECT_EQ(other.f.clock().taken(), f.clock().taken());
  f.core.catalog.record_to(nullptr);
}

// A store that is started without a shared clock.
TEST(Transactions, ARecordOfSeveralMapsMakesThemWhereTheyShareNoClockAnyMore) {
  catalog::RecordingSink sink;
  TransactionStore f;
  f.core.catalog.record_to(&sink);
  ASSERT_TRUE(f.transact({put("map_a", "k", "1"), put("hash_a", "k", "2")}));
  f.core.catalog.record_to(nullptr);
  TransactionStore other(false);
  offload::Services services(other.core, std::uint64_t{64} << 20);
  offload::RedoTarget target(services, {});
  ASSERT_TRUE(target.apply(sink.records().back()));
  EXPECT_EQ(other.get("map_a", "k"), "1");
  EXPECT_EQ(other.get("hash_a", "k"), "2");
}

TEST(Transactions, ARecordThatIsDamagedIsRefusedAndChangesNothing) {
  catalog::RecordingSink sink;
  TransactionStore f;
  f.core.catalog.record_to(&sink);
  ASSERT_TRUE(f.transact({put("map_a", "k", "1"), put("hash_a", "key", "1234")}));
  f.core.catalog.record_to(nullptr);
  const std::string good(sink.records().back());
  AppliedStore other;
  const auto refusal = [&](std::string bytes) {
    // Aligned, as records are.
    auto* const aligned = static_cast<char*>(::operator new(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), aligned);
    const auto applied = other.target.apply({aligned, bytes.size()});
    ::operator delete(aligned);
    return applied ? Code::invalid : applied.error().code;
  };
  std::string longer = good + std::string(8, '\0');
  longer[0] = static_cast<char>(longer.size());
  EXPECT_EQ(refusal(longer), Code::corrupt) << "what follows is no record";
  std::string bad = good;
  bad[16] = static_cast<char>(bad[16] + 8);
  EXPECT_EQ(refusal(bad), Code::corrupt);
  bad = good;
  bad[8] = 1;
  EXPECT_EQ(refusal(bad), Code::corrupt) << "it is of no one object";
  bad = good;
  bad.back() = 1;
  EXPECT_EQ(refusal(bad), Code::corrupt) << "pads are zeros";
  EXPECT_EQ(other.f.get("map_a", "k"), std::nullopt);
  EXPECT_EQ(refusal(good), Code::invalid);
  EXPECT_EQ(other.f.get("map_a", "k"), "1");
  EXPECT_EQ(other.f.get("hash_a", "key"), "1234");
}

TEST(Transactions, NothingIsSeenBeforeItsRecordIsDurable) {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  TransactionStore f;
  f.core.catalog.record_to(&sink);
  const auto done = f.begin({put("map_a", "k", "1"), put("hash_a", "k", "1")});
  ASSERT_TRUE(done);
  EXPECT_LT(f.clock().released(), done->wait_for);
  EXPECT_EQ(f.get("map_a", "k"), std::nullopt);
  EXPECT_EQ(f.get("hash_a", "k"), std::nullopt);
  // The next one of the key reads it, and waits with it.
  const auto next = f.begin({get("hash_a", "k"), get("map_a", "k")});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->found[0].value + next->found[1].value, "11");
  EXPECT_GE(next->wait_for, done->version);
  const auto failed = f.begin({only_if(ConditionKind::absent, "hash_a", "k")});
  ASSERT_TRUE(failed);
  EXPECT_GE(failed->wait_for, done->version);
  sink.make_durable();
  EXPECT_EQ(f.get("map_a", "k"), "1");
  EXPECT_EQ(f.get("hash_a", "k"), "1");
  sink.refuse(true);
  EXPECT_EQ(f.begin({put("map_a", "k", "2"), put("hash_a", "k", "2")}).error().code, Code::busy);
  EXPECT_EQ(f.get("map_a", "k"), "1");
  f.core.catalog.record_to(nullptr);
}

// Its size reveals a value that a crash may take back.
TEST(Transactions, ARefusalThatTellsOfAValueWaitsForIt) {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  TransactionStore f;
  f.core.catalog.record_to(&sink);
  const std::string large(std::size_t{600} << 10, 'v');
  ASSERT_TRUE(f.begin({put("map_a", "k", large)}));
  const auto last = f.begin({put("hash_a", "k", large)});
  ASSERT_TRUE(last);
  const auto refused = f.begin({get("map_a", "k"), get("hash_a", "k"), put("map_a", "l", "1")});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refused, (Error{Code::value_too_long, 0, 1 << 20}));
  EXPECT_EQ(refused->version, 0u);
  EXPECT_GE(refused->wait_for, last->version);
  EXPECT_LT(f.clock().released(), refused->wait_for);
  sink.make_durable();
  EXPECT_EQ(f.get("map_a", "l"), std::nullopt);
  f.core.catalog.record_to(nullptr);
}

// --- as they are asked for -----------------------------------------------------------------------

std::string request_of(const std::vector<std::string>& names,
                       const std::vector<std::pair<object_calls::StepHead, std::string>>& steps) {
  std::string bytes;
  for (const std::string& name : names) {
    bytes += base::bytes_of(static_cast<std::uint16_t>(name.size()));
    bytes += name;
  }
  for (const auto& [head, rest] : steps) {
    bytes += base::bytes_of(head);
    bytes += rest;
  }
  return bytes;
}

TEST(TransactionRequests, AreRefusedWithAReason) {
  TransactionStore f;
  const object_calls::StepHead put_k{0, 1, 1, 0, 3, 0, {}};
  const auto refusal = [&](std::uint32_t objects, const std::string& bytes,
                           std::string_view prefix = {}) {
    const auto read = store::read_transaction(f.core.catalog, {objects, bytes}, prefix);
    return read ? Error{} : read.error().error;
  };
  const std::string good = request_of({"map_a"}, {{put_k, "kv"}});
  EXPECT_EQ(refusal(1, good), Error{});
  EXPECT_EQ(refusal(1, good, "map"), Error{});
  EXPECT_EQ(refusal(1, good, "hash"), (Error{Code::not_permitted, 0, 0}));
  EXPECT_EQ(refusal(1, good.substr(0, good.size() - 1)).code, Code::invalid_argument);
  EXPECT_EQ(refusal(2, good).code, Code::invalid_argument);
  EXPECT_EQ(refusal(1, request_of({"map_a"}, {})).code, Code::invalid_argument);
  EXPECT_EQ(refusal(1, request_of({"none"}, {{put_k, "kv"}})), (Error{Code::not_found, 0, 0}));
  EXPECT_EQ(refusal(2, request_of({"map_a", "map_a"}, {{put_k, "kv"}})),
            (Error{Code::invalid_argument, 0, 1}));
  for (const object_calls::StepHead& bad : std::vector<object_calls::StepHead>{
           {0, 1, 1, 1, 3, 0, {}},      // of an object that is not named
           {0, 1, 1, 0, 5, 0, {}},      // no such step
           {0, 1, 1, 0, 0, 0, {}},      // likewise
           {0, 1, 1, 0, 1, 0, {}},      // a get with a value
           {1, 1, 1, 0, 3, 0, {}},      // a put with a version
           {0, 1, 1, 0, 3, 1, {}},      // a put with a condition
           {0, 1, 1, 0, 2, 5, {}},      // no such condition
           {0, 1, 1, 0, 3, 0, {0, 1}},  // reserved
           {0, 2, 0, 0, 3, 0, {}}}) {   // no key
    EXPECT_EQ(refusal(1, request_of({"map_a"}, {{bad, "kv"}})),
              (Error{Code::invalid_argument, 0, 0}));
  }
  std::vector<std::pair<object_calls::StepHead, std::string>> many;
  for (char key = 0; key < 65; ++key) many.emplace_back(put_k, std::string{key, 'v'});
  EXPECT_EQ(refusal(1, request_of({"map_a"}, many)), (Error{Code::invalid_argument, 0, 64}));
  many.assign(257, {put_k, "kv"});
  EXPECT_EQ(refusal(1, request_of({"map_a"}, many)), (Error{Code::invalid_argument, 0, 256}));
  const std::string large(std::size_t{1} << 20, 'v');
  const object_calls::StepHead put_large{0, 1 << 20, 1, 0, 3, 0, {}};
  EXPECT_EQ(refusal(1, request_of({"map_a"}, {{put_large, "k" + large}})),
            (Error{Code::invalid_argument, 0, 0}));
}

}  // namespace
}  // namespace espalier::test
