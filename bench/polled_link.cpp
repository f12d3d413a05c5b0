// SPDX-License-Identifier: Apache-2.0
#include "bench/polled_link.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <stdexcept>
#include <string>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "bench/map_session.hpp"
#include "fabric/address.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/queue_pair.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kLinkSlots = 64;
constexpr std::uint64_t kLinkTimeoutNs = 10'000'000'000;
constexpr std::uint32_t kPollsBetweenLooks = 4096;

struct MessageTail {
  std::uint32_t bytes;
  std::uint32_t reserved;
  std::uint64_t number;  // from 1 on
};
static_assert(sizeof(MessageTail) == 16);

/// A timeout of waits. Cost: reads the time rarely.
class LinkTimeout {
 public:
  void look() {
    if (++polls_ % kPollsBetweenLooks == 0 && watch_.elapsed_ns() > kLinkTimeoutNs) {
      throw std::runtime_error("a link of the benchmark is silent");
    }
  }

 private:
  base::Stopwatch watch_;
  std::uint32_t polls_ = 0;
};

std::string listening_address(NodeTransport transport, const base::TemporaryFolder& folder) {
  static std::uint64_t number = 0;
  const std::string path = (folder / fmt::format("link{}", number++)).string();
  switch (transport) {
    case NodeTransport::shm: return "shm:" + path;
    case NodeTransport::roce_memif: return "roce+memif:" + path;
    default: return "roce://127.0.0.1:0/1";
  }
}

std::size_t slot_of(std::uint64_t number) { return number % kLinkSlots * PolledLink::kSlotBytes; }

}  // namespace

/// The pair is destroyed before the queue, and that before the endpoint.
struct PolledLink::Side {
  Side(std::unique_ptr<fabric::Endpoint> of, const LinkMemory& of_ring)
      : endpoint(std::move(of)), queue(*endpoint, 4 * kLinkSlots) {
    endpoint->regions().set_placement_policy(of_ring.policy);
    ring = value_or_throw(memory::SharedMemory::create("espalier-bench", kLinkSlots * kSlotBytes),
                          "no memory");
    registration = value_or_throw(
        endpoint->regions().offer({ring.at(0), ring.bytes(), ring.descriptor(), 0, of_ring.kind},
                                  fabric::RemoteRights::read | fabric::RemoteRights::write),
        "no region");
    leaving.resize(kLinkSlots * kSlotBytes);
  }
  [[nodiscard]] fabric::QueuePairOptions options() {
    fabric::QueuePairOptions options;
    options.sends = &queue;
    options.send_depth = 2 * kLinkSlots;
    options.receive_depth = 1;
    return options;
  }

  std::unique_ptr<fabric::Endpoint> endpoint;
  fabric::CompletionQueue queue;
  std::unique_ptr<fabric::QueuePair> pair;
  memory::SharedMemory ring;  // written by the other end
  fabric::Registration registration;
  std::vector<std::byte> leaving;  // outgoing messages, in slots as they arrive
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

bool has_polled_link(NodeTransport transport) {
  return transport == NodeTransport::shm || transport == NodeTransport::roce_memif ||
         transport == NodeTransport::roce_udp;
}

PolledLink::PolledLink(NodeTransport transport, const base::TemporaryFolder& folder,
                       const LinkMemory& far_ring)
    : far_placement_(fabric::placement_of(far_ring.kind, far_ring.policy)) {
  const auto address =
      value_or_throw(fabric::parse(listening_address(transport, folder)), "no address");
  auto listening = value_or_throw(
      fabric::open_for_listening(address, value_or_throw(fabric::RegionTable::create(), "keys")),
      "cannot listen");
  far_ = std::make_unique<Side>(std::move(listening.endpoint), far_ring);
  // Over memif the other end must answer before there is an endpoint.
  auto opening = std::async(std::launch::async, [&listening] {
    return fabric::open_for_connecting(listening.address,
                                       value_or_throw(fabric::RegionTable::create(), "keys"));
  });
  while (opening.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    far_->endpoint->progress();
  }
  auto connecting = value_or_throw(opening.get(), "cannot connect");
  near_ = std::make_unique<Side>(std::move(connecting.endpoint), LinkMemory{});
  connect(connecting.target);
}

PolledLink::~PolledLink() = default;

void PolledLink::connect(const std::string& target) {
  near_->pair =
      value_or_throw(near_->endpoint->connect(target, near_->options(), {}), "no connection");
  LinkTimeout timeout;
  const auto is_open = [this] {
    return far_->pair != nullptr && near_->pair->state() == fabric::QueuePair::State::connected;
  };
  while (!is_open()) {
    timeout.look();
    near_->endpoint->progress();
    far_->endpoint->progress();
    if (const auto request = far_->endpoint->next_request()) {
      far_->pair =
          value_or_throw(far_->endpoint->accept(*request, far_->options(), {}), "no connection");
    }
    if (near_->pair->state() == fabric::QueuePair::State::error) {
      throw std::runtime_error("a link of the benchmark is refused");
    }
  }
}

/// Runs each end once.
void PolledLink::turn() {
  std::array<fabric::Completion, 16> ended;
  for (Side* const each : {near_.get(), far_.get()}) {
    each->endpoint->flush();
    const std::size_t count = each->queue.poll(ended);
    for (std::size_t i = 0; i < count; ++i) {
      if (ended[i].status != fabric::Status::success) {
        throw std::runtime_error(
            fmt::format("a link of the benchmark fails: {}", fabric::name(ended[i].status)));
      }
      if (ended[i].opcode == fabric::Opcode::read) ++reads_ended_;
    }
  }
}

void PolledLink::post(Side& from, const fabric::WorkRequest& request) {
  LinkTimeout timeout;
  while (from.pair->post(request).taken == 0) {
    turn();  // completions make room
    timeout.look();
  }
  bytes_ += request.bytes;
}

void PolledLink::send(End end, std::span<const std::byte> message) {
  ESPALIER_ASSERT(message.size() <= kMessageBytesMax);
  Side& from = side(end);
  const std::uint64_t number = ++from.sent;
  const std::size_t bytes = base::round_up(message.size(), std::size_t{8}) + sizeof(MessageTail);
  const std::size_t at = slot_of(number) + kSlotBytes - bytes;
  std::byte* const place = from.leaving.data() + at;
  std::memcpy(place, message.data(), message.size());
  const MessageTail tail{static_cast<std::uint32_t>(message.size()), 0, number};
  std::memcpy(place + bytes - sizeof tail, &tail, sizeof tail);
  if (end == End::far || !far_placement_.past_cache || message.empty()) {
    return write(from, place, bytes);
  }
  write(from, place, bytes - sizeof tail);
  write(from, place + bytes - sizeof tail, sizeof tail);
}

void PolledLink::write(Side& from, const std::byte* place, std::size_t bytes) {
  Side& to = &from == near_.get() ? *far_ : *near_;
  const fabric::RemoteRegion& ring = to.registration.remote();
  const auto at = static_cast<std::uint64_t>(place - from.leaving.data());
  post(from, fabric::WorkRequest::write(from.sent, {place, bytes}, ring.key, ring.at(at)));
}

std::span<std::byte> PolledLink::receive(End end) {
  Side& at = side(end);
  const std::uint64_t number = ++at.received;
  std::byte* const tail_at = at.ring.at(slot_of(number) + kSlotBytes - sizeof(MessageTail));
  LinkTimeout timeout;
  const auto has_come = [&] {
    return base::load_shared<std::uint64_t>(tail_at + offsetof(MessageTail, number),
                                            std::memory_order_acquire) == number;
  };
  while (!has_come()) {
    turn();
    timeout.look();
  }
  MessageTail tail{};
  std::memcpy(&tail, tail_at, sizeof tail);
  ESPALIER_ASSERT(tail.bytes <= kMessageBytesMax);
  return {tail_at - base::round_up(std::size_t{tail.bytes}, std::size_t{8}), tail.bytes};
}

bool PolledLink::is_durable() const {
  return far_->endpoint->properties().write_is_durable && far_placement_.is_durable();
}

fabric::PlacedCounts PolledLink::placed() const {
  fabric::PlacedCounts all = near_->endpoint->regions().placed().counts();
  all += far_->endpoint->regions().placed().counts();
  return all;
}

fabric::RemoteRegion PolledLink::offer(const memory::SharedMemory& memory) {
  offered_.push_back(value_or_throw(
      far_->endpoint->regions().offer({memory.at(0), memory.bytes(), memory.descriptor(), 0},
                                      fabric::RemoteRights::read),
      "no region"));
  return offered_.back().remote();
}

void PolledLink::read(const fabric::RemoteRegion& region, std::uint64_t offset,
                      std::span<std::byte> into) {
  const std::uint64_t wanted = reads_ended_ + 1;
  post(*near_, fabric::WorkRequest::read(0, into, region.key, region.at(offset)));
  LinkTimeout timeout;
  while (reads_ended_ != wanted) {
    turn();
    timeout.look();
  }
}

}  // namespace espalier::bench
