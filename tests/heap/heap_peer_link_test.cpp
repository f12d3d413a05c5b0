// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of a worker for its link to another node: each request
// completes in one of the defined ways, the link reconnects, and the worker continues.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "channel/peer/session_link.hpp"
#include "node/node.hpp"
#include "tests/heap/failing_heap.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

using fabric::PostEnd;

constexpr std::uint64_t kLinkTimeoutNs =
    120'000'000'000;  // only a machine that hangs takes so long

/// Counts, without the heap.
struct CountedEnds final : channel::PeerEnds {
  void ended(std::uint64_t, PostEnd how, fabric::Status) override {
    ++all;
    if (how == PostEnd::done) ++done;
  }
  std::uint32_t all = 0;
  std::uint32_t done = 0;
};

class HeapPeerLink : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    config_ = node_config(folder_);
    config_.node.fabric = std::string(GetParam()) == "shm" ? "shm:" + (folder_ / "fabric").string()
                                                           : "roce://127.0.0.1:0/1";
    auto node = node::Node::start(config_);
    ASSERT_TRUE(node) << message(node.error());
    node_ = std::move(*node);
    peer::PeerOptions options;
    options.address = *fabric::parse(node_->fabric_addresses().front());
    options.silence_ns = kLinkTimeoutNs;
    options.answer_ns = kLinkTimeoutNs;
    options.pause_ns = options.pause_max_ns = 1'000'000;
    link_ = std::make_unique<peer::SessionLink>(options, [] {});
  }
  bool await_up() {
    for (const base::Stopwatch watch; link_->session() == 0;) {
      if (watch.elapsed_ns() > kLinkTimeoutNs) return false;
      if (!link_->poll(ends_)) std::this_thread::yield();
    }
    return true;
  }
  /// A call of one slot, one of many pieces, and a READ that the peer refuses, which ends the link;
  /// all of it with a heap that fails. Returns whether it has failed.
  bool ask_all(std::int64_t n, FailingHeap::Failure failure) {
    constexpr std::uint32_t kPosts = 3;
    ends_ = {};
    FailingHeap heap(n, failure);
    const auto any = channel::PeerLink::kAnySession;
    const auto read =
        fabric::WorkRequest::read(0, std::as_writable_bytes(std::span(&word_, 1)), 12345, 0);
    bool taken = link_->call(any, {.offload = wire::OffloadId::noop}, answers_[0], 0);
    taken =
        link_->call(any, {.offload = wire::OffloadId::noop, .payload = long_}, answers_[1], 1) &&
        taken;
    taken = link_->post(any, read, 2) && taken;
    if (!taken) std::abort();
    for (const base::Stopwatch watch; ends_.all != kPosts;) {
      if (watch.elapsed_ns() > kLinkTimeoutNs) std::abort();
      link_->ring();
      if (!link_->poll(ends_)) std::this_thread::yield();
    }
    // Lost, it is opened again.
    for (int i = 0; i < 100; ++i) link_->poll(ends_);
    heap.stop();
    return heap.failed();
  }

  const base::TemporaryFolder folder_;
  node::Config config_;
  std::unique_ptr<node::Node> node_;
  const std::string long_ = std::string(100'000, 'l');
  std::uint64_t word_ = 0;
  std::array<channel::PeerAnswer, 2> answers_{};
  CountedEnds ends_;
  std::unique_ptr<peer::SessionLink> link_;
};

TEST_P(HeapPeerLink, WithoutAHeapEndsPostsAndNeverTheWorker) {
  for (const auto failure : {FailingHeap::Failure::once, FailingHeap::Failure::for_good}) {
    std::uint32_t failures = 0;
    for (std::int64_t n = 0; n < 200; ++n) {
      ASSERT_TRUE(await_up());
      if (!ask_all(n, failure)) break;
      ++failures;
    }
    EXPECT_GT(failures, 0u);
  }
  ASSERT_TRUE(await_up());
  ends_ = {};
  ASSERT_TRUE(link_->call(channel::PeerLink::kAnySession, {.offload = wire::OffloadId::noop},
                          answers_[0], 0));
  for (const base::Stopwatch watch; ends_.all == 0;) {
    ASSERT_LT(watch.elapsed_ns(), kLinkTimeoutNs);
    link_->ring();
    if (!link_->poll(ends_)) std::this_thread::yield();
  }
  EXPECT_EQ(ends_.done, 1u);
}

INSTANTIATE_TEST_SUITE_P(Ways, HeapPeerLink, ::testing::Values("shm", "roce"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace espalier::test
