// SPDX-License-Identifier: Apache-2.0
// For tests: requests that run in groups.
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
  /// Runs all of them; returns the answers in the order of the requests.
  const std::vector<Answer>& run(std::vector<Request> requests) {
    answers_.assign(requests.size(), {});
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].tag = i;
    executor_.submit(requests, *this);
    executor_.drain();
    return answers_;
  }
  /// Runs one request alone, as a caller that waits for it does.
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

}  // namespace espalier::tree
