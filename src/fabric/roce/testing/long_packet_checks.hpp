// SPDX-License-Identifier: Apache-2.0
// A way that loses all packets above a length, in one direction or both, as one does that has an
// interface with a smaller MTU. Each check says what went wrong; empty: nothing.
//
// Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::fabric::roce::long_packets {

enum class Lost : std::uint8_t { to_far, to_near, both };

class Scene {
 public:
  static constexpr std::uint64_t kTimeoutNs = 4'000'000;
  static constexpr std::uint64_t kRetriesNs = 8 * kTimeoutNs;  // of the usual seven retries
  static constexpr std::size_t kIbBytesMax = 972;              // of an MTU of 1000

  explicit Scene(std::uint64_t seed)
      : network(seed),
        near_(network.open(kNear), *RegionTable::create(seed), NumberSource::of_seed(seed)),
        far_(network.open(kFar), *RegionTable::create(seed), NumberSource::of_seed(seed + 1)),
        near_queue(near_, 64),
        far_queue(far_, 64),
        memory_(1 << 16),
        region(*far_.regions().offer({memory_.data(), memory_.size()},
                                     RemoteRights::read | RemoteRights::write)) {
    QueuePairOptions options;
    options.mtu_bytes = 1024;
    options.timeout_ns = kTimeoutNs;
    options.sends = &near_queue;
    static_cast<void>(far_.listen("7"));
    near = *near_.connect(to_text(kFar) + "/7", options, {});
    options.sends = &far_queue;
    while (near->state() == QueuePair::State::connecting) {
      turn();
      if (const auto asked = far_.next_request()) far = *far_.accept(*asked, options, {});
    }
    for (int i = 0; i < 10; ++i) turn();
  }
  void lose(Lost which) {
    network.loses = [which](const PortAddress& from, const PortAddress&, auto ib) {
      const bool counts = which == Lost::both || (from == kNear) == (which == Lost::to_far);
      return counts && ib.size() > kIbBytesMax;
    };
  }
  void turn() {
    near_.progress();
    far_.progress();
    network.advance(10'000);
  }
  [[nodiscard]] const EndpointCounters& counters() const { return near_.counters(); }

  static constexpr PortAddress kNear{IpAddress::v4(10, 0, 0, 1), 20000};
  static constexpr PortAddress kFar{IpAddress::v4(10, 0, 0, 2), 4791};
  PacketNetwork network;

 private:
  RoceEndpoint near_;
  RoceEndpoint far_;

 public:
  CompletionQueue near_queue;
  CompletionQueue far_queue;

 private:
  std::vector<std::byte> memory_;

 public:
  Registration region;
  std::unique_ptr<QueuePair> near;
  std::unique_ptr<QueuePair> far;
};

/// A request whose packets do not get through ends with an error that says how long they are, in
/// the time of the retries; and so does the other side's pair. `behind`: short requests that follow
/// it, each of which reveals that something before it is missing.
inline std::string ends(std::uint64_t seed, Opcode opcode, Lost which, std::uint32_t behind) {
  Scene scene(seed);
  const RemoteRegion& region = scene.region.remote();
  std::vector<std::byte> bytes(3000);
  const auto post = [&](std::uint64_t id, std::span<std::byte> what) {
    return scene.near
               ->post(opcode == Opcode::read
                          ? WorkRequest::read(id, what, region.key, region.at(0))
                          : WorkRequest::write(id, what, region.key, region.at(0)))
               .taken == 1;
  };
  // It knows how soon answers come.
  for (std::uint64_t id = 0; id < 8; ++id) {
    if (!post(id, std::span(bytes).first(8))) return "a request is not taken";
    for (int i = 0; i < 20; ++i) scene.turn();
  }
  std::array<Completion, 64> completions;
  if (scene.near_queue.poll(completions) != 8) return "short requests do not end";
  scene.lose(which);
  const std::uint64_t sent = scene.network.counters().sent;
  const std::uint64_t begun_ns = scene.network.now_ns();
  if (!post(100, bytes)) return "a request is not taken";
  for (std::uint64_t i = 0; i < behind; ++i) {
    if (!post(101 + i, std::span(bytes).first(8))) return "a request is not taken";
  }
  const std::uint64_t until_ns = begun_ns + 2 * Scene::kRetriesNs;
  while (scene.near->state() == QueuePair::State::connected && scene.network.now_ns() < until_ns) {
    scene.turn();
  }
  if (scene.near->state() == QueuePair::State::connected) return "it never ends";
  const std::uint64_t took_ns = scene.network.now_ns() - begun_ns;
  if (took_ns < Scene::kRetriesNs) return "it is given up too soon";
  if (took_ns > Scene::kRetriesNs + 2 * Scene::kTimeoutNs) return "it is given up too late";
  if (scene.near->ended_by() != Status::retry_exceeded) return "it ended for another reason";
  const std::size_t ended = scene.near_queue.poll(completions);
  if (ended != 1 + behind || completions[0].work_id != 100) return "not all requests ended";
  if (completions[0].status != Status::retry_exceeded) return "its status is another";
  // IP and UDP, BTH, RETH or AETH, 1024 bytes and the ICRC.
  const std::uint32_t length = 20 + 8 + 12 + (opcode == Opcode::read ? 4 : 16) + 1024 + 4;
  if (scene.near->undelivered_bytes() != length) {
    return "it says " + std::to_string(scene.near->undelivered_bytes()) + " bytes";
  }
  // Each time there are some packets, and fewer times than eight for each timeout.
  const std::uint64_t packets = scene.network.counters().sent - sent;
  if (packets > 800) return std::to_string(packets) + " packets were spent on it";
  for (int i = 0; i < 100; ++i) scene.turn();
  if (scene.far->undelivered_bytes() != length) return "the other side is not told";
  return "";
}

}  // namespace espalier::fabric::roce::long_packets
