// SPDX-License-Identifier: Apache-2.0
// Two endpoints of a transport that can reach each other, and what the conformance tests of the
// fabric do with them. Each transport, and each way in which its network may misbehave, is one
// FabricTransport: the same tests run over all.
//
// Thread: one, which plays both sides.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/endpoint.hpp"

namespace espalier::fabric {

class FabricLink {
 public:
  virtual ~FabricLink() = default;
  /// The connecting side.
  virtual Endpoint& near() = 0;
  /// The side that listens, at address(), and offers memory.
  virtual Endpoint& far() = 0;
  virtual std::string address() = 0;
  /// An address of the same form without a listener.
  virtual std::string nobody() = 0;
  /// Lets both sides do what there is to do, and lets time go on.
  virtual void turn() = 0;
  /// Memory that either side can offer, zeroed; lives as long as the link.
  virtual OfferedMemory memory(std::uint64_t bytes) = 0;
};

struct FabricTransport {
  std::string name;
  std::function<std::unique_ptr<FabricLink>(std::uint64_t seed)> make;
  /// How many times slower than the others its network is; long tests do less.
  std::uint32_t effort = 1;
};
inline void PrintTo(const FabricTransport& transport, std::ostream* out) { *out << transport.name; }

/// All that this machine can run.
[[nodiscard]] std::vector<FabricTransport> fabric_transports();

inline constexpr RemoteRights kAllRights =
    RemoteRights::read | RemoteRights::write | RemoteRights::atomic;

/// Two ends that are connected, each with a completion queue of its own.
struct ConnectedPair {
  std::unique_ptr<QueuePair> near;
  std::unique_ptr<QueuePair> far;
};

/// What all tests of a transport share: queues, connecting, waiting, the region of the far side.
class FabricScene {
 public:
  static constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << 20;
  static constexpr std::uint32_t kQueueCapacity = 4096;

  FabricScene(const FabricTransport& transport, std::uint64_t seed);

  /// Turns until `done`, or fails the test after a long while.
  void await(const std::function<bool()>& done);
  /// Some turns in which nothing is expected.
  void idle(int turns = 200);

  [[nodiscard]] ConnectedPair connect(QueuePairOptions near = {}, QueuePairOptions far = {});
  /// Waits for so many completions of the near or the far side.
  std::vector<Completion> near_completions(std::size_t count) { return take(near_queue, count); }
  std::vector<Completion> far_completions(std::size_t count) { return take(far_queue, count); }
  /// Does one request and waits for its end. Requires: it is signalled.
  Completion run(QueuePair& pair, const WorkRequest& request);

  /// Offers part of the far side's memory.
  [[nodiscard]] Registration offer(RemoteRights rights = kAllRights, Domain domain = 0) {
    return *link->far().regions().offer(far_memory, rights, domain);
  }
  [[nodiscard]] std::span<std::byte> far_bytes() const {
    return {far_memory.at, static_cast<std::size_t>(far_memory.bytes)};
  }
  /// Random bytes.
  [[nodiscard]] std::vector<std::byte> noise(std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    random.fill(made);
    return made;
  }
  [[nodiscard]] const Properties& properties() { return link->near().properties(); }

  base::Random random;
  std::unique_ptr<FabricLink> link;
  CompletionQueue near_queue;
  CompletionQueue far_queue;
  OfferedMemory far_memory;
  Registration region;  // all of it, with all rights

 private:
  std::vector<Completion> take(CompletionQueue& queue, std::size_t count);
};

[[nodiscard]] inline std::vector<std::byte> bytes_of_text(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace espalier::fabric
