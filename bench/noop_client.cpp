// SPDX-License-Identifier: Apache-2.0
#include "bench/noop_client.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/map_session.hpp"
#include "channel/rings/node_address.hpp"

namespace espalier::bench {

std::unique_ptr<client::ThreadRings> open_lane(const std::string& address) {
  const auto node = value_or_throw(client::parse_node_address(address), "no address of a node");
  auto connection = value_or_throw(client::connect_to(node), "cannot connect to the node");
  return value_or_throw(client::ThreadRings::open(std::move(connection)), "cannot open a lane");
}

NoopClient::NoopClient(const std::string& address, const NoopPlan& plan)
    : plan_(plan), payload_(plan.payload_bytes, 'x') {
  for (std::uint32_t i = 0; i < plan.connected; ++i) lanes_.push_back(open_lane(address));
}

// Sends new requests when half of a lane's are answered, so that both sides work in batches.
std::uint64_t NoopClient::keep_in_flight(std::uint64_t ops) {
  std::vector<std::uint32_t> busy(plan_.active);
  std::uint64_t sent = 0;
  std::uint64_t sum = 0;
  std::uint64_t received = 0;
  client::Incoming response;
  while (received < ops) {
    for (std::uint32_t lane = 0; lane < plan_.active; ++lane) {
      while (busy[lane] != 0 && lanes_[lane]->receive(response)) {
        sum += response.header.tag;
        ++received;
        --busy[lane];
      }
      if (busy[lane] > plan_.in_flight / 2) {
        if (lanes_[lane]->lost()) throw std::runtime_error("the node is gone");
        continue;
      }
      const std::uint64_t now = std::min<std::uint64_t>(plan_.in_flight - busy[lane], ops - sent);
      if (now == 0) continue;
      send(lane, static_cast<std::uint32_t>(now));
      sent += now;
      busy[lane] += static_cast<std::uint32_t>(now);
    }
  }
  return sum;
}

std::uint64_t NoopClient::in_batches(std::uint64_t ops, std::uint32_t batch,
                                     base::Histogram& latencies) {
  std::uint64_t sum = 0;
  while (ops != 0) {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch, ops));
    const base::Stopwatch trip;
    send(0, count);
    for (std::uint32_t i = 0; i < count; ++i) sum += wait_for_answer();
    latencies.record(trip.elapsed_ns());
    ops -= count;
  }
  return sum;
}

std::uint64_t NoopClient::wait_for_answer() {
  client::Incoming response;
  while (!lanes_[0]->receive(response)) {
    if (!lanes_[0]->wait()) throw std::runtime_error("the node is gone");
  }
  return response.header.tag;
}

void NoopClient::send(std::uint32_t lane, std::uint32_t count) {
  wire::CallMessage noop;
  noop.offload = wire::OffloadId::noop;
  noop.payload = payload_;
  if (count > 1)
    static_cast<void>(lanes_[lane]->reserve(count * client::ThreadRings::slots_of(noop)));
  for (; count != 0; --count) {
    while (!lanes_[lane]->send(noop, 1)) {
      if (lanes_[lane]->lost()) throw std::runtime_error("the node is gone");
      lanes_[lane]->ring();
      lanes_[lane]->connection().make_progress();  // needed over a fabric, to learn of room
    }
  }
  lanes_[lane]->ring();
}

}  // namespace espalier::bench
