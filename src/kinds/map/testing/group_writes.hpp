// SPDX-License-Identifier: Apache-2.0
// For tests: writes that go in groups, and what must hold of their versions, as checks for good
// maps and broken ones.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {

/// One thread of a map with 32 requests in flight.
class GroupUser final : private Handler {
 public:
  static constexpr std::uint32_t kInFlight = 32;

  GroupUser(StoreCore& store, MapCore& map, std::uint32_t index)
      : context_(store, std::move(*store.epochs.join()), index),
        executor_(context_, map, kInFlight, [&map](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(map.base, queue, true, &kNever);
        }) {}

  struct Answer {
    Completion completion;
    std::string value;
  };
  /// Runs all of them, and returns the answers in the order of the requests.
  const std::vector<Answer>& run(std::vector<Request> requests) {
    answers_.assign(requests.size(), {});
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].tag = i;
    executor_.submit(requests, *this);
    executor_.drain();
    return answers_;
  }
  /// Writes one key again and again, so that what follows goes together.
  void stay_at(const std::string& key) {
    for (int i = 0; i < 8; ++i) run_alone(TreeFixture::request(Op::put, key, "v"));
  }
  /// Runs one of them alone, as a caller does who waits for it.
  const Answer& run_alone(const Request& request) {
    answers_.assign(1, {});
    executor_.run({&request, this, nullptr, {}, {}});
    return answers_.front();
  }

 private:
  void done(const Completion& done) override {
    answers_[done.tag] = {done, std::string(done.value)};
    answers_[done.tag].completion.value = {};
  }
  bool items(std::uint64_t, std::span<const Item>) override { return true; }

  static constexpr bool kNever = false;
  ThreadContext context_;
  HostExecutor<HostAccess> executor_;
  std::vector<Answer> answers_;
};

/// Whether of two puts of one key, in one group, each has a version of its own, and the key has the
/// value of the newer one.
inline bool each_put_has_its_version() {
  TreeFixture tree({.node_bytes = 1024});
  tree.fill(200);
  GroupUser user(tree.store(), tree.map(), 1);
  const std::vector<Request> puts{TreeFixture::request(Op::put, "key00050", "first"),
                                  TreeFixture::request(Op::put, "key00150", "other"),
                                  TreeFixture::request(Op::put, "key00050", "second")};
  user.stay_at("key00050");
  const auto answers = user.run(puts);
  const std::uint64_t first = answers[0].completion.version;
  const std::uint64_t second = answers[2].completion.version;
  const auto found = user.run({TreeFixture::request(Op::get, "key00050")});
  const std::string newest = first > second ? "first" : "second";
  return first != second && found.front().value == newest && audit(tree.map()).empty();
}

#if defined(ESPALIER_PLANTED_BUGS)
/// Whether the writes of a group have their version from under the locks: one that comes before
/// these are taken has an older one.
inline bool groups_take_versions_under_locks() {
  TreeFixture tree({.node_bytes = 1024});
  tree.fill(200);
  GroupUser user(tree.store(), tree.map(), 1);
  user.stay_at("key00050");
  std::uint64_t theirs = 0;
  on_moment = [&](Moment moment) {
    if (moment == Moment::before_lock && theirs == 0) {
      // Without a wait for its release, which an older version may hold back.
      tree.write_all({{"key00050", "theirs"}});
      theirs = tree.map().clock.taken();
    }
  };
  const auto answers = user.run({TreeFixture::request(Op::put, "key00050", "mine"),
                                 TreeFixture::request(Op::put, "key00150", "other")});
  on_moment = nullptr;
  const std::uint64_t mine = answers[0].completion.version;
  const auto found = user.run({TreeFixture::request(Op::get, "key00050")});
  return theirs != 0 && mine > theirs && found.front().value == "mine";
}
#endif

}  // namespace espalier::tree
