// SPDX-License-Identifier: Apache-2.0
// For tests: a scripted link to a peer.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/peer_posts.hpp"

namespace espalier::offload {

/// A link that completes posts as the test requests.
class ManualLink final : public channel::PeerLink {
 public:
  struct Taken {
    std::uint64_t owner;
    fabric::WorkRequest request;
    std::string called;  // the payload of a call
    channel::PeerAnswer* answer;
    std::uint8_t hops = 0;  // of a call
    bool behind = false;    // it depends on the one before it
  };

  explicit ManualLink(std::function<void()> wake_thread) : wake(std::move(wake_thread)) {}
  bool post(std::uint64_t, const fabric::WorkRequest& request, std::uint64_t owner) override {
    return take({owner, request, {}, nullptr});
  }
  bool post_behind(std::uint64_t session, const fabric::WorkRequest& request,
                   std::uint64_t owner) override {
    if (!post(session, request, owner)) return false;
    in_flight.back().behind = true;
    return true;
  }
  bool call(std::uint64_t, const wire::CallMessage& message, channel::PeerAnswer& answer,
            std::uint64_t owner) override {
    if (message.hops == full_for_hops) return false;
    return take({owner, {}, std::string(message.payload), &answer, message.hops});
  }
  void ring() override { doorbells += std::exchange(unrung, 0) != 0 ? 1 : 0; }
  bool poll(channel::PeerEnds& ends) override {
    const bool moved = !to_end.empty();
    for (const PeerEnd& how : std::exchange(to_end, {})) {
      const Taken taken = std::move(in_flight.front());
      in_flight.pop_front();
      // A READ returns the address that it reads.
      const bool reads = taken.request.opcode == fabric::Opcode::read;
      if (reads && how.how == fabric::PostEnd::done) {
        std::memcpy(taken.request.local, &taken.request.remote, sizeof taken.request.remote);
      }
      ends.ended(taken.owner, how.how, how.status);
    }
    return moved;
  }
  bool waits() const override { return !in_flight.empty(); }
  std::uint64_t session() const override { return 1; }
  std::uint64_t sleep_limit_ns() const override { return sleep_ns; }

  void end(fabric::PostEnd how = fabric::PostEnd::done,
           fabric::Status status = fabric::Status::success) {
    to_end.push_back({how, status});
  }

  std::function<void()> wake;
  std::size_t depth = 10'000;
  std::uint8_t full_for_hops = 0;  // no call has 0
  std::uint64_t sleep_ns = std::numeric_limits<std::uint64_t>::max();
  std::deque<Taken> in_flight;
  std::vector<PeerEnd> to_end;
  std::vector<std::uint64_t> order;  // posted addresses
  int unrung = 0;
  int doorbells = 0;

 private:
  bool take(Taken taken) {
    if (in_flight.size() >= depth) return false;
    order.push_back(taken.request.remote);
    in_flight.push_back(std::move(taken));
    ++unrung;
    return true;
  }
};

}  // namespace espalier::offload
