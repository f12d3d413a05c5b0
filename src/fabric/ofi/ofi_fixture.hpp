// SPDX-License-Identifier: Apache-2.0
// For tests over libfabric's provider for TCP on this machine: a side that serves, a side that
// asks, and a peer that speaks by hand.
//
// Thread: one at a time for each.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/fake_line.hpp"
#include "fabric/ofi/link.hpp"

namespace espalier::fabric::ofi {

/// Lets in whoever asks, and offers memory.
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
  std::unique_ptr<OfiEndpoint> endpoint = *open("tcp", regions);
  CompletionQueue queue{*endpoint, 1024};
  QueuePairOptions options;
  bool lets_in = true;
  std::vector<std::unique_ptr<QueuePair>> pairs;
};

/// Asks.
struct Client {
  explicit Client(const std::string& address) {
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
      if (watch.elapsed_ns() > kPatienceNs) {
        ADD_FAILURE() << "waited in vain";
        break;
      }
    }
    return completion;
  }

  // Nothing takes seconds; a test that hangs says where.
  static constexpr std::uint64_t kPatienceNs = 30'000'000'000;
  std::unique_ptr<OfiEndpoint> endpoint = *open("tcp", *RegionTable::create());
  CompletionQueue queue{*endpoint, 1024};
  std::unique_ptr<QueuePair> pair;
};

/// A connection of the provider's, through which a test says what it likes.
class HandPeer final : private FrameTaker {
 public:
  explicit HandPeer(const Server& server)
      : library_(*Library::load()),
        info_(*library_->find("tcp", server.endpoint->listens_at(), false)),
        device_(*Device::open(library_, *info_.get())),
        link_(*Link::make(*device_, *info_.get(), 1)) {
    link_->hand_to(*this);
    EXPECT_TRUE(link_->dial(*info_.get()));
  }

  void turn() {
    while (const auto event = device_->next_event()) {
      event->kind == Device::Event::Kind::up ? link_->come_up() : link_->go_down();
    }
    Device::Completed some[Device::kAtATime];
    for (bool drained = false; !drained;) {
      for (const auto& each : std::span(some, device_->completed(some, drained))) {
        link_->complete(each);
      }
    }
    static_cast<void>(link_->settle(0));
  }
  [[nodiscard]] bool is_up() const { return link_->is_up(); }
  [[nodiscard]] bool is_down() const { return down_; }
  void say(std::vector<std::byte> bytes) {
    said_.push_back(std::move(bytes));
    EXPECT_TRUE(link_->carry(0, said_.back()));
  }
  /// All records that came.
  [[nodiscard]] const std::vector<wire::ofi::RecordHead>& heard() const { return heard_; }
  [[nodiscard]] bool has_heard(wire::ofi::RecordKind kind) const {
    return std::any_of(heard_.begin(), heard_.end(), [kind](const auto& head) {
      return head.kind == static_cast<std::uint8_t>(kind);
    });
  }
  /// Is gone, and says nothing.
  void vanish() { link_.reset(); }

 private:
  void take_frame(std::span<const std::byte> frame) override {
    auto reader = RecordReader::open(frame);
    while (reader && !reader->at_end()) {
      const auto record = reader->next();
      if (!record) break;
      heard_.push_back(record->head);
    }
  }
  void lose_line() override {
    down_ = true;
    link_->let_go(true);
  }

  std::shared_ptr<const Library> library_;
  Info info_;
  std::unique_ptr<Device> device_;
  std::deque<std::vector<std::byte>> said_;
  std::unique_ptr<Link> link_;
  std::vector<wire::ofi::RecordHead> heard_;
  bool down_ = false;
};

}  // namespace espalier::fabric::ofi
