// SPDX-License-Identifier: Apache-2.0
// Random posts over a pair that may fail at any moment, and what must hold of their ends.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/post_queue.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {

/// WRITEs of eight bytes, each to a place of its own and sometimes by a key that nobody has, until
/// all have ended. Returns what is wrong with their ends, or nothing.
inline std::string post_queue_under_failures(const FabricTransport& transport, std::uint64_t seed) {
  constexpr std::uint32_t kDepth = 32;
  constexpr std::uint64_t kPosts = 400;
  FabricScene scene(transport, seed);
  base::Random& random = scene.random;
  const RemoteRegion remote = scene.region.remote();
  const auto words = std::make_unique<std::uint64_t[]>(kPosts);
  PostQueue queue(kDepth, static_cast<std::uint32_t>(random.between(1, kDepth / 2)));
  ConnectedPair pair = scene.connect();
  queue.attach(*pair.near);
  std::uint64_t added = 0;
  std::uint64_t told = 0;
  bool failed = false;
  std::string wrong;
  const auto look = [&] {
    for (const PostQueue::Ended& end : queue.ends()) {
      if (end.owner != told) wrong = "an end is told out of order";
      std::uint64_t there = 0;
      std::memcpy(&there, scene.far_bytes().data() + end.owner * 8, 8);
      if (end.how == PostEnd::done && there != words[end.owner]) {
        wrong = "a post that is not done is believed";
      }
      if (end.how == PostEnd::not_sent && there != 0) wrong = "a post that left is denied";
      if (end.how == PostEnd::done && failed) wrong = "something is done behind a failure";
      if (end.how != PostEnd::done) failed = true;
      ++told;
    }
  };
  const auto poll = [&] {
    Completion completions[8];
    const std::size_t count = scene.near_queue.poll(completions);
    for (std::size_t i = 0; i < count; ++i) queue.completed(completions[i]);
    look();
  };
  for (std::uint64_t turn = 0; told < kPosts && wrong.empty() && turn < 10'000'000; ++turn) {
    for (std::uint64_t burst = random.between(0, 8); burst != 0 && added < kPosts; --burst) {
      words[added] = added + 1;
      const bool bad = random.chance(0.002);
      const RegionKey key = bad ? remote.key ^ 0x00100000 : remote.key;
      const auto from = std::as_bytes(std::span(&words[added], 1));
      if (!queue.add(WorkRequest::write(0, from, key, remote.at(added * 8)), added)) break;
      ++added;
    }
    if (random.chance(0.7)) queue.ring();
    if (random.chance(0.001)) pair.far->close();
    scene.link->turn();
    poll();
    if (pair.near->state() == QueuePair::State::error && scene.near_queue.waiting() == 0) {
      queue.detach();
      look();
      failed = false;
      pair = scene.connect();
      queue.attach(*pair.near);
    }
  }
  if (wrong.empty() && told != kPosts) wrong = "a post has not ended";
  return wrong;
}

}  // namespace espalier::fabric
