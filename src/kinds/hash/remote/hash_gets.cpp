// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/hash_gets.hpp"

#include <algorithm>
#include <utility>

namespace espalier::place {
namespace {

/// Gets of one doorbell, at most.
constexpr std::uint32_t kTogetherMost = 32;
/// Rounds that one poll goes on with, where READs are done at once.
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
  shared_.reads.value_bytes_max = options.value_bytes_max;
  shared_.lease = &lease_;
  shared_.now_ns = std::move(options.now_ns);
  if (options.together) {
    lanes_.emplace_back(shared_, std::clamp(options.in_flight, 1u, kTogetherMost));
  } else {
    for (std::uint32_t i = 0; i < std::max(options.in_flight, 1u); ++i) {
      lanes_.emplace_back(shared_, 1);
    }
  }
}

void HashGets::submit(std::span<const Request> requests, Handler& handler) {
  for (const Request& request : requests) queue_.push_back({&request, &handler});
}

void HashGets::start() {
  for (HashGetLane& lane : lanes_) {
    while (lane.has_room() && !queue_.empty()) {
      const Queued queued = queue_.front();
      const Request& request = *queued.request;
      const bool good = !request.key.empty() && request.key.size() <= hash::kKeyBytesMax;
      if (request.op == Op::get && good) {
        lane.take(request, *queued.handler);
        queue_.pop_front();
        continue;
      }
      queue_.pop_front();
      Completion refused;
      refused.tag = request.tag;
      refused.op = request.op;
      refused.error = {request.op == Op::get ? Code::key_too_long : Code::unsupported, 0, 0};
      queued.handler->done(refused);
    }
  }
}

std::size_t HashGets::poll() {
  ReadPort& port = *shared_.reads.port;
  bool moved = true;
  for (int rounds = 0; moved && rounds < kRoundsOfPoll; ++rounds) {
    port.poll();
    start();
    moved = false;
    for (HashGetLane& lane : lanes_) moved |= lane.turn();
  }
  return pending();
}

void HashGets::fail() {
  shared_.reads.port->fail();
  lease_.end_all();
}

}  // namespace espalier::place
