// SPDX-License-Identifier: Apache-2.0
// Tests of the checkers: each planted fault is refused, and correct histories are accepted.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "tests/support/script.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/wing_gong.hpp"

namespace espalier::test {
namespace {

// The checkers that must refuse a history: the search for an order cannot see what only versions
// show.
enum class By { both, versions };

struct Case {
  const char* name;
  By by;
  std::function<void(Script&)> write;
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

std::string case_name(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

WriteBatch transfer(const char* from, const char* from_value, const char* to,
                    const char* to_value) {
  WriteBatch batch;
  batch.put(from, from_value).put(to, to_value);
  return batch;
}

const Case kWrong[] = {
    {"StaleRead", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 4}, "a", "2", 2, true);
       s.get({5, 6}, "a", "1");
     }},
    {"StaleReadAtANamedVersion", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 4}, "a", "2", 2, true);
       s.get({5, 6}, "a", "1").read_version = 1;
     }},
    {"ReadsGoBackInTime", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 10}, "a", "2", 2, true);
       s.get({4, 5}, "a", "2");
       s.get({6, 7}, "a", "1");
     }},
    {"ReadFromTheFuture", By::both,
     [](Script& s) {
       s.get({1, 2}, "a", "1");
       s.put({3, 4}, "a", "1", 1);
     }},
    {"ReadVersionFromTheFuture", By::versions,
     [](Script& s) {
       s.get({1, 2}, "a", nullptr).read_version = 7;
       s.put({3, 4}, "b", "1", 7);
     }},
    {"LostUpdate", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.modify({3, 6}, "a", "1", "2", 2);
       s.modify({4, 7}, "a", "1", "3", 3);
     }},
    {"LostWrite", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.get({3, 4}, "a", nullptr);
     }},
    {"LostErase", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.erase({3, 4}, "a", 2);
       s.scan({5, 6}, "", "", {{"a", "1"}});
     }},
    {"AppliedTwice", By::both,
     [](Script& s) {
       s.insert({1, 8}, "a", "1", 1);
       s.erase({3, 4}, "a", 2);
       s.get({5, 6}, "a", nullptr);
       s.get({9, 10}, "a", "1");
     }},
    {"TwoInsertsOfOneKey", By::both,
     [](Script& s) {
       s.insert({1, 4}, "a", "1", 1);
       s.insert({2, 5}, "a", "2", 2);
     }},
    {"TwoErasesOfOneItem", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.erase({3, 6}, "a", 2);
       s.erase({4, 7}, "a", 3);
     }},
    {"InsertRefusedForNothing", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.erase({3, 4}, "a", 2);
       s.insert({5, 6}, "a", "2", 0);
     }},
    {"UpdateOfNothing", By::both,
     [](Script& s) {
       s.put({1, 2}, "b", "1", 1);
       s.update({3, 4}, "a", "2", 2);
     }},
    {"AnsweredFromWhatIsNotReleased", By::both,
     // The failed insert saw the item, so a later read must see it too.
     [](Script& s) {
       s.insert({1, 10}, "a", "1", 1);
       s.insert({2, 3}, "a", "2", 0);
       s.get({4, 5}, "a", nullptr);
     }},
    {"PutSaysAbsent", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 4}, "a", "2", 2, false);
     }},
    {"TornScan", By::both,
     // Each item was there at some time, never both.
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.scan({1, 10}, "", "", {{"a", "0"}, {"b", "2"}});
       s.put({2, 3}, "a", "1", 1, true);
       s.put({4, 5}, "b", "2", 2, true);
     }},
    {"ScanMissesAnItem", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}, {"c", "0"}};
       s.scan({1, 2}, "", "", {{"a", "0"}, {"c", "0"}});
     }},
    {"ScanEndsEarly", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}, {"c", "0"}};
       s.scan({1, 2}, "a", "z", {{"a", "0"}, {"b", "0"}}, {.limit = 3});
     }},
    {"ScanExceedsItsLimit", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.scan({1, 2}, "", "", {{"a", "0"}, {"b", "0"}}, {.limit = 1});
     }},
    {"ScanIncludesItsHighEnd", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.scan({1, 2}, "a", "b", {{"a", "0"}, {"b", "0"}});
     }},
    {"ScanOutOfOrder", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.scan({1, 2}, "", "", {{"b", "0"}, {"a", "0"}});
     }},
    {"ScanDeliversAnItemTwice", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}};
       s.scan({1, 2}, "", "", {{"a", "0"}, {"a", "0"}});
     }},
    {"Phantom", By::both,
     // A scan sees the second of two consecutive inserts, and not the first.
     [](Script& s) {
       s.scan({1, 10}, "", "", {{"b", "2"}});
       s.insert({2, 3}, "a", "1", 1);
       s.insert({4, 5}, "b", "2", 2);
     }},
    {"ScansSeeTwoOrders", By::both,
     [](Script& s) {
       s.put({1, 20}, "a", "1", 1);
       s.put({2, 21}, "b", "1", 2);
       s.scan({3, 8}, "", "", {{"a", "1"}});
       s.scan({4, 9}, "", "", {{"b", "1"}});
     }},
    {"ReverseScanMissesAnItem", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}, {"c", "0"}};
       s.scan({1, 2}, "a", "c", {{"a", "0"}}, {.reverse = true});
     }},
    {"ReverseScanTakesTheWrongEnd", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}, {"c", "0"}};
       s.scan({1, 2}, "", "", {{"a", "0"}}, {.limit = 1, .reverse = true});
     }},
    {"FloorStopsShort", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"c", "0"}};
       s.floor({1, 2}, "d", "a", "0");
     }},
    {"FloorFindsNothing", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}};
       s.floor({1, 2}, "z", nullptr, nullptr);
     }},
    {"FloorIsAbove", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"c", "0"}};
       s.floor({1, 2}, "b", "c", "0");
     }},
    {"FloorOfAnErasedItem", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.erase({1, 2}, "b", 1);
       s.floor({3, 4}, "c", "b", "0");
     }},
    {"ScanFromTheWrongFloor", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}, {"d", "0"}};
       s.scan({1, 2}, "c", "d", {{"a", "0"}, {"d", "0"}}, {.from_floor = true});
     }},
    {"ScanWithoutItsFloor", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"d", "0"}};
       s.scan({1, 2}, "c", "d", {{"d", "0"}}, {.from_floor = true});
     }},
    {"HalfABatchIsVisible", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.batch({1, 10}, transfer("a", "1", "b", "1"), 1);
       s.scan({2, 3}, "", "", {{"a", "1"}, {"b", "0"}});
     }},
    {"HalfABatchIsVisibleToTwoReads", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.batch({1, 10}, transfer("a", "1", "b", "1"), 1);
       s.get({2, 3}, "a", "1");
       s.get({4, 5}, "b", "0");
     }},
    {"ConditionOnAValueIgnored", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       WriteBatch batch;
       batch.put("b", "2").only_if_value("a", "0");
       s.batch({3, 4}, batch, 2);
     }},
    {"ConditionOnAbsenceIgnored", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       WriteBatch batch;
       batch.put("b", "2").only_if_absent("a");
       s.batch({3, 4}, batch, 2);
     }},
    {"ConditionOnAVersionIgnored", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 4}, "a", "2", 2, true);
       WriteBatch batch;
       batch.put("b", "2").only_if_version("a", 1);
       s.batch({5, 6}, batch, 3).conditions[0].value = "1";
     }},
    {"ConditionFailedForNothing", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       WriteBatch batch;
       batch.put("b", "2").only_if_value("a", "1");
       s.batch({3, 4}, batch, 0).failed_condition = 0;
     }},
    {"BatchWithAFailedConditionWrote", By::both,
     [](Script& s) {
       WriteBatch batch;
       batch.put("b", "2").only_if_present("a");
       s.batch({1, 2}, batch, 0).failed_condition = 0;
       s.get({3, 4}, "b", "2");
     }},
    {"ConditionsCheckedTooEarly", By::both,
     // Each batch wants the other's key unwritten: write skew.
     [](Script& s) {
       WriteBatch first;
       first.put("a", "1").only_if_absent("b");
       WriteBatch second;
       second.put("b", "1").only_if_absent("a");
       s.batch({1, 4}, first, 1);
       s.batch({2, 5}, second, 2);
     }},
    {"WrongCount", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.count({1, 2}, "", "", 1);
     }},
    {"ValueOfAnotherKey", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "5"}};
       s.get({1, 2}, "a", "5");
     }},
    {"VersionsAgainstRealTime", By::versions,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 2);
       s.put({3, 4}, "b", "1", 1);
     }},
    {"OneVersionTwice", By::versions,
     [](Script& s) {
       s.put({1, 4}, "a", "1", 1);
       s.put({2, 5}, "b", "1", 1);
     }},
    {"WriteWithoutAVersion", By::versions,
     [](Script& s) { s.put({1, 2}, "a", "1", 0); }},
    {"ReadAtTheWrongVersion", By::versions,
     // Right at 2, but the read says that it holds at 1.
     [](Script& s) {
       s.put({1, 8}, "a", "1", 1);
       s.put({2, 9}, "b", "1", 2);
       s.scan({3, 10}, "", "", {{"a", "1"}, {"b", "1"}}).read_version = 1;
     }},
    {"ItemOlderThanItsValue", By::versions,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 4}, "a", "2", 2, true);
       s.get({5, 6}, "a", "2", 1);
     }},
    {"ItemNewerThanTheRead", By::versions,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.get({3, 4}, "a", "1", 5).read_version = 1;
       s.put({5, 6}, "b", "1", 5);
     }},
    {"SnapshotMoves", By::versions,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.snapshot({3, 4}, 1);
       s.put({5, 6}, "a", "2", 2, true);
       Operation& read = s.get({7, 8}, "a", "2");
       read.read_version = 1;
       read.pinned = true;
     }},
    {"SnapshotOfThePast", By::versions,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.snapshot({3, 4}, 0);
     }},
};

class CheckerRefuses : public ::testing::TestWithParam<Case> {};

TEST_P(CheckerRefuses, PlantedFault) {
  Script script;
  GetParam().write(script);
  EXPECT_TRUE(replay_versions(script.history).has_value());
  const CheckResult result = check_linearizable(script.history);
  EXPECT_EQ(result.answer, GetParam().by == By::both ? Answer::no : Answer::yes);
}

INSTANTIATE_TEST_SUITE_P(All, CheckerRefuses, ::testing::ValuesIn(kWrong), case_name);

const Case kRight[] = {
    {"Nothing", By::both, [](Script&) {}},
    {"ConcurrentReadsOfEitherState", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.put({3, 10}, "a", "2", 2, true);
       s.get({4, 5}, "a", "1");
       s.get({6, 7}, "a", "2");
     }},
    {"VersionsUnlikeInvocations", By::both,
     [](Script& s) {
       s.put({1, 10}, "a", "1", 2, true);
       s.put({2, 9}, "a", "2", 1);
       s.get({11, 12}, "a", "1");
     }},
    {"GapsBetweenVersions", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 5);
       s.get({3, 4}, "a", "1", 7).read_version = 9;
       s.put({5, 6}, "a", "2", 12, true);
     }},
    {"FailedWritesBetweenOthers", By::both,
     [](Script& s) {
       s.insert({1, 2}, "a", "1", 1);
       s.insert({3, 4}, "a", "2", 0);
       s.erase({5, 6}, "a", 2);
       s.erase({7, 8}, "a", 0);
       s.update({9, 10}, "a", "3", 0);
       s.modify({11, 12}, "a", std::nullopt, std::nullopt, 0);
     }},
    {"ScanAmongWrites", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.scan({1, 10}, "", "", {{"a", "1"}, {"b", "0"}});
       s.put({2, 3}, "a", "1", 1, true);
       s.put({4, 5}, "b", "2", 2, true);
     }},
    {"ScansOfEveryKind", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"c", "0"}, {"e", "0"}};
       s.scan({1, 2}, "b", "d", {{"c", "0"}});
       s.scan({3, 4}, "", "e", {{"c", "0"}, {"a", "0"}}, {.reverse = true});
       s.scan({5, 6}, "d", "e", {{"c", "0"}, {"e", "0"}}, {.from_floor = true});
       s.scan({7, 8}, "c", "e", {{"c", "0"}}, {.limit = 1, .from_floor = true});
       s.scan({9, 10}, "A", "b", {{"a", "0"}}, {.from_floor = true});
       s.scan({11, 12}, "d", "b", {});
       s.floor({13, 14}, "b", "a", "0");
       s.floor({15, 16}, "c", "c", "0");
       s.floor({17, 18}, "A", nullptr, nullptr);
       s.count({19, 20}, "a", "e", 2);
     }},
    {"FloorWhileItMoves", By::both,
     [](Script& s) {
       s.history.initial = {{"a", "0"}, {"b", "0"}};
       s.erase({1, 20}, "b", 1);
       s.insert({2, 21}, "c", "1", 2);
       s.scan({3, 22}, "d", "e", {{"a", "0"}}, {.from_floor = true});
       s.floor({4, 23}, "d", "c", "1");
     }},
    {"BatchesWithConditions", By::both,
     [](Script& s) {
       WriteBatch first;
       first.put("a", "1").put("b", "1").only_if_absent("a");
       s.batch({1, 2}, first, 3);
       s.batch({3, 4}, first, 0).failed_condition = 0;
       WriteBatch second;
       second.erase("a").put("b", "2").only_if_version("a", 3).only_if_value("b", "1");
       s.batch({5, 6}, second, 4).conditions[0].value = "1";
       s.scan({7, 8}, "", "", {{"b", "2"}});
     }},
    {"LaterWriteOfABatchWins", By::both,
     [](Script& s) {
       WriteBatch batch;
       batch.put("a", "1").erase("a").put("b", "1").put("b", "2");
       s.batch({1, 2}, batch, 1);
       s.scan({3, 4}, "", "", {{"b", "2"}});
     }},
    {"SpuriousFailureOfAVersion", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       WriteBatch batch;
       batch.put("a", "2").only_if_version("a", 1);
       s.batch({3, 4}, batch, 0).failed_condition = 0;
     }},
    {"RefusedWritesDidNothing", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       Operation& write = s.put({3, 4}, "a", "2", 0);
       write.applied = false;
       write.refused = true;
       s.get({5, 6}, "a", "1", 1);
     }},
    {"SnapshotStays", By::both,
     [](Script& s) {
       s.put({1, 2}, "a", "1", 1);
       s.snapshot({3, 4}, 1);
       s.put({5, 6}, "a", "2", 2, true);
       Operation& read = s.get({7, 8}, "a", "1");
       read.read_version = 1;
       read.pinned = true;
     }},
};

class CheckerAccepts : public ::testing::TestWithParam<Case> {};

TEST_P(CheckerAccepts, RightHistory) {
  Script script;
  GetParam().write(script);
  EXPECT_EQ(replay_versions(script.history).value_or(""), "");
  const CheckResult result = check_linearizable(script.history);
  EXPECT_EQ(result.answer, Answer::yes) << result.why;
}

INSTANTIATE_TEST_SUITE_P(All, CheckerAccepts, ::testing::ValuesIn(kRight), case_name);

TEST(Checker, GivesUpAtItsLimitWithoutAnAnswer) {
  Script script;
  for (std::uint64_t i = 0; i < 8; ++i) {
    script.put({1 + i, 100 + i}, "a", std::to_string(i).c_str(), i + 1, i > 0);
  }
  EXPECT_EQ(check_linearizable(script.history, 5).answer, Answer::unknown);
  EXPECT_EQ(check_linearizable(script.history).answer, Answer::yes);
}

TEST(Checker, ExplainsWhatItRefuses) {
  Script script;
  script.put({1, 2}, "key", "old", 1);
  script.put({3, 4}, "key", "new", 2, true);
  script.get({5, 6}, "key", "old");
  const std::string by_versions = replay_versions(script.history).value_or("");
  EXPECT_NE(by_versions.find("get \"key\" -> \"key\"=\"old\""), std::string::npos) << by_versions;
  EXPECT_NE(by_versions.find("put \"key\"=\"new\""), std::string::npos) << by_versions;
  const std::string by_search = check_linearizable(script.history).why;
  EXPECT_NE(by_search.find("get \"key\" -> \"key\"=\"old\""), std::string::npos) << by_search;
}

}  // namespace
}  // namespace espalier::test
