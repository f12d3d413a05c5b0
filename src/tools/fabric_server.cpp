// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric_server.hpp"

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.hpp"

namespace espalier::tools {
namespace {

using fabric::Status;

constexpr std::uint64_t kServerLookNs = 1'000'000'000;

}  // namespace

FabricServer::FabricServer(fabric::Endpoint& endpoint, const fabric::RemoteRegion& region,
                           fabric::RemoteRights rights, bool spin)
    : endpoint_(endpoint),
      greeting_{wire::kFabricGreetingMagic,
                wire::kFabricGreetingVersion,
                static_cast<std::uint32_t>(rights),
                region.base,
                region.bytes,
                region.key,
                kEchoBytesMax},
      spin_(spin),
      room_(std::size_t{kSlots} * kEchoBytesMax),
      queue_(endpoint, 4 * kSlots),
      receives_(queue_, kSlots) {
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) post_receive(slot);
}

void FabricServer::post_receive(std::uint64_t slot) {
  const fabric::Receive receive{
      slot, std::span(room_).subspan(std::size_t{slot} * kEchoBytesMax, kEchoBytesMax)};
  const std::size_t posted = receives_.post({&receive, 1});
  ESPALIER_ASSERT(posted == 1);  // a slot has its place in both queues
}

void FabricServer::take(const fabric::Completion& completion) {
  const std::uint64_t slot = completion.work_id;
  const auto pair = pairs_.find(completion.pair);
  const bool came = completion.opcode == fabric::Opcode::receive;
  if (came && completion.status == Status::success && pair != pairs_.end()) {
    const auto bytes =
        std::span(room_).subspan(std::size_t{slot} * kEchoBytesMax, completion.bytes);
    if (pair->second->post(fabric::WorkRequest::send(slot, bytes)).taken == 1) {
      ++counters_.echoes;
      counters_.echo_bytes += completion.bytes;
      return;
    }
  }
  post_receive(slot);
}

// Only while no completion is pending, so that a reused number means one pair.
void FabricServer::forget_ended() {
  if (queue_.waiting() != 0) return;
  std::erase_if(pairs_, [](const auto& entry) {
    return entry.second->state() == fabric::QueuePair::State::error;
  });
}

void FabricServer::accept_all() {
  fabric::QueuePairOptions options;
  options.sends = &queue_;
  options.shared_receives = &receives_;
  options.send_depth = kSlots;
  while (const auto request = endpoint_.next_request()) {
    if (pairs_.size() >= kPairsMax) {
      endpoint_.reject(*request);
      ++counters_.rejected;
      continue;
    }
    auto pair = endpoint_.accept(*request, options, std::as_bytes(std::span(&greeting_, 1)));
    if (!pair) {  // it has given up meanwhile, or there is no room
      ++counters_.rejected;
      continue;
    }
    ++counters_.connections;
    const std::uint32_t number = (*pair)->number();
    pairs_[number] = std::move(*pair);
  }
}

void FabricServer::run() {
  std::array<fabric::Completion, kSlots> some;
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::size_t count = queue_.poll(some);
    for (std::size_t i = 0; i < count; ++i) take(some[i]);
    forget_ended();
    accept_all();
    if (count == 0 && !spin_) endpoint_.wait(kServerLookNs);
  }
  // Closes the connections and notifies the peers.
  pairs_.clear();
  endpoint_.progress();
}

void FabricServer::stop() {
  stop_.store(true, std::memory_order_relaxed);
  endpoint_.wake();
}

}  // namespace espalier::tools
