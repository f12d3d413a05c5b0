// SPDX-License-Identifier: Apache-2.0
// All verbs at random, many in flight, against a model of the far side's memory: for ways between
// two endpoints that are too slow to set up for all conformance tests.
//
// Thread: that of the scene.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {

class MixedTraffic {
 public:
  explicit MixedTraffic(FabricScene& scene) : scene_(scene), model_(kBytes) {
    QueuePairOptions far;
    far.receive_depth = kInFlight;
    QueuePairOptions near;
    near.mtu_bytes = 1024;  // what Ethernet has room for
    pair_ = scene_.connect(near, far);
  }

  /// So many bursts of up to kInFlight requests, READs, WRITEs, atomics and SENDs; each burst is
  /// awaited, and each answer and message held against the model.
  void run(std::size_t bursts) {
    ASSERT_TRUE(pair_.near && pair_.far);
    for (std::size_t i = 0; i < bursts && !::testing::Test::HasFatalFailure(); ++i) burst();
    std::vector<std::byte> back(kBytes);
    ASSERT_EQ(scene_.run(*pair_.near, WorkRequest::read(0, back, key(), at(0))).status,
              Status::success);
    EXPECT_TRUE(back == model_);
  }

 private:
  static constexpr std::size_t kBytes = 65536;
  static constexpr std::size_t kInFlight = 16;
  static constexpr std::size_t kLongest = 9000;

  struct Asked {
    Opcode opcode;
    std::vector<std::byte> bytes;     // given, or room for what comes
    std::vector<std::byte> expected;  // of a READ
    std::uint64_t old_value = 0;      // of an atomic
  };

  [[nodiscard]] RegionKey key() const { return scene_.region.remote().key; }
  [[nodiscard]] std::uint64_t at(std::uint64_t offset) const {
    return scene_.region.remote().at(offset);
  }

  void burst() {
    asked_.clear();
    std::vector<std::size_t> messages;
    std::array<std::vector<std::byte>, kInFlight> rooms;
    const std::size_t count = 1 + scene_.random.below(kInFlight);
    bool has_read = false;
    for (std::size_t i = 0; i < count; ++i) {
      WorkRequest request = next(i);
      // A READ whose answer got lost is done again, and then sees what was written meanwhile.
      if (has_read && request.opcode != Opcode::read) request = request.after_fence();
      has_read = has_read || request.opcode == Opcode::read;
      if (request.opcode == Opcode::send) {
        auto& room = rooms[messages.size()];
        room.resize(kLongest);
        const Receive receive{messages.size(), room};
        ASSERT_EQ(pair_.far->post_receives({&receive, 1}), 1u);
        messages.push_back(i);
      }
      ASSERT_EQ(pair_.near->post(request).taken, 1u);
    }
    const auto ends = scene_.near_completions(count);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const Asked& asked = asked_[i];
      ASSERT_EQ(ends[i].status, Status::success) << name(asked.opcode);
      ASSERT_EQ(ends[i].work_id, i);
      if (asked.opcode == Opcode::read) {
        ASSERT_TRUE(asked.bytes == asked.expected);
      } else if (is_atomic(asked.opcode)) {
        ASSERT_EQ(ends[i].old_value, asked.old_value);
      }
    }
    const auto received = scene_.far_completions(messages.size());
    for (std::size_t i = 0; i < received.size(); ++i) {
      const auto& message = asked_[messages[i]].bytes;
      ASSERT_EQ(received[i].work_id, i);
      ASSERT_EQ(received[i].bytes, message.size());
      ASSERT_TRUE(std::equal(message.begin(), message.end(), rooms[i].begin()));
    }
  }

  WorkRequest next(std::uint64_t id) {
    base::Random& random = scene_.random;
    Asked& asked = asked_.emplace_back();
    const std::size_t length = random.below(random.chance(0.2) ? kLongest : 200);
    const std::uint64_t offset = random.below(kBytes - length);
    const auto place = model_.begin() + static_cast<std::ptrdiff_t>(offset);
    switch (random.below(5)) {
      case 0:
        asked.opcode = Opcode::read;
        asked.bytes.resize(length);
        asked.expected.assign(place, place + static_cast<std::ptrdiff_t>(length));
        return WorkRequest::read(id, asked.bytes, key(), at(offset));
      case 1:
        asked.opcode = Opcode::write;
        asked.bytes = scene_.noise(length);
        std::copy(asked.bytes.begin(), asked.bytes.end(), place);
        return WorkRequest::write(id, asked.bytes, key(), at(offset));
      case 2:
        asked.opcode = Opcode::send;
        asked.bytes = scene_.noise(length);
        return WorkRequest::send(id, asked.bytes);
      default: return next_atomic(id, asked);
    }
  }

  WorkRequest next_atomic(std::uint64_t id, Asked& asked) {
    base::Random& random = scene_.random;
    const std::uint64_t offset = random.below(kBytes / 8) * 8;
    const auto old = base::load_plain<std::uint64_t>(model_.data() + offset);
    const std::uint64_t operand = random();
    asked.old_value = old;
    if (random.chance(0.5)) {
      asked.opcode = Opcode::fetch_add;
      base::store_plain(model_.data() + offset, old + operand);
      return WorkRequest::fetch_add(id, key(), at(offset), operand);
    }
    asked.opcode = Opcode::compare_swap;
    const bool swaps = random.chance(0.5);
    if (swaps) base::store_plain(model_.data() + offset, operand);
    return WorkRequest::compare_swap(id, key(), at(offset), swaps ? old : old + 1, operand);
  }

  FabricScene& scene_;
  ConnectedPair pair_;
  std::vector<std::byte> model_;
  std::deque<Asked> asked_;
};

}  // namespace espalier::fabric
