// SPDX-License-Identifier: Apache-2.0
// What becomes of requests that a scheduler has posted to its host.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "engine/call.hpp"
#include "engine/host_link.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/offload/served_map.hpp"

namespace espalier::offload {
namespace {

/// A host that answers what it is told to.
class ManualHost final : public HostLink {
 public:
  std::unique_ptr<WorkedOn> serve(const ExecutorKind&, std::uint32_t) override { return nullptr; }
  void post(Request& request, const wire::CallMessage&, AnswerPace) override {
    posted.push_back(&request);
  }
  void cancel(const Request& request) override { cancelled.push_back(&request); }
  bool turn(PostedRequests& requests) override {
    const bool moved = !answers.empty();
    for (const HostAnswer& answer : std::exchange(answers, {})) {
      Request& first = *posted.front();
      if (answer.last) posted.erase(posted.begin());
      requests.answered(first, answer);
    }
    return moved;
  }
  bool waits() const override { return !posted.empty(); }
  std::uint64_t sleep_limit_ns() const override {
    return std::numeric_limits<std::uint64_t>::max();
  }
  void answer(std::uint64_t version, bool last) {
    HostAnswer made;
    made.header.version = version;
    made.last = last;
    answers.push_back(made);
  }

  std::vector<Request*> posted;
  std::vector<const Request*> cancelled;
  std::vector<HostAnswer> answers;
};

std::vector<std::uint64_t> given_back;
constexpr std::uint64_t kTooMuch = 1'000;  // for which there is no memory

Next ask_the_host(Call& call) {
  if (call.host_answer() == nullptr) return call.post({});
  if (call.host_answer()->header.version == kTooMuch) throw std::bad_alloc();
  if (!call.host_answer()->last) return call.more_of_answer();
  return call.answer(call.host_answer()->header);
}
void give_back(Call& call) { given_back.push_back(call.host_answer()->header.version); }

constexpr auto kAsk = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
constexpr Offload kOwnCalls[] = {{{.id = kAsk,
                                   .name = "ask",
                                   .format = "",
                                   .summary = "has the host answer",
                                   .right = Right::none,
                                   .limits = {}},
                                  {.step = ask_the_host, .client_gone = give_back}}};

class PostedRequestsFixture : public ::testing::Test {
 protected:
  PostedRequestsFixture() { given_back.clear(); }
  void ask() {
    client_->post(message_of(request_of(kAsk)));
    client_->ring();
    serving_.turns(3);
    ASSERT_EQ(host_.posted.size(), 1u);
  }
  static FixtureOptions with(HostLink& host) {
    FixtureOptions options;
    options.host = &host;
    return options;
  }

  ManualHost host_;
  SchedulerFixture serving_{with(host_), std::uint64_t{64} << 20, kOwnCalls};
  SchedulerFixture::Client& client_ = serving_.connect();
};

TEST_F(PostedRequestsFixture, AreAnsweredAsTheHostDoes) {
  ask();
  host_.answer(1, false);
  host_.answer(5, true);
  const Response response = serving_.wait(client_);
  EXPECT_TRUE(response.answers());
  EXPECT_EQ(response.header.version, 5u);
  EXPECT_TRUE(given_back.empty());
}

// What the host has opened for a client that does not hear of it would stay open.
TEST_F(PostedRequestsFixture, GiveBackWhatTheHostKeepsForAClientThatIsGone) {
  ask();
  serving_.disconnect(client_);
  serving_.turns(3);
  EXPECT_FALSE(client_.ended);  // its request is still with the host
  host_.answer(1, false);
  serving_.turns(3);
  EXPECT_EQ(host_.cancelled.size(), 1u);
  EXPECT_TRUE(given_back.empty());
  host_.answer(5, true);
  serving_.turns(3);
  EXPECT_EQ(given_back, std::vector<std::uint64_t>{5});
  EXPECT_TRUE(client_.ended);
}

// The host is told that no more is wanted, and only its last piece ends the request.
TEST_F(PostedRequestsFixture, WhatThereIsNoMemoryForEndsWhenTheHostHasEnded) {
  ask();
  host_.answer(kTooMuch, false);
  serving_.turns(3);
  EXPECT_EQ(host_.cancelled.size(), 1u);
  host_.answer(1, false);
  serving_.turns(3);
  host_.answer(5, true);
  Response response = serving_.wait(client_);
  EXPECT_EQ(static_cast<Code>(response.header.code), Code::out_of_memory);
  ask();
  host_.answer(kTooMuch, true);
  response = serving_.wait(client_);
  EXPECT_EQ(static_cast<Code>(response.header.code), Code::out_of_memory);
  EXPECT_EQ(host_.cancelled.size(), 2u) << "twice for the first, none for the second";
}

}  // namespace
}  // namespace espalier::offload
