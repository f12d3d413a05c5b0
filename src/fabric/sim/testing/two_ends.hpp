// SPDX-License-Identifier: Apache-2.0
// For tests: a simulated world of two nodes with a pair between them, memory that one offers, and
// the completions of each.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {

inline constexpr RemoteRights kAllRights =
    RemoteRights::read | RemoteRights::write | RemoteRights::atomic;
/// Longer than any wait of these tests ought to be.
inline constexpr std::size_t kWords = 64;  // 8 lines
using Words = std::array<std::uint64_t, kWords>;

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// Memory that is aligned to lines, and offered.
class Offer {
 public:
  Offer(Endpoint& endpoint, std::size_t bytes, RemoteRights rights = kAllRights, Domain domain = 0)
      : lines_(bytes / sizeof(Line) + 1) {
    region = *endpoint.regions().offer({at(0), bytes}, rights, domain);
  }
  [[nodiscard]] std::byte* at(std::size_t offset) {
    return reinterpret_cast<std::byte*>(lines_.data()) + offset;
  }
  [[nodiscard]] std::uint64_t word(std::size_t offset) {
    std::uint64_t value;
    std::memcpy(&value, at(offset), sizeof value);
    return value;
  }
  void set_word(std::size_t offset, std::uint64_t value) {
    std::memcpy(at(offset), &value, sizeof value);
  }
  [[nodiscard]] RegionKey key() const { return region.remote().key; }
  [[nodiscard]] std::uint64_t remote(std::uint64_t offset) const {
    return region.remote().at(offset);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> lines_;

 public:
  Registration region;  // ends before the memory does
};

/// One end of a pair, with separate completion queues for sends and receives.
struct End {
  explicit End(Endpoint& of) : endpoint(of), sends(of, 1024), receives(of, 1024) {
    options.sends = &sends;
    options.receives = &receives;
    options.timeout_ns = 100'000;
  }
  /// Polls completions into `completions` and `received`.
  void poll() {
    Completion some[16];
    while (const std::size_t count = sends.poll(some))
      completions.insert(completions.end(), some, some + count);
    while (const std::size_t count = receives.poll(some)) {
      received.insert(received.end(), some, some + count);
    }
  }
  /// Lets the world go on until a condition holds; false: it did not within a second.
  template <class Condition>
  bool wait_until(World& world, Condition condition) {
    const std::uint64_t end = world.now_ns() + kSecondNs;
    for (poll(); !condition(); poll()) {
      if (world.now_ns() >= end) return false;
      endpoint.wait(end - world.now_ns());
    }
    return true;
  }
  bool wait_completed(World& world, std::size_t count) {
    return wait_until(world, [&] { return completions.size() >= count; });
  }
  bool wait_received(World& world, std::size_t count) {
    return wait_until(world, [&] { return received.size() >= count; });
  }
  bool wait_ended(World& world) {
    return wait_until(world, [&] { return pair->state() == QueuePair::State::error; });
  }

  Endpoint& endpoint;
  CompletionQueue sends;
  CompletionQueue receives;
  QueuePairOptions options;
  std::unique_ptr<QueuePair> pair;
  std::vector<Completion> completions;
  std::vector<Completion> received;
};

/// Connects `from` to `to`, whose endpoint listens at the address. Needs a world where that works.
inline bool connect(World& world, End& from, End& to, std::string_view address) {
  auto asked = from.endpoint.connect(address, from.options, {});
  if (!asked) return false;
  from.pair = std::move(*asked);
  std::optional<ConnectRequest> request;
  to.wait_until(world, [&] { return (request = to.endpoint.next_request()).has_value(); });
  if (!request) return false;
  auto accepted = to.endpoint.accept(*request, to.options, {});
  if (!accepted) return false;
  to.pair = std::move(*accepted);
  return from.wait_until(world, [&] {
    return from.pair->state() != QueuePair::State::connecting;
  }) && from.pair->state() == QueuePair::State::connected;
}

/// Nodes "a" and "b", and a pair between them that "a" asked for.
struct TwoEnds {
  explicit TwoEnds(std::uint64_t seed = 1, const Faults& faults = {})
      : world(seed, faults),
        a_endpoint(world.add_node("a")),
        b_endpoint(world.add_node("b")),
        a(*a_endpoint),
        b(*b_endpoint),
        memory(*b_endpoint, 4096) {
    ESPALIER_ASSERT(b_endpoint->listen("b").has_value());
  }
  bool connect() { return sim::connect(world, a, b, "b"); }

  World world;
  std::unique_ptr<Endpoint> a_endpoint;
  std::unique_ptr<Endpoint> b_endpoint;
  End a;
  End b;
  Offer memory;  // of b
};

}  // namespace espalier::fabric::sim
