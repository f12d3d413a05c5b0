// SPDX-License-Identifier: Apache-2.0
#include "reach/read_port.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kWord = 8;

}  // namespace

ReadPort::ReadPort(fabric::QueuePair& pair, fabric::CompletionQueue& completions,
                   const fabric::RemoteRegion& region, const fabric::Properties& properties)
    : pair_(pair),
      completions_(completions),
      region_(region),
      read_bytes_max_(properties.message_bytes_max & ~(kWord - 1)),
      reads_in_order_(properties.reads_in_order) {
  ESPALIER_ASSERT(read_bytes_max_ >= kWord);
}

void ReadPort::want(LaneReads& lane, std::uint64_t offset, std::byte* into, std::uint64_t bytes) {
  ESPALIER_DEBUG_ASSERT(!lane.waiting);
  if (bytes == 0) return;
  const std::uint64_t before = offset % kWord;
  offset -= before;
  into -= before;
  std::uint64_t left = (before + bytes + kWord - 1) & ~(kWord - 1);
  if (failed_ || offset > region_.bytes || left > region_.bytes - offset) {
    lane.failed = true;  // nothing is sent that the peer would refuse: that would end the pair
    return;
  }
  while (left != 0) {
    const std::uint64_t part = std::min(left, read_bytes_max_);
    lane.wanted.push_back(
        fabric::WorkRequest::read(0, {into, part}, region_.key, region_.at(offset)).unsignalled());
    traffic_.bytes += part;
    ++traffic_.reads;
    lane.bytes += part;
    offset += part;
    into += part;
    left -= part;
  }
}

void ReadPort::want_keyed(LaneReads& lane, fabric::RegionKey key, std::uint64_t number,
                          std::byte* into, std::uint64_t bytes) {
  ESPALIER_DEBUG_ASSERT(!lane.waiting && bytes % kWord == 0);
  if (failed_) {
    lane.failed = true;
    return;
  }
  lane.wanted.push_back(fabric::WorkRequest::read(0, {into, bytes}, key, number).unsignalled());
  traffic_.bytes += bytes;
  ++traffic_.reads;
  lane.bytes += bytes;
}

void ReadPort::send(LaneReads& lane) noexcept {
  ESPALIER_ASSERT(!lane.waiting && !lane.wanted.empty());
  lane.wanted.back().signalled = true;
  lane.waiting = true;
  lane.posted = 0;
  bytes_in_flight_ += lane.bytes;
  (lane.aside ? traffic_.asides : traffic_.round_trips) += lane.walks;
  if (failed_) {
    lane.failed = true;
    return finish(lane);
  }
  const bool is_first = backlog_.empty();
  backlog_.push(&lane);
  if (!is_first) return;
  try {
    post_backlog();
  } catch (const std::bad_alloc&) {
    fail();
  }
}

void ReadPort::post_backlog() {
  while (!backlog_.empty() && post(backlog_.front())) in_flight_.push(backlog_.pop());
}

// Posts what is left of a lane's batch; false if there was no room for all of it.
bool ReadPort::post(LaneReads& lane) {
  const fabric::Posted posted = pair_.post(std::span(lane.wanted).subspan(lane.posted));
  ESPALIER_ASSERT(posted.stopped != fabric::Posted::Stopped::malformed);
  lane.posted += posted.taken;
  return lane.posted == lane.wanted.size();
}

void ReadPort::finish(LaneReads& lane) {
  ESPALIER_ASSERT(lane.waiting && lane.walk && lane.ready != nullptr);
  lane.wanted.clear();
  bytes_in_flight_ -= std::exchange(lane.bytes, 0);
  lane.waiting = false;
  lane.ready->push(lane.walk);
}

bool ReadPort::poll() noexcept {
  bool moved = false;
  try {
    while (take_some()) moved = true;
    if (!failed_) post_backlog();
  } catch (const std::bad_alloc&) {
    fail();
    moved = true;
  }
  if (!left_.empty()) std::erase_if(left_, [](const auto& one) { return !one.first->waiting; });
  return moved;
}

bool ReadPort::take_some() {
  fabric::Completion some[32];
  const std::size_t count = completions_.poll(some);
  for (std::size_t i = 0; i < count; ++i) {
    if (some[i].status != fabric::Status::success) {
      fail();
      continue;
    }
    if (in_flight_.empty()) continue;  // it was reported as failed before
    LaneReads& lane = *in_flight_.pop();
    ESPALIER_ASSERT(lane.waiting && lane.posted == lane.wanted.size());
    finish(lane);
  }
  return count != 0;
}

// Where there is no memory for that either, the pair ends: then nothing more comes.
void ReadPort::keep_until_done(const LaneReads& lane, std::shared_ptr<void> room) noexcept {
  ESPALIER_ASSERT(lane.waiting);
  try {
    left_.emplace_back(&lane, std::move(room));
  } catch (const std::bad_alloc&) {
    fail();
  }
}

void ReadPort::fail() noexcept {
  failed_ = true;
  try {
    pair_.close();
  } catch (const std::bad_alloc&) {  // the peer finds by silence that it is over
  }
  for (Lanes* const lanes : {&in_flight_, &backlog_}) {
    while (!lanes->empty()) {
      LaneReads& lane = *lanes->pop();
      lane.failed = true;
      finish(lane);
    }
  }
}

}  // namespace espalier::place
