// SPDX-License-Identifier: Apache-2.0
// Random posts over pairs of a simulated world that fail at any moment, and what must hold of their
// ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/post_queue.hpp"
#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric {

/// WRITEs of eight bytes, each to a place of its own and a few by an unknown key, until all
/// have ended; pairs are closed by either side, and others follow. Returns what is wrong with the
/// ends, or nothing.
inline std::string post_queue_under_failures(std::uint64_t seed, const sim::Faults& faults = {}) {
  constexpr std::uint32_t kDepth = 32;
  constexpr std::uint64_t kPosts = 400;
  base::Random random(seed);
  sim::TwoEnds ends(seed, faults);
  std::vector<std::uint64_t> words(kPosts);
  PostQueue queue(kDepth, static_cast<std::uint32_t>(random.between(1, kDepth / 2)));
  std::uint64_t added = 0;
  std::uint64_t completed = 0;
  bool failed = false;
  std::string wrong;
  const auto look = [&] {
    for (const PostQueue::Ended& end : queue.ends()) {
      const std::uint64_t there = ends.memory.word(end.owner * 8);
      if (end.owner != completed++) wrong = "an end is told out of order";
      if (end.how == PostEnd::done && failed) wrong = "something is done behind a failure";
      if (end.how == PostEnd::done && there != end.owner + 1) {
        wrong = "a post that is not done is believed";
      }
      if (end.how == PostEnd::not_sent && there != 0) wrong = "a post that left is denied";
      failed = failed || end.how != PostEnd::done;
    }
  };
  for (std::uint64_t turn = 0; completed < kPosts && wrong.empty() && turn < 100'000; ++turn) {
    if (!queue.attached()) {
      if (!ends.connect()) continue;
      queue.attach(*ends.a.pair);
      failed = false;
    }
    for (std::uint64_t burst = random.between(0, 8); burst != 0 && added < kPosts; --burst) {
      words[added] = added + 1;
      const RegionKey key = ends.memory.key() ^ (random.chance(0.01) ? 0x00100000 : 0);
      const auto from = std::as_bytes(std::span(&words[added], 1));
      const auto post = WorkRequest::write(0, from, key, ends.memory.remote(added * 8));
      if (!queue.add(post, added)) break;
      ++added;
    }
    if (random.chance(0.7)) queue.ring();
    if (random.chance(0.01)) (random.chance(0.5) ? ends.a : ends.b).pair->close();
    ends.world.run_for(random.between(0, 5'000));
    ends.a.poll();
    for (const Completion& completion : ends.a.completions) queue.completed(completion);
    ends.a.completions.clear();
    look();
    if (ends.a.pair->state() == QueuePair::State::error) {
      queue.detach();
      look();
      ends.world.run_for(1'000'000);  // what left may still come
    }
  }
  if (wrong.empty() && completed != kPosts) wrong = "a post has not ended";
  return wrong;
}

/// Bursts of WRITEs over a pair that lives, into a completion queue that is sometimes too small for
/// one: all that left must end, though nothing follows. Returns what is wrong, or nothing.
inline std::string post_queue_in_peace(std::uint64_t seed, const sim::Faults& faults = {}) {
  constexpr std::uint32_t kDepth = 32;
  base::Random random(seed);
  sim::TwoEnds ends(seed, faults);
  CompletionQueue few(*ends.a_endpoint, static_cast<std::uint32_t>(random.between(1, kDepth)));
  ends.a.options.sends = &few;
  ends.a.options.timeout_ns = 1'000'000;  // whatever gets lost, the pair lives
  while (!ends.connect()) ends.a.pair.reset();
  PostQueue queue(kDepth, static_cast<std::uint32_t>(random.between(1, kDepth / 2)));
  queue.attach(*ends.a.pair);
  const std::uint64_t word = 1;
  std::uint64_t completed = 0;
  for (int burst = 0; burst < 20; ++burst) {
    std::uint64_t added = 0;
    for (std::uint64_t wanted = random.between(1, kDepth); added < wanted; ++added) {
      const auto signal =
          random.chance(0.1) ? PostQueue::Signal::by_itself : PostQueue::Signal::with_others;
      const auto post = WorkRequest::write(0, std::as_bytes(std::span(&word, 1)), ends.memory.key(),
                                           ends.memory.remote(0));
      if (!queue.add(post, completed + added, signal)) return "no room, though nothing is there";
    }
    const std::uint64_t until = completed + added;
    for (int turn = 0; queue.pending() != 0; ++turn) {
      if (turn == 200) return "a post has not ended";
      queue.ring();
      ends.world.run_for(1'000'000);
      Completion completion;
      while (few.poll({&completion, 1}) == 1) queue.completed(completion);
      for (const PostQueue::Ended& end : queue.ends()) {
        if (end != PostQueue::Ended{completed++, PostEnd::done, Status::success}) {
          return "a post ended otherwise than it was to";
        }
      }
    }
    if (completed != until) return "not all ends were told";
  }
  return {};
}

}  // namespace espalier::fabric
