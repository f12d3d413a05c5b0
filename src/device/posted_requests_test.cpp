// SPDX-License-Identifier: Apache-2.0
// What becomes of requests that a scheduler has posted to its host.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "channel/device/host_posts.hpp"
#include "engine/call.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::FixtureOptions;
using offload::message_of;
using offload::Next;
using offload::Offload;
using offload::Request;
using offload::request_of;
using offload::Response;
using offload::Right;
using offload::SchedulerFixture;

/// A host with scripted answers.
class ManualHost final : public HostLink {
 public:
  void post(Request& request, const wire::CallMessage&, AnswerPace) override {
    posted.push_back(&request);
  }
  void cancel(const Request& request) noexcept override { cancelled.push_back(&request); }
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
  std::uint64_t sleep_limit_ns() const override { return sleeps_ns; }
  bool forwards() override { return false; }
  std::uint64_t connection() const override { return 1; }
  void notify(std::uint64_t, const wire::CallMessage&) override {}
  void answer(std::uint64_t version, bool last) {
    HostAnswer made;
    made.header.version = version;
    made.last = last;
    answers.push_back(made);
  }

  std::vector<Request*> posted;
  std::vector<const Request*> cancelled;
  std::vector<HostAnswer> answers;
  std::uint64_t sleeps_ns = std::numeric_limits<std::uint64_t>::max();
};

std::vector<std::uint64_t> given_back;
constexpr std::uint64_t kTooMuch = 1'000;  // for which there is no memory

Next ask_the_host(Call& call) {
  if (host_answer(call) == nullptr) return post_to_host(call, {});
  if (host_answer(call)->header.version == kTooMuch) throw std::bad_alloc();
  if (!host_answer(call)->last) return call.handed_over();
  return call.answer(host_answer(call)->header);
}
void give_back(Call& call) { given_back.push_back(host_answer(call)->header.version); }

constexpr PostHandler kGivesBack{.client_gone = give_back};
constexpr auto kAsk = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
constexpr Offload kOwnCalls[] = {
    {{.id = kAsk,
      .name = "ask",
      .format = "",
      .summary = "has the host answer",
      .right = Right::none,
      .limits = {}},
     {.step = ask_the_host, .executor = &kHostPosts, .for_executor = &kGivesBack}}};

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
    options.make_parts = [&host](offload::TypedSlots<offload::NodePart>& parts) {
      parts.make<NodeHost>().links.push_back(&host);
    };
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

// The device cancels the request at the host, and only its last piece ends the request.
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

// A worker that sleeps must look at its link in time, to keep leases.
TEST_F(PostedRequestsFixture, TheSchedulerSleepsNoLongerThanTheLinkMay) {
  EXPECT_EQ(serving_.scheduler().sleep_limit_ns(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(serving_.scheduler().has_news());
  host_.sleeps_ns = 5;
  EXPECT_EQ(serving_.scheduler().sleep_limit_ns(), 5u);
  ask();
  EXPECT_TRUE(serving_.scheduler().has_news()) << "nobody wakes it for the host's answer";
  host_.answer(1, true);
  static_cast<void>(serving_.wait(client_));
}

}  // namespace
}  // namespace espalier::device
