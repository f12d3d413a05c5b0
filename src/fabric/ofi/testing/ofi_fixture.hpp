// SPDX-License-Identifier: Apache-2.0
// For tests over libfabric's providers on this machine: a server, a client, and a peer that speaks
// the protocol by hand.
//
// Thread: one at a time for each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/ofi/connections.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/testing/fake_channel.hpp"

namespace espalier::fabric::ofi {

/// The one that every machine has.
inline constexpr const char* kProvider = "tcp";

/// Accepts every client, and offers memory.
struct Server {
  static constexpr std::size_t kBytes = 65536;

  Server() {
    const auto listens = endpoint->listen("127.0.0.1:0");
    EXPECT_TRUE(listens) << message(listens.error());
    options.sends = &queue;
  }
  void turn() {
    endpoint->progress();
    while (lets_in) {
      const auto request = endpoint->next_request();
      if (!request) return;
      if (auto pair = endpoint->accept(*request, options, {})) pairs.push_back(std::move(*pair));
    }
  }
  [[nodiscard]] std::string address() const { return to_text(endpoint->listens_at()); }
  [[nodiscard]] const RemoteRegion& remote() const { return region.remote(); }

  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  std::shared_ptr<RegionTable> regions = *RegionTable::create();
  Registration region =
      *regions->offer({memory.data(), memory.size(), -1, 0},
                      RemoteRights::read | RemoteRights::write | RemoteRights::atomic);
  std::unique_ptr<OfiEndpoint> endpoint = *open(kProvider, regions);
  CompletionQueue queue{*endpoint, 1024};
  QueuePairOptions options;
  bool lets_in = true;
  std::vector<std::unique_ptr<QueuePair>> pairs;
};

/// Asks.
struct Client {
  explicit Client(const std::string& address) : endpoint(*open(kProvider, *RegionTable::create())) {
    QueuePairOptions options;
    options.sends = &queue;
    auto made = endpoint->connect(address, options, {});
    EXPECT_TRUE(made) << message(made.error());
    pair = std::move(*made);
  }
  /// Does one request; whatever else must be done meanwhile, `meanwhile` does.
  template <class Meanwhile>
  Completion run(const WorkRequest& request, const Meanwhile& meanwhile) {
    EXPECT_EQ(pair->post(request).taken, 1u);
    Completion completion;
    const base::Stopwatch watch;
    while (queue.poll({&completion, 1}) == 0) {
      meanwhile();
      if (watch.elapsed_ns() > kTimeoutNs) {
        ADD_FAILURE() << "waited in vain";
        break;
      }
    }
    return completion;
  }

  // Nothing takes seconds; a test that hangs says where.
  static constexpr std::uint64_t kTimeoutNs = 30'000'000'000;
  std::unique_ptr<OfiEndpoint> endpoint;
  CompletionQueue queue{*endpoint, 1024};
  std::unique_ptr<QueuePair> pair;
};

/// A channel of the provider's, through which a test says what it likes.
class HandPeer final : private FrameTaker, private AcceptHandler {
 public:
  explicit HandPeer(const Server& server)
      : connections_(std::in_place, *Library::load(), kProvider,
                     static_cast<AcceptHandler&>(*this)),
        link_(*connections_->dial(server.endpoint->listens_at())) {
    link_->hand_to(*this);
  }

  void turn() {
    connections_->look();
    static_cast<void>(connections_->take());
    if (!down_) say_on();
    static_cast<void>(connections_->maintain(base::monotonic_ns()));
  }
  [[nodiscard]] bool is_up() const { return !down_ && link_->is_up(); }
  [[nodiscard]] bool is_down() const { return down_; }
  void say(std::span<const std::byte> bytes) {
    said_.emplace_back(bytes.begin(), bytes.end());
    if (!down_) say_on();
  }
  /// All records that came.
  [[nodiscard]] const std::vector<wire::ofi::RecordHead>& heard() const { return heard_; }
  [[nodiscard]] bool has_heard(wire::ofi::RecordKind kind) const {
    return std::any_of(heard_.begin(), heard_.end(), [kind](const auto& head) {
      return head.kind == static_cast<std::uint8_t>(kind);
    });
  }
  /// Is gone, and says nothing.
  void vanish() {
    down_ = true;
    connections_.reset();
  }

 private:
  void say_on() {
    while (frames_carried_ != said_.size()) {
      if (!link_->carry(frames_carried_ % wire::ofi::kFrames, said_[frames_carried_])) return;
      ++frames_carried_;
    }
  }
  [[nodiscard]] bool has_room() override { return false; }
  void accept(ProviderChannel&, std::string) override {}
  void take_frame(std::span<const std::byte> frame) override {
    auto reader = FrameReader::open(frame);
    while (reader && !reader->at_end()) {
      const auto record = reader->next();
      if (!record) break;
      heard_.push_back(record->head);
    }
  }
  void lose_channel() override {
    down_ = true;
    link_->let_go(true);
  }

  std::deque<std::vector<std::byte>> said_;
  std::size_t frames_carried_ = 0;
  std::optional<Connections> connections_;
  ProviderChannel* link_;
  std::vector<wire::ofi::RecordHead> heard_;
  bool down_ = false;
};

}  // namespace espalier::fabric::ofi
