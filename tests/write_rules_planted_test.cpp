// SPDX-License-Identifier: Apache-2.0
// When a write may become visible, when it may be answered, and the order of its steps (DESIGN §2.1
// rules 3, 6, 7, 11): each rule is broken in turn, and a test detects it.
//
// A version is kept from being released by taking an earlier one and not finishing it.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "memory/planted_memory_bugs.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

using tree::Bug;
using tree::Moment;

constexpr int kManySteps = 200;  // a request needs about five

// A write in progress by another thread: versions after it cannot be released yet.
class OpenVersion {
 public:
  explicit OpenVersion(tree::MapCore& map) : map_(map), version_(map.clock.take()) {}
  void finish() {
    map_.clock.done(version_);
    finished_ = true;
  }
  ~OpenVersion() {
    if (!finished_) finish();
  }
  OpenVersion(const OpenVersion&) = delete;
  OpenVersion& operator=(const OpenVersion&) = delete;

 private:
  tree::MapCore& map_;
  std::uint64_t version_;
  bool finished_ = false;
};

TEST(WriteRules, VersionsAreReleasedInOrder) {
  expect_rejected(memory::Bug::release_out_of_order, []() -> Wrong {
    Scene scene;
    scene.a.put("k", "old");
    OpenVersion open(*scene.map);
    scene.write({{"k", "new"}});
    Wrong wrong = differs("before the release", "old", scene.b.get("k"));
    if (!wrong.empty()) return wrong;
    wrong = differs("items before the release", {"k=old"}, scene.b.scan(Op::scan, "", ""));
    if (!wrong.empty()) return wrong;
    open.finish();
    return differs("after the release", "new", scene.b.get("k"));
  });
}

// --- rule 6: answers from the newest state -------------------------------------------------------

// A request that changes nothing because of something unreleased: not answered before the release.
Wrong answers_only_after_the_release(const std::vector<Scene::Put>& before,
                                     const std::vector<Scene::Put>& unreleased, Op op,
                                     std::optional<Condition> condition = std::nullopt) {
  Scene scene;
  scene.write(before);
  OpenVersion open(*scene.map);
  scene.write(unreleased);
  if (condition) {
    scene.a.begin(op, "k", "mine", *condition);
  } else {
    scene.a.begin(op, "k", "mine");
  }
  if (scene.a.finish(kManySteps)) return "answered from what is not released";
  open.finish();
  if (!scene.a.finish(kManySteps)) return "not answered after the release";
  return scene.a.completion().applied ? "applied" : "";
}

TEST(WriteRules, AnInsertThatFindsTheKeyWaitsForItsRelease) {
  expect_rejected(Bug::answer_unreleased, [] {
    return answers_only_after_the_release({{"other", "v"}}, {{"k", "theirs"}}, Op::insert);
  });
}

TEST(WriteRules, AnUpdateThatFindsNoKeyWaitsForTheReleaseOfItsErasure) {
  expect_rejected(Bug::answer_unreleased, [] {
    return answers_only_after_the_release({{"k", "v"}}, {{"k", std::nullopt}}, Op::update);
  });
}

TEST(WriteRules, AConditionThatFailsWaitsForTheReleaseOfWhatItSaw) {
  expect_rejected(Bug::answer_unreleased, [] {
    Condition condition;
    condition.kind = ConditionKind::value;
    condition.value = "v";
    return answers_only_after_the_release({{"k", "v"}}, {{"k", "theirs"}}, Op::put, condition);
  });
}

// --- rule 7: acknowledgement ---------------------------------------------------------------------

TEST(WriteRules, AWriteIsAcknowledgedWhenItIsReleased) {
  expect_rejected(Bug::acknowledge_before_release, []() -> Wrong {
    for (const Op op : {Op::put, Op::insert, Op::erase}) {
      Scene scene;
      if (op == Op::erase) scene.a.put("k", "v");
      OpenVersion open(*scene.map);
      scene.a.begin(op, "k", "new");
      if (scene.a.finish(kManySteps)) return "acknowledged before the release";
      open.finish();
      if (!scene.a.finish(kManySteps) || !scene.a.completion().applied) return "not acknowledged";
    }
    return {};
  });
}

// --- rule 3: the payload before the version ------------------------------------------------------

TEST(WriteRules, AnEntryIsVisibleOnlyWithItsValue) {
  expect_rejected(Bug::version_before_payload, [] {
    Scene scene;
    scene.a.put("k", "old");
    std::string seen;
    const At before_payload(Moment::before_payload, [&] { seen = scene.b.get("k"); });
    scene.a.put("k", "new");
    return differs("while the entry is written", "old", seen);
  });
}

// --- rule 11: memory, locks, version -------------------------------------------------------------

TEST(WriteRules, TheVersionIsTakenUnderTheLock) {
  expect_rejected(Bug::version_before_lock, []() -> Wrong {
    Scene scene;
    scene.a.put("k", "first");
    std::uint64_t theirs = 0;
    const At before_lock(Moment::before_lock, [&] {
      theirs = scene.write({{"k", "theirs"}}).version;
    });
    if (!scene.a.put("k", "mine")) return "not answered";
    const std::uint64_t mine = scene.a.completion().version;
    if (mine == 0 || theirs == 0) return "not written";
    return differs("the write with the newest version", mine > theirs ? "mine" : "theirs",
                   scene.b.get("k"));
  });
}

// --- batches -------------------------------------------------------------------------------------

TEST(WriteRules, ABatchBecomesVisibleAsAWhole) {
  expect_rejected(Bug::batch_in_two_versions, []() -> Wrong {
    Scene scene;
    scene.write({{"a", "old"}, {"b", "old"}});
    std::optional<HeldHere> held;
    const At half(Moment::half_published, [&] { held.emplace(*scene.map, scene.context); });
    scene.write({{"a", "new"}, {"b", "new"}});
    if (!held) return "the batch was not written entry by entry";
    return differs("items as of the middle of a batch", {"a=old", "b=old"},
                   scene.b.scan(Op::scan, "", "", held->read()));
  });
}

TEST(WriteRules, ConditionsAreCheckedUnderTheLock) {
  expect_rejected(Bug::conditions_before_lock, []() -> Wrong {
    Scene scene;
    scene.a.put("other", "v");
    const At before_lock(Moment::before_lock, [&] { scene.b.put("k", "theirs"); });
    const tree::BatchOutcome outcome = scene.write({{"k", "mine"}}, "k");
    if (outcome.status == tree::WriteStatus::done) return "written although the key was there";
    return differs("what came first", "theirs", scene.b.get("k"));
  });
}

}  // namespace
}  // namespace espalier::test
