// SPDX-License-Identifier: Apache-2.0
// A link to a peer, step by step: each of its verbs, each completion of a post, and the effect on
// the link.
#include "channel/peer/session_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "channel/rings/node_address.hpp"
#include "node/node.hpp"
#include "tests/example_kind/cells.hpp"
#include "tests/example_kind/waits.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::example {
namespace {

using channel::PeerLink;
using fabric::PostEnd;
using fabric::Status;
using fabric::WorkRequest;

constexpr std::uint64_t kLinkTimeoutNs =
    120'000'000'000;  // only a machine that hangs takes so long
// By the link's clock.
constexpr std::uint64_t kSilenceNs = 3'000'000'000;
constexpr std::uint64_t kAnswerNs = 30'000'000'000;
constexpr std::uint64_t kPauseNs = 1'000'000;

struct RecordedEnds final : channel::PeerEnds {
  struct End {
    std::uint64_t owner;
    PostEnd how;
    Status status;
    friend bool operator==(const End&, const End&) = default;
  };
  void ended(std::uint64_t owner, PostEnd how, Status status) override {
    all.push_back({owner, how, status});
  }
  std::vector<End> all;
};

bool is_of_noop(const RecordedEnds::End& end) { return end.owner == 8; }

class SessionLinks : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    config_ = test::node_config(folder_);
    const std::string fabric = (folder_ / "fabric").string();
    config_.node.fabric =
        std::string(GetParam()) == "shm" ? "shm:" + fabric : "roce://127.0.0.1:0/1";
    start();
    make_link();
  }
  void make_link(std::shared_ptr<const peer::PeerFabric> by = nullptr) {
    peer::PeerOptions options;
    options.address = *fabric::parse(config_.node.fabric);
    options.silence_ns = kSilenceNs;
    options.answer_ns = kAnswerNs;
    options.pause_ns = options.pause_max_ns = kPauseNs;
    options.budget = &budget_;
    options.now_ns = [this] { return now_ns_.load(); };
    options.fabric = std::move(by);
    link_ = std::make_unique<peer::SessionLink>(options, [this] { ++wakes_; });
  }
  /// Makes the link again: it gets no pair for memory while `no_memory_` is set. Each try takes an
  /// endpoint; the first one is for the rings.
  void make_link_without_memory() {
    no_memory_ = Code::out_of_memory;
    auto by = std::make_shared<peer::PeerFabric>();
    by->endpoint = [this]() -> Result<fabric::Connecting> {
      if (++endpoints_ != 1 && no_memory_) return fail(*no_memory_);
      fabric::FabricAddress address = *fabric::parse(config_.node.fabric);
      address.server_user = client::node_user_of_process();
      return fabric::open_for_connecting(address, fabric::RegionTable::create().value());
    };
    by->aside = [](const std::function<void()>& work) { work(); };
    by->now_ns = base::monotonic_ns;
    make_link(std::move(by));
  }
  /// Whether the link has tried again to open a pair for memory, with the result handled.
  [[nodiscard]] bool asks_for_memory() {
    const int before = endpoints_;
    const bool asked = poll_until([&] {
      now_ns_ += kPauseNs;
      return endpoints_ != before;
    });
    link_->poll(ends_);
    return asked;
  }
  void TearDown() override { go_on(); }
  /// Releases a blocked worker, and all requests that keep their places.
  void go_on() {
    if (!node_) return;
    waits().may_go = 1'000'000;
    waits().goes_on = true;
    waits().goes_on.notify_all();
  }
  void start() {
    node::NodeOptions options;
    static const offload::Kind kinds[] = {cells_kind(), waits_kind()};
    options.own_kinds = kinds;
    auto node = node::Node::start(config_, options);
    ASSERT_TRUE(node) << message(node.error());
    node_ = std::move(*node);
    config_.node.fabric = node_->fabric_addresses().front();
  }
  template <class Condition>
  bool poll_until(const Condition& condition) {
    for (const base::Stopwatch watch; !condition();) {
      if (watch.elapsed_ns() > kLinkTimeoutNs) return false;
      link_->ring();
      if (!link_->poll(ends_)) std::this_thread::yield();
    }
    return true;
  }
  /// Between two tries the link makes a pause, by its clock.
  [[nodiscard]] bool await_up() {
    return poll_until([this] {
      if (link_->session() == 0) now_ns_ += kPauseNs;
      return link_->session() != 0;
    });
  }
  [[nodiscard]] NodeWaits& waits() const { return node_->services().part<NodeWaits>(); }
  void ask(const wire::CallMessage& message, channel::PeerAnswer& answer, std::uint64_t owner) {
    ASSERT_TRUE(link_->call(link_->session(), message, answer, owner));
    link_->ring();
  }
  /// A call that keeps its place until the test releases it.
  void ask_held(channel::PeerAnswer& answer, std::uint64_t owner, std::uint8_t hops = 0) {
    const std::uint32_t fields[] = {1, 0};
    const std::string_view payload(reinterpret_cast<const char*>(fields), sizeof fields);
    ask({.offload = wait_calls::Chain::kCall.id, .hops = hops, .payload = payload}, answer, owner);
  }
  /// Has the only worker stand still.
  void stop_worker(channel::PeerAnswer& answer, std::uint64_t owner) {
    ask({.offload = wait_calls::Stop::kCall.id}, answer, owner);
    ASSERT_TRUE(poll_until([this] { return waits().stopped.load(); }));
  }
  /// Waits for so many ends more.
  std::vector<RecordedEnds::End> ends(std::size_t count) {
    EXPECT_TRUE(poll_until([&] { return ends_.all.size() >= count; }));
    return std::exchange(ends_.all, {});
  }
  /// What the session is granted, in `granted_`.
  void ask_for_grant() {
    std::array<std::byte, 64> into{};
    channel::PeerAnswer answer;
    answer.into = into;
    const wire::CallMessage message{.offload = cell_calls::Grant::kCall.id};
    ASSERT_TRUE(link_->call(link_->session(), message, answer, 1000));
    const auto ended = ends(1);
    ASSERT_EQ(ended.size(), 1u);
    ASSERT_EQ(ended[0], (RecordedEnds::End{1000, PostEnd::done, Status::success}));
    const auto granted = wire::read_reply<cell_calls::Granted>(
        answer.header, {reinterpret_cast<const char*>(into.data()), answer.payload_bytes});
    ASSERT_TRUE(granted);
    granted_ = *granted;
  }
  [[nodiscard]] std::uint64_t at(std::uint32_t word) const { return granted_.base + word * 8; }
  [[nodiscard]] std::atomic_ref<std::uint64_t> word(std::uint32_t number) const {
    return node_->services().part<NodeCells>().cells->word(number);
  }
  [[nodiscard]] WorkRequest read(std::uint64_t& into, std::uint32_t number) const {
    return WorkRequest::read(0, std::as_writable_bytes(std::span(&into, 1)), granted_.key,
                             at(number));
  }
  [[nodiscard]] WorkRequest write(const std::uint64_t& from, std::uint32_t number) const {
    return WorkRequest::write(0, std::as_bytes(std::span(&from, 1)), granted_.key, at(number));
  }

  const base::TemporaryFolder folder_;
  node::Config config_;
  std::unique_ptr<node::Node> node_;
  std::atomic<int> wakes_{0};
  std::atomic<std::uint64_t> now_ns_{1};  // of the link; advanced by the test only
  rings::MessageBudget budget_{1 << 20};
  std::array<channel::PeerAnswer, 200> answers_{};  // outlive the link
  RecordedEnds ends_;
  std::optional<Code> no_memory_;
  int endpoints_ = 0;
  cell_calls::Granted granted_;
  std::array<std::uint64_t, 16> words_{};  // what posts read and write; outlives the link
  std::unique_ptr<peer::SessionLink> link_;
};

TEST_P(SessionLinks, EachVerbDoesWhatItSays) {
  ASSERT_TRUE(await_up());
  EXPECT_GE(wakes_, 1);
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  word(1) = 10;
  word(2) = 20;
  word(5) = 50;  // no post changes it: a retransmitted READ may return later words
  words_[0] = 7;
  const std::uint64_t session = link_->session();
  std::byte* const old = reinterpret_cast<std::byte*>(words_.data());
  const auto key = granted_.key;
  EXPECT_TRUE(link_->post(session, write(words_[0], 0), 0));
  EXPECT_TRUE(link_->post(session, read(words_[1], 5), 1));
  EXPECT_TRUE(link_->post(session, WorkRequest::fetch_add(0, key, at(1), 5, old + 16), 2));
  EXPECT_TRUE(link_->post(session, WorkRequest::compare_swap(0, key, at(2), 20, 21, old + 24), 3));
  EXPECT_TRUE(link_->post(session, WorkRequest::compare_swap(0, key, at(2), 20, 22, old + 32), 4));
  EXPECT_EQ(word(0), 0u);  // nothing leaves before the doorbell
  const auto all = ends(5);
  ASSERT_EQ(all.size(), 5u);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i], (RecordedEnds::End{i, PostEnd::done, Status::success}));
  }
  EXPECT_EQ(word(0), 7u);
  EXPECT_EQ(words_[1], 50u);
  EXPECT_EQ(words_[2], 10u);
  EXPECT_EQ(word(1), 15u);
  EXPECT_EQ(words_[3], 20u);
  EXPECT_EQ(words_[4], 21u);
  EXPECT_EQ(word(2), 21u);
  EXPECT_EQ(link_->counts().posts, 5u);
  EXPECT_EQ(link_->counts().doorbells, 1u);
  EXPECT_EQ(link_->counts().completions, 1u);
  EXPECT_EQ(link_->counts().calls, 1u);
  EXPECT_EQ(link_->counts().failures, 0u);
  EXPECT_EQ(link_->counts().calls_failed, 0u);
  EXPECT_FALSE(link_->waits());
}

TEST_P(SessionLinks, APostThatIsRefusedEndsTheSessionForAllBehindIt) {
  ASSERT_TRUE(await_up());
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  const std::uint64_t session = link_->session();
  words_.fill(3);
  EXPECT_TRUE(link_->post(session, write(words_[0], 0), 0));
  WorkRequest wrong = read(words_[1], 1);
  wrong.key ^= 0x00100000;
  EXPECT_TRUE(link_->post(session, wrong, 1));
  EXPECT_TRUE(link_->post(session, write(words_[2], 2), 2));
  const auto all = ends(3);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], (RecordedEnds::End{0, PostEnd::done, Status::success}));
  EXPECT_EQ(all[1], (RecordedEnds::End{1, PostEnd::refused, Status::remote_access}));
  EXPECT_EQ(all[2].how, PostEnd::unknown);
  EXPECT_EQ(link_->counts().failures, 2u);
  EXPECT_EQ(link_->counts().calls_failed, 0u);
  // It is made again, and what means the session before does not leave.
  ASSERT_TRUE(await_up());
  EXPECT_EQ(link_->session(), session + 1);
  EXPECT_TRUE(link_->post(session, write(words_[3], 3), 3));
  EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{3, PostEnd::not_sent, Status::flushed}));
  EXPECT_EQ(word(3), 0u);
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(link_->post(link_->session(), write(words_[4], 4), 4));
  EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{4, PostEnd::done, Status::success}));
  EXPECT_EQ(word(4), 3u);
}

TEST_P(SessionLinks, WhatNoPacketCarriesNeverLeaves) {
  ASSERT_TRUE(await_up());
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  WorkRequest longest = read(words_[0], 0);
  longest.bytes = ~std::uint32_t{0};
  const std::uint64_t session = link_->session();
  EXPECT_TRUE(link_->post(session, longest, 0));
  EXPECT_TRUE(link_->post(session, read(words_[0], 0), 1));
  EXPECT_TRUE(link_->post(session, longest, 2));
  EXPECT_TRUE(link_->post(session + 1, read(words_[0], 0), 3));
  EXPECT_TRUE(link_->post(session, read(words_[0], 0), 4));
  const auto all = ends(5);  // in the order of posts, whether they have left or not
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0], (RecordedEnds::End{0, PostEnd::not_sent, Status::local_length}));
  EXPECT_EQ(all[1], (RecordedEnds::End{1, PostEnd::done, Status::success}));
  EXPECT_EQ(all[2], (RecordedEnds::End{2, PostEnd::not_sent, Status::local_length}));
  EXPECT_EQ(all[3], (RecordedEnds::End{3, PostEnd::not_sent, Status::flushed}));
  EXPECT_EQ(all[4], (RecordedEnds::End{4, PostEnd::done, Status::success}));
}

// Each time that the peer is silent for long, it is probed and answers.
TEST_P(SessionLinks, ASlowCallDoesNotEndTheSessionOfAPeerThatIsThere) {
  ASSERT_TRUE(await_up());
  const std::uint64_t session = link_->session();
  ask_held(answers_[0], 7);
  ASSERT_FALSE(HasFatalFailure());
  for (int i = 0; i < 8; ++i) {  // in all for longer than it may be silent
    now_ns_ += kSilenceNs / 2;
    for (const base::Stopwatch watch; !link_->poll(ends_);) {  // until it has answered
      ASSERT_EQ(link_->session(), session);
      ASSERT_LT(watch.elapsed_ns(), kLinkTimeoutNs);
      std::this_thread::yield();
    }
    ASSERT_EQ(link_->session(), session);
  }
  EXPECT_TRUE(ends_.all.empty());
  go_on();
  EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{7, PostEnd::done, Status::success}));
  EXPECT_EQ(link_->session(), session);
}

TEST_P(SessionLinks, ACallThatIsNeverAnsweredEndsThoughOthersAre) {
  ASSERT_TRUE(await_up());
  const std::uint64_t session = link_->session();
  ask_held(answers_[0], 7);
  for (int i = 0; i < 40 && ends_.all.empty(); ++i) {
    ask({.offload = wire::OffloadId::noop}, answers_[1], 8);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(poll_until([&] { return std::erase_if(ends_.all, is_of_noop) != 0; }));
    now_ns_ += kSilenceNs / 2;
  }
  EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{7, PostEnd::unknown, Status::retry_exceeded}));
  EXPECT_EQ(link_->session(), session);
  EXPECT_FALSE(link_->waits());
  // The peer gets the cancel, and stops the call.
  ASSERT_TRUE(poll_until([this] { return waits().cancelled == 1; }));
  EXPECT_EQ(waits().held, 0u);
  // Its answer, when that comes at last, is taken for no other's.
  for (int i = 0; i < 300; ++i) {
    ask({.offload = wire::OffloadId::noop}, answers_[1], 9);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(ends(1).at(0), (RecordedEnds::End{9, PostEnd::done, Status::success}));
  }
  EXPECT_EQ(link_->session(), session);
}

// They leave before the worker sleeps.
TEST_P(SessionLinks, ThePeerHearsOfAllCallsThatAreGivenUpThoughNobodyPolls) {
  ASSERT_TRUE(await_up());
  constexpr std::uint32_t kCalls = 6;
  for (std::uint32_t i = 0; i < kCalls; ++i) ask_held(answers_[i], i);
  ASSERT_TRUE(poll_until([this] { return waits().held == kCalls; }));
  for (int i = 0; i < 40 && ends_.all.empty(); ++i) {
    ask({.offload = wire::OffloadId::noop}, answers_[kCalls], 8);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(poll_until([&] { return std::erase_if(ends_.all, is_of_noop) != 0; }));
    now_ns_ += kSilenceNs / 2;
  }
  EXPECT_EQ(ends(kCalls).size(), kCalls);
  EXPECT_FALSE(link_->waits());
  for (const base::Stopwatch watch; waits().cancelled != kCalls; std::this_thread::yield()) {
    ASSERT_LT(watch.elapsed_ns(), kLinkTimeoutNs);
  }
  // Their places are good for others.
  for (int i = 0; i < 300; ++i) {
    ask({.offload = wire::OffloadId::noop}, answers_[kCalls], 9);
    ASSERT_EQ(ends(1).at(0), (RecordedEnds::End{9, PostEnd::done, Status::success}));
  }
}

// Its memory is there for as long as the process is, over some transports.
TEST_P(SessionLinks, APeerThatStandsStillIsGivenUpWhateverItsMemoryDoes) {
  ASSERT_TRUE(await_up());
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  stop_worker(answers_[0], 7);
  ASSERT_FALSE(HasFatalFailure());
  const std::uint64_t session = link_->session();
  for (int i = 0; i < 10 && link_->session() == session; ++i) {
    EXPECT_TRUE(link_->post(session, write(words_[0], 0), 8));
    for (int polls = 0; polls < 100; ++polls) {
      link_->ring();
      link_->poll(ends_);
    }
    now_ns_ += kSilenceNs / 2;
  }
  EXPECT_EQ(link_->session(), 0u);
  const auto end_of_call = std::ranges::find(ends_.all, 7u, &RecordedEnds::End::owner);
  ASSERT_NE(end_of_call, ends_.all.end());
  EXPECT_EQ(end_of_call->how, PostEnd::unknown);
}

// So what left by the session before has taken effect by then, or never will.
TEST_P(SessionLinks, ASessionBeginsWhenTheOneBeforeHasEndedAtThePeer) {
  ASSERT_TRUE(await_up());
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  const auto& keys = node_->services().part<NodeCells>().keys;
  ASSERT_EQ(keys, 1);
  const std::uint64_t session = link_->session();
  stop_worker(answers_[0], 7);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(poll_until([this] {
    now_ns_ += kSilenceNs / 2;
    return link_->session() == 0;
  }));
  now_ns_ += kPauseNs;
  const int wakes = wakes_;
  // The peer hears nothing, so this try is in vain.
  ASSERT_TRUE(poll_until([&] { return wakes_ > wakes; }));
  go_on();
  ASSERT_TRUE(await_up());
  EXPECT_EQ(keys, 0);
  EXPECT_EQ(link_->session(), session + 1);
}

TEST_P(SessionLinks, WhoeverSleepsIsWokenWhenItIsLostAndWhenItIsToBeOpened) {
  ASSERT_TRUE(await_up());
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(link_->sleep_limit_ns(), kNever);
  const int wakes = wakes_;
  node_.reset();
  for (const base::Stopwatch watch; wakes_ == wakes;) {  // it is not polled
    ASSERT_LT(watch.elapsed_ns(), kLinkTimeoutNs);
    std::this_thread::yield();
  }
  ASSERT_TRUE(poll_until([this] { return link_->session() == 0; }));
  EXPECT_EQ(link_->sleep_limit_ns(), kPauseNs);
  now_ns_ += kPauseNs;
  EXPECT_EQ(link_->sleep_limit_ns(), 0u);
  link_->poll(ends_);
  EXPECT_EQ(link_->sleep_limit_ns(), kNever);  // the opening thread wakes it
}

TEST_P(SessionLinks, WhatThePeerSendsIsGatheredWithinABudget) {
  ASSERT_TRUE(await_up());
  const auto fill = [this](std::uint32_t bytes) {
    const std::string_view payload(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    ask({.offload = wait_calls::Fill::kCall.id, .payload = payload}, answers_[0], 3);
    EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{3, PostEnd::done, Status::success}));
    return static_cast<Code>(answers_[0].header.code);
  };
  EXPECT_EQ(fill(16 << 10), Code::invalid);
  EXPECT_EQ(answers_[0].payload_bytes, 16u << 10);
  EXPECT_EQ(fill(2 << 20), Code::out_of_memory);
  EXPECT_EQ(answers_[0].payload_bytes, 0u);
  EXPECT_EQ(fill(0), Code::invalid);
  EXPECT_EQ(budget_.used(), 0u);
}

// None of them blocks calls with more hops, here or at the peer.
TEST_P(SessionLinks, CallsOfEachNumberOfHopsHaveRoomOfTheirOwn) {
  ASSERT_TRUE(await_up());
  constexpr std::uint32_t kMost = peer::SessionLink::kCallsOfHopsMax;
  for (std::uint32_t i = 0; i < kMost; ++i) {
    ask_held(answers_[i], i, 1);
    ASSERT_FALSE(HasFatalFailure());
  }
  const wire::CallMessage once{.offload = wire::OffloadId::noop, .hops = 1};
  EXPECT_FALSE(link_->call(link_->session(), once, answers_[kMost], kMost));
  ask({.offload = wire::OffloadId::noop, .hops = 2}, answers_[kMost], kMost);
  EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{kMost, PostEnd::done, Status::success}));
  go_on();
  EXPECT_EQ(ends(kMost).size(), kMost);
}

TEST_P(SessionLinks, WithoutThePeerNothingLeaves) {
  ASSERT_TRUE(await_up());
  node_.reset();
  ASSERT_TRUE(poll_until([this] { return link_->session() == 0; }));
  channel::PeerAnswer answer;
  const wire::CallMessage message{.offload = cell_calls::Grant::kCall.id};
  EXPECT_TRUE(link_->post(PeerLink::kAnySession, write(words_[0], 0), 5));
  EXPECT_TRUE(link_->call(PeerLink::kAnySession, message, answer, 6));
  auto all = ends(2);  // of which neither waits for the other: only posts on memory have an order
  ASSERT_EQ(all.size(), 2u);
  std::ranges::sort(all, {}, &RecordedEnds::End::owner);
  EXPECT_EQ(all[0], (RecordedEnds::End{5, PostEnd::not_sent, Status::flushed}));
  EXPECT_EQ(all[1], (RecordedEnds::End{6, PostEnd::not_sent, Status::flushed}));
  start();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(await_up());
}

// The queue holds so many, and takes the next when the first has ended.
TEST_P(SessionLinks, AFullQueueTakesNoMore) {
  ASSERT_TRUE(await_up());
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  const std::uint64_t session = link_->session();
  std::uint64_t posted = 0;
  while (link_->post(session, write(words_[0], 0), posted)) ++posted;
  EXPECT_EQ(posted, peer::SessionLink::kPostsMax);
  EXPECT_EQ(ends(posted).size(), posted);
  EXPECT_EQ(link_->counts().completions, 4u);
  EXPECT_TRUE(link_->post(session, write(words_[0], 0), 0));
  EXPECT_EQ(ends(1).size(), 1u);
}

// An atomic would stand without the WRITE before it.
TEST_P(SessionLinks, ABatchIsNotSplitByAPairThatComes) {
  make_link_without_memory();
  ASSERT_TRUE(await_up());
  ask_for_grant();
  ASSERT_FALSE(HasFatalFailure());
  const std::uint64_t session = link_->session();
  const WorkRequest atomic = WorkRequest::fetch_add(0, granted_.key, at(1), 5, nullptr);
  words_[0] = 7;
  for (std::uint32_t i = 0; i < peer::SessionLink::kPostsMax; ++i) {
    ASSERT_TRUE(link_->post(session, write(words_[0], 0), i));
  }
  ASSERT_FALSE(link_->post_behind(session, atomic, 1000)) << "there is room for more";
  no_memory_.reset();
  ASSERT_TRUE(asks_for_memory());
  EXPECT_EQ(ends(peer::SessionLink::kPostsMax).back().how, PostEnd::not_sent);
  EXPECT_TRUE(link_->post_behind(session, atomic, 1000));
  EXPECT_EQ(ends(1).at(0), (RecordedEnds::End{1000, PostEnd::not_sent, Status::flushed}));
  EXPECT_EQ(word(1), 0u);
  // The next batch has the pair.
  EXPECT_TRUE(link_->post(session, write(words_[0], 0), 1));
  EXPECT_TRUE(link_->post_behind(session, atomic, 2));
  const auto all = ends(2);
  EXPECT_EQ(all.at(0), (RecordedEnds::End{1, PostEnd::done, Status::success}));
  EXPECT_EQ(all.at(1), (RecordedEnds::End{2, PostEnd::done, Status::success}));
  EXPECT_EQ(word(0), 7u);
  EXPECT_EQ(word(1), 5u);
}

TEST_P(SessionLinks, APeerThatGivesNobodyAPairIsNotAskedAgain) {
  for (const Code refusal : {Code::unsupported, Code::corrupt, Code::system}) {
    endpoints_ = 0;
    make_link_without_memory();
    ASSERT_TRUE(await_up());
    ASSERT_TRUE(asks_for_memory());  // it had no room
    no_memory_ = refusal;
    ASSERT_TRUE(asks_for_memory());
    const int before = endpoints_;
    for (int i = 0; i < 20; ++i) {
      now_ns_ += kPauseNs;
      link_->poll(ends_);
    }
    if (refusal == Code::system) {  // it did not answer
      EXPECT_GT(endpoints_, before + 5);
    } else {
      EXPECT_EQ(endpoints_, before);
      EXPECT_EQ(link_->sleep_limit_ns(), std::numeric_limits<std::uint64_t>::max());
    }
    EXPECT_NE(link_->session(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionLinks, ::testing::Values("shm", "roce"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace espalier::example
