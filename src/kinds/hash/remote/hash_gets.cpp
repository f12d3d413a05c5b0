// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/hash_gets.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace espalier::place {
namespace {

/// Limit on gets of one doorbell.
constexpr std::uint32_t kTogetherMost = 32;
/// Limit on rounds of one poll, if READs are complete when they are posted.
constexpr int kRoundsOfPoll = 4;

}  // namespace

HashGets::HashGets(ReadPort& port, const HashTarget& target, Options options)
    : target_(target),
      lease_(options.terms),
      own_directories_(options.directory_bytes),
      directories_(std::uint32_t{1} << target.partition_bits,
                   options.directories != nullptr ? *options.directories : own_directories_) {
  shared_.reads.port = &port;
  shared_.reads.target = &target_;
  shared_.reads.directories = &directories_;
  shared_.reads.cache = options.cache;
  shared_.reads.records = options.records;
  shared_.reads.value_bytes_max = options.value_bytes_max;
  shared_.lease = &lease_;
  shared_.now_ns = std::move(options.now_ns);
  if (options.together) {
    const std::uint32_t most = std::clamp(options.in_flight, 1u, kTogetherMost);
    lanes_.emplace_back(shared_, most);
    if (options.cache != nullptr && port.reads_in_order()) {
      others_.reserve(HashGetGroup::kMost);
      group_.emplace(shared_, most);
    }
  } else {
    for (std::uint32_t i = 0; i < std::max(options.in_flight, 1u); ++i) {
      lanes_.emplace_back(shared_, 1);
    }
  }
}

void HashGets::submit(std::span<const Request> requests, Handler& handler) {
  for (const Request& request : requests) queue_.push_back({&request, &handler});
}

QueuedHashGet HashGets::next() {
  QueuedHashGet queued{};
  if (others_.empty()) {
    queued = queue_.front();
    queue_.pop_front();
  } else {
    queued = others_.back();
    others_.pop_back();
  }
  return queued;
}

void HashGets::start() {
  for (HashGetLane& lane : lanes_) {
    while (lane.has_room() && has_next()) {
      const QueuedHashGet queued = next();
      const Code refusal = take(lane, queued);
      if (refusal == Code::invalid) continue;
      Completion refused;
      refused.tag = queued.request->tag;
      refused.op = queued.request->op;
      refused.error = {refusal, 0, 0};
      queued.handler->done(refused);
    }
  }
}

// The reason why it is not taken; invalid: it is.
Code HashGets::take(HashGetLane& lane, const QueuedHashGet& queued) {
  const Request& request = *queued.request;
  if (request.op != Op::get) return Code::unsupported;
  if (request.key.empty() || request.key.size() > hash::kKeyBytesMax) return Code::key_too_long;
  try {
    lane.take(request, *queued.handler);
    return Code::invalid;
  } catch (const std::bad_alloc&) {
    return Code::out_of_memory;
  }
}

std::size_t HashGets::poll() {
  ReadPort& port = *shared_.reads.port;
  bool moved = true;
  for (int rounds = 0; moved && rounds < kRoundsOfPoll; ++rounds) {
    port.poll();
    // Gets left by a group first wait for room in the lanes.
    moved = group_ && others_.empty() && group_->turn(queue_, others_);
    start();
    for (HashGetLane& lane : lanes_) moved |= lane.turn();
  }
  return pending();
}

void HashGets::fail() {
  shared_.reads.port->fail();
  lease_.end_all();
}

}  // namespace espalier::place
