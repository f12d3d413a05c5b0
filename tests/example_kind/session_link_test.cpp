// SPDX-License-Identifier: Apache-2.0
// A link to a peer by hand: each of its verbs, each way in which a post can end, and what becomes
// of the link by that.
#include "channel/peer/session_link.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "node/node.hpp"
#include "tests/example_kind/cells.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::example {
namespace {

using channel::PeerLink;
using fabric::PostEnd;
using fabric::Status;
using fabric::WorkRequest;

constexpr std::uint64_t kLinkTimeoutNs =
    120'000'000'000;  // only a machine that hangs takes so long

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

class SessionLinks : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    config_ = test::node_config(folder_);
    const std::string fabric = (folder_ / "fabric").string();
    config_.node.fabric =
        std::string(GetParam()) == "shm" ? "shm:" + fabric : "roce://127.0.0.1:0/1";
    start();
    peer::PeerOptions options;
    options.address = *fabric::parse(config_.node.fabric);
    options.silence_ns = kLinkTimeoutNs;
    options.pause_ns = 1'000'000;
    options.pause_max_ns = 5'000'000;
    link_ = std::make_unique<peer::SessionLink>(options, [this] { ++wakes_; });
  }
  void start() {
    node::NodeOptions options;
    options.own_kinds = {&cells_kind(), 1};
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
  [[nodiscard]] bool await_up() {
    return poll_until([this] { return link_->session() != 0; });
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
  RecordedEnds ends_;
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
  word(5) = 50;  // which no post changes: a READ that is asked for once more may see later ones
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
  EXPECT_TRUE(link_->post(link_->session(), longest, 0));
  EXPECT_TRUE(link_->post(link_->session(), read(words_[0], 0), 1));
  const auto all = ends(2);
  std::map<std::uint64_t, PostEnd> how;
  for (const auto& end : all) how[end.owner] = end.how;
  EXPECT_EQ(how, (std::map<std::uint64_t, PostEnd>{{0, PostEnd::not_sent}, {1, PostEnd::done}}));
}

TEST_P(SessionLinks, WithoutThePeerNothingLeaves) {
  ASSERT_TRUE(await_up());
  node_.reset();
  ASSERT_TRUE(poll_until([this] { return link_->session() == 0; }));
  channel::PeerAnswer answer;
  const wire::CallMessage message{.offload = cell_calls::Grant::kCall.id};
  EXPECT_TRUE(link_->post(PeerLink::kAnySession, write(words_[0], 0), 5));
  EXPECT_TRUE(link_->call(PeerLink::kAnySession, message, answer, 6));
  const auto all = ends(2);
  ASSERT_EQ(all.size(), 2u);
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

INSTANTIATE_TEST_SUITE_P(Ways, SessionLinks, ::testing::Values("shm", "roce"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace espalier::example
