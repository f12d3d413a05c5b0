// SPDX-License-Identifier: Apache-2.0
// Rings that are mirrored over each transport, by WRITE and by SEND: every slot comes once, in its
// order and as it was written, however few of the posts have a completion of their own, and
// whatever becomes of the pairs.
#include "rings/ring_link.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "fabric/testing/fabric_fixture.hpp"
#include "rings/ring.hpp"

namespace espalier::rings {
namespace {

using fabric::Completion;

constexpr std::uint32_t kRings = 3;
constexpr wire::ConnectionLayout kLayout{128, 256, kRings};
constexpr std::uint32_t kReceives = 2 * RingLink::kPostsMax;

using SlotPayload = std::array<std::byte, wire::kRingSlotPayload>;

/// What stands in a slot of a ring.
SlotPayload payload_of(std::uint64_t ring, std::uint64_t slot) {
  SlotPayload payload;
  base::Random random(ring << 32 | slot);
  random.fill(payload);
  return payload;
}

/// One writer of a ring that goes out.
struct SlotWriter {
  void write(std::uint64_t ring, std::uint64_t most) {
    for (std::uint64_t room = space.ask_room(tail); room != 0 && most != 0; --room, --most) {
      const SlotPayload payload = payload_of(ring, tail);
      std::memcpy(space.slot_to_write(tail) + sizeof(std::uint32_t), payload.data(),
                  payload.size());
      space.publish(tail++);
    }
  }
  SlotSpace space;
  std::uint64_t tail = 0;
};

/// One end of the connection: its memory, what it writes and reads, and the link.
class LinkEnd {
 public:
  LinkEnd(fabric::FabricScene& scene, fabric::Endpoint& at, RingLink::Side side)
      : endpoint_(at),
        memory_(scene.link->memory(kLayout.bytes())),
        completions_(at, 2 * kReceives),
        receives_(completions_, kReceives),
        buffers_(std::size_t{kReceives} * RingLink::kMirroredBytesMax),
        link(side, memory_.at, kLayout) {
    std::byte* const requests = memory_.at + kLayout.requests();
    std::byte* const request_credit = memory_.at + offsetof(wire::ConnectionPage, request_credit);
    const bool client = side == RingLink::Side::client;
    if (client) {
      writers.push_back({{requests, kLayout.request_slots, request_credit}});
    } else {
      readers.emplace_back(requests, kLayout.request_slots, request_credit, 0, &link.delivered(0));
    }
    for (std::uint32_t i = 0; i < kRings; ++i) {
      std::byte* const slots = memory_.at + kLayout.responses(i);
      std::byte* const credit =
          memory_.at + kLayout.response_side(i) + offsetof(wire::ResponseSide, credit);
      if (client) {
        readers.emplace_back(slots, kLayout.response_slots, credit, 0, &link.delivered(i));
      } else {
        writers.push_back({{slots, kLayout.response_slots, credit}});
      }
    }
    for (std::uint64_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  [[nodiscard]] fabric::QueuePairOptions pair_options() {
    fabric::QueuePairOptions options;
    options.sends = &completions_;
    options.shared_receives = &receives_;
    options.send_depth = RingLink::kPostsMax;
    return options;
  }
  /// What the peer writes by.
  RingLink::Peer offer(wire::LinkWay way) {
    region_ = *endpoint_.regions().offer(memory_, fabric::RemoteRights::write);
    return {way, region_.remote().key, region_.remote().base};
  }
  void drop() {
    pair->close();
    link.detach();
    pair.reset();
    region_.revoke();
  }
  /// Carries what there is, and takes what has come. Returns false if the peer is said to break the
  /// protocol.
  [[nodiscard]] bool turn() {
    link.refresh_credits();
    link.mirror();
    Completion batch[32];
    const std::size_t count = completions_.poll(batch);
    bool kept = true;
    for (std::size_t i = 0; i < count; ++i) kept = take(batch[i]) && kept;
    return kept;
  }
  /// Reads so many slots of each ring; returns false if one is not as it was written.
  [[nodiscard]] bool read(std::uint64_t first_ring, std::uint64_t most) {
    for (std::size_t i = 0; i < readers.size(); ++i) {
      for (std::uint64_t left = most; left != 0 && readers[i].ready(); --left) {
        const std::uint64_t slot = readers[i].head();
        std::byte taken[wire::kRingSlotBytes];
        readers[i].take(taken);
        const SlotPayload payload = payload_of(first_ring + i, slot);
        if (std::memcmp(taken + sizeof(std::uint32_t), payload.data(), payload.size()) != 0) {
          return false;
        }
      }
      if (readers[i].has_unpublished_head()) readers[i].publish_head();
    }
    return true;
  }

 private:
  void post_receive(std::uint64_t number) {
    const auto into = std::span(buffers_).subspan(number * RingLink::kMirroredBytesMax,
                                                  RingLink::kMirroredBytesMax);
    const fabric::Receive receive{number, into};
    EXPECT_EQ(receives_.post({&receive, 1}), 1u);
  }
  bool take(const Completion& completion) {
    const bool came = completion.opcode == fabric::Opcode::receive ||
                      completion.opcode == fabric::Opcode::receive_write;
    if (!came) {
      link.completed(completion);
      return true;
    }
    const bool of_pair = pair != nullptr && completion.pair == pair->number();
    const std::byte* const bytes =
        buffers_.data() + completion.work_id * RingLink::kMirroredBytesMax;
    const bool kept = !of_pair || completion.status != fabric::Status::success ||
                      link.received(completion, {bytes, completion.bytes});
    post_receive(completion.work_id);
    return kept;
  }

  fabric::Endpoint& endpoint_;
  fabric::OfferedMemory memory_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  std::vector<std::byte> buffers_;
  fabric::Registration region_;

 public:
  RingLink link;
  std::unique_ptr<fabric::QueuePair> pair;
  std::vector<SlotWriter> writers;
  std::vector<SlotReader> readers;
};

class RingLinks
    : public ::testing::TestWithParam<std::tuple<fabric::FabricTransport, wire::LinkWay>> {
 protected:
  RingLinks()
      : scene(std::get<0>(GetParam()), base::seed_from_environment(75)),
        client(std::make_unique<LinkEnd>(scene, scene.link->near(), RingLink::Side::client)),
        node(std::make_unique<LinkEnd>(scene, scene.link->far(), RingLink::Side::node)) {}
  ~RingLinks() override {
    if (client->pair) drop();
  }

  void connect() {
    fabric::ConnectedPair made = scene.connect(client->pair_options(), node->pair_options());
    client->pair = std::move(made.near);
    node->pair = std::move(made.far);
    ASSERT_TRUE(client->pair != nullptr && node->pair != nullptr);
    const wire::LinkWay way = std::get<1>(GetParam());
    const RingLink::Peer of_client = client->offer(way);
    const RingLink::Peer of_node = node->offer(way);
    client->link.attach(*client->pair, of_node);
    node->link.attach(*node->pair, of_client);
  }
  void drop() {
    client->drop();
    node->drop();
  }
  void turn() {
    EXPECT_TRUE(client->turn() && node->turn());
    scene.link->turn();
  }
  void read(std::uint64_t most) {
    EXPECT_TRUE(client->read(1, most)) << "an answer is not as it was written";
    EXPECT_TRUE(node->read(0, most)) << "a request is not as it was written";
  }
  /// Slots that every ring has carried, at least.
  [[nodiscard]] std::uint64_t slots_read() const {
    std::uint64_t least = node->readers[0].head();
    for (const SlotReader& reader : client->readers) least = std::min(least, reader.head());
    return least;
  }
  void write(std::uint64_t most) {
    client->writers[0].write(0, scene.random.between(0, most));
    for (std::size_t i = 0; i < kRings; ++i) {
      node->writers[i].write(1 + i, scene.random.between(0, most));
    }
  }
  [[nodiscard]] std::uint64_t share(std::uint64_t slots) const {
    return slots / std::get<0>(GetParam()).effort;
  }

  fabric::FabricScene scene;
  std::unique_ptr<LinkEnd> client;
  std::unique_ptr<LinkEnd> node;
};

TEST_P(RingLinks, EverySlotComesOnceAsItWasWritten) {
  connect();
  scene.await([&] {
    write(scene.random.chance(0.1) ? kLayout.response_slots : 6);
    turn();
    read(scene.random.between(0, 80));
    return slots_read() >= share(1'500) || HasFailure();
  });
}

// As it is where a node answers one request of each thread of a client.
TEST_P(RingLinks, ATurnLeavesByOneDoorbellAndHasOneCompletion) {
  connect();
  const fabric::PostQueue::Counts& counts = node->link.post_counts();
  for (std::uint64_t round = 1; round <= 20 && !HasFailure(); ++round) {
    client->writers[0].write(0, 1);
    scene.await([&] {
      EXPECT_TRUE(client->turn());
      scene.link->turn();
      EXPECT_TRUE(node->turn());
      return node->readers[0].ready() && !node->link.busy();
    });
    ASSERT_TRUE(node->read(0, 1));
    for (std::size_t i = 0; i < kRings; ++i) node->writers[i].write(1 + i, 1);
    const std::uint64_t posts = counts.posts;
    const std::uint64_t completions = counts.completions;
    const std::uint64_t doorbells = counts.doorbells;
    scene.await([&] {
      turn();
      return client->readers[kRings - 1].ready() && !node->link.busy();
    });
    EXPECT_EQ(counts.posts - posts, kRings + 1);  // the answers, and the credit
    EXPECT_EQ(counts.doorbells - doorbells, 1u);
    EXPECT_EQ(counts.completions - completions, 1u);
    read(1);
  }
}

// Each run of 64 slots is given back as soon as it has been read, not with the last of a lap.
TEST_P(RingLinks, LongRunsHaveCompletionsOfTheirOwn) {
  connect();
  node->writers[0].write(1, kLayout.response_slots);
  scene.await([&] {
    turn();
    read(kLayout.response_slots);
    return client->readers[0].head() == kLayout.response_slots && !node->link.busy();
  });
  EXPECT_GE(node->link.post_counts().completions, kLayout.response_slots / RingLink::kSlotsMax);
}

TEST_P(RingLinks, WhateverBecomesOfPairsEverySlotComesOnce) {
  connect();
  std::uint64_t failures = 0;
  scene.await([&] {
    write(40);
    turn();
    read(scene.random.between(0, 80));
    if (scene.random.chance(0.05)) {
      ++failures;
      (scene.random.chance(0.5) ? client : node)->pair->close();
      scene.idle(static_cast<int>(scene.random.between(0, 20)));
      drop();
      connect();
    }
    return (slots_read() >= share(1'000) && failures >= share(16)) || HasFailure();
  });
}

TEST_P(RingLinks, ACloseNoteComesBehindWhatWasWritten) {
  connect();
  node->writers[1].write(2, 100);
  scene.await([&] {
    static_cast<void>(node->link.send_close());
    static_cast<void>(node->turn());
    scene.link->turn();
    EXPECT_TRUE(client->turn());
    return client->link.peer_closed();
  });
  EXPECT_TRUE(client->read(1, 100));
  EXPECT_EQ(client->readers[1].head(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Transports, RingLinks,
                         ::testing::Combine(::testing::ValuesIn(fabric::fabric_transports()),
                                            ::testing::Values(wire::LinkWay::write,
                                                              wire::LinkWay::send)),
                         [](const auto& each) {
                           const bool writes = std::get<1>(each.param) == wire::LinkWay::write;
                           return std::get<0>(each.param).name + (writes ? "_write" : "_send");
                         });

}  // namespace
}  // namespace espalier::rings
