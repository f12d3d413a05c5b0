// SPDX-License-Identifier: Apache-2.0
// A target that a victim and a witness are connected to, and a machine that sends anything, with
// any source address. What the victim may reach of the target, the witness may not, and vice versa.
// Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/roce/testing/hand_peer.hpp"

namespace espalier::fabric::roce {

/// An honest endpoint with one pair to the target.
struct Honest {
  Honest(HandScene& scene, std::uint8_t last, std::uint64_t seed)
      : address(HandScene::address(last)),
        endpoint(scene.network.open(address), *RegionTable::create(seed),
                 NumberSource::of_seed(seed)),
        queue(endpoint, 1024),
        far_queue(scene.endpoint, 1024),
        memory(HandScene::kMemoryBytes),
        region(*scene.endpoint.regions().offer(
            {memory.data(), memory.size()},
            RemoteRights::read | RemoteRights::write | RemoteRights::atomic)) {}

  PortAddress address;
  RoceEndpoint endpoint;
  CompletionQueue queue;
  CompletionQueue far_queue;
  std::vector<std::byte> memory;  // at the target
  Registration region;            // of it
  std::unique_ptr<QueuePair> near;
  std::unique_ptr<QueuePair> far;
};

class HostileScene {
 public:
  explicit HostileScene(std::uint64_t seed)
      : random(seed),
        scene(random()),
        victim(scene, 1, random()),
        witness(scene, 3, random()),
        model_(witness.memory.size()) {
    connect(victim);
    connect(witness);
  }

  void turn(int times = 1) {
    for (; times != 0; --times) {
      victim.endpoint.progress();
      witness.endpoint.progress();
      scene.endpoint.progress();
      scene.network.advance(10'000);
    }
  }
  /// Connects it to the target, for the first time or again.
  void connect(Honest& honest) {
    QueuePairOptions near;
    near.sends = &honest.queue;
    QueuePairOptions far;
    far.sends = &honest.far_queue;
    honest.near = *honest.endpoint.connect(to_text(HandScene::address()) + "/7", near, {});
    honest.far.reset();
    for (int i = 0; i < 10'000 && honest.near->state() == QueuePair::State::connecting; ++i) {
      turn();
      const auto request = scene.endpoint.next_request();
      if (!request) continue;
      // The request may be of any address.
      if (request->peer != to_text(honest.address)) {
        scene.endpoint.reject(*request);
      } else if (!honest.far) {
        honest.far = *scene.endpoint.accept(*request, far, {});
      }
    }
    ASSERT_EQ(honest.near->state(), QueuePair::State::connected);
  }

  /// Does a bit of everything and looks whether all is right.
  void expect_works(Honest& honest) {
    const RemoteRegion& region = honest.region.remote();
    std::vector<std::byte> from(random.between(1, 20'000));
    random.fill(from);
    std::vector<std::byte> into(from.size());
    std::vector<std::byte> room(256);
    const std::uint64_t offset = 8 + random.below(region.bytes - 8 - from.size());
    const Receive receive{9, room};
    ASSERT_EQ(honest.far->post_receives({&receive, 1}), 1u);
    const auto word = base::load_plain<std::uint64_t>(honest.memory.data());
    const std::array requests{WorkRequest::write(1, from, region.key, region.at(offset)),
                              WorkRequest::read(2, into, region.key, region.at(offset)),
                              WorkRequest::fetch_add(3, region.key, region.at(0), 5),
                              WorkRequest::send(4, std::span(from).first(std::min<std::size_t>(
                                                       from.size(), room.size())))};
    ASSERT_EQ(honest.near->post(requests).taken, requests.size());
    for (int i = 0; i < 20'000 && honest.queue.waiting() < 4; ++i) turn();
    std::array<Completion, 8> completions;
    ASSERT_EQ(honest.queue.poll(completions), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(completions[i].work_id, i + 1);
      ASSERT_EQ(completions[i].status, Status::success) << name(completions[i].status);
    }
    ASSERT_EQ(completions[2].old_value, word);
    ASSERT_EQ(base::load_plain<std::uint64_t>(honest.memory.data()), word + 5);
    ASSERT_EQ(into, from);
    ASSERT_EQ(honest.far_queue.poll(completions), 1u);
    ASSERT_EQ(completions[0].status, Status::success);
    ASSERT_TRUE(std::equal(room.begin(),
                           room.begin() + static_cast<std::ptrdiff_t>(completions[0].bytes),
                           from.begin()));
    if (&honest != &witness) return;
    std::copy(from.begin(), from.end(), model_.begin() + static_cast<std::ptrdiff_t>(offset));
    base::store_plain(model_.data(), word + 5);
  }
  /// The witness works as before, and its memory is unchanged.
  void expect_witness() {
    expect_works(witness);
    EXPECT_TRUE(witness.memory == model_) << "somebody has touched the witness's memory";
  }

  /// Sends bytes with a spoofed source, with the right ICRC if they are enough for one.
  void forge(const PortAddress& from, const PortAddress& to, std::vector<std::byte> ib) {
    if (ib.size() >= 16) Icrc({from.ip, to.ip, from.udp_port, to.udp_port, true}).seal(ib);
    scene.network.inject(from, to, ib);
  }
  void forge(const PortAddress& from, const PortAddress& to, const Headers& headers,
             std::span<const std::byte> payload = {}) {
    Headers padded = headers;
    padded.bth.pad = pad_of(payload.size());
    std::vector<std::byte> ib(packet_bytes(headers.bth.opcode, payload.size()));
    write_packet(ib.data(), padded, payload);
    forge(from, to, std::move(ib));
  }
  void forge(const PortAddress& from, const PortAddress& to, const ConnectionMessage& message) {
    std::vector<std::byte> ib(kMessagePacketBytes);
    write_message_packet(ib.data(), message, 0);
    forge(from, to, std::move(ib));
  }
  [[nodiscard]] static PortAddress target() { return HandScene::address(); }
  /// An address without a port here.
  [[nodiscard]] PortAddress unknown_peer() {
    return {IpAddress::v4(10, 0, static_cast<std::uint8_t>(random.between(1, 255)),
                          static_cast<std::uint8_t>(random())),
            static_cast<std::uint16_t>(random.between(1024, 65535))};
  }

  base::Random random;
  HandScene scene;
  Honest victim;
  Honest witness;

 private:
  std::vector<std::byte> model_;  // of the witness's memory
};

}  // namespace espalier::fabric::roce
