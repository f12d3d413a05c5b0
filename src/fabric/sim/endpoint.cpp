// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/endpoint.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "fabric/sim/pair.hpp"
#include "fabric/sim/tags.hpp"

namespace espalier::fabric::sim {
namespace {

constexpr std::uint32_t kInlineBytesMax = 64;
constexpr std::uint32_t kMessageBytesMax = 16u << 20;
constexpr std::uint32_t kReadsInFlightMax = 16;
constexpr std::size_t kPairsMax = 1u << 20;

Properties properties_of(const Faults& faults) {
  Properties properties;
  properties.transport = "sim";
  properties.reads_in_order = faults.reads_in_order;
  properties.write_is_placed = true;
  properties.write_is_durable = true;
  properties.atomic_with_processor = faults.split_atomic_ns.high == 0;
  properties.inline_bytes_max = kInlineBytesMax;
  properties.message_bytes_max = kMessageBytesMax;
  properties.reads_in_flight_max = kReadsInFlightMax;
  return properties;
}

}  // namespace

NodeEndpoint::NodeEndpoint(World& world, std::uint32_t id, std::shared_ptr<RegionTable> regions)
    : Endpoint(properties_of(world.faults()), regions), world_(world), id_(id), reader_(*regions) {}

NodeEndpoint::~NodeEndpoint() {
  ESPALIER_ASSERT(pairs_.empty());
  world_.forget(id_);
}

Pair* NodeEndpoint::find(std::uint32_t number) const {
  const auto found = pairs_.find(number);
  return found == pairs_.end() ? nullptr : found->second;
}

Result<std::unique_ptr<QueuePair>> NodeEndpoint::connect(std::string_view address,
                                                         const QueuePairOptions& options,
                                                         std::span<const std::byte> data) {
  if (const auto good = check(options, data, kConnectDataMax); !good) {
    return std::unexpected(good.error());
  }
  if (address.empty()) return fail(Code::invalid_argument);
  if (world_.has_crashed(id_)) return fail(Code::system);
  if (pairs_.size() == kPairsMax) return fail(Code::out_of_memory, kPairsMax);
  auto pair = std::make_unique<Pair>(*this, PairName{id_, ++last_number_}, options);
  pair->connect_to(address, data);
  return pair;
}

Result<void> NodeEndpoint::listen(std::string_view address) {
  if (address.empty()) return fail(Code::invalid_argument);
  if (world_.has_crashed(id_)) return fail(Code::system);
  if (!world_.take_address(address, id_)) return fail(Code::already_exists);
  listens_ = true;
  return {};
}

std::optional<ConnectRequest> NodeEndpoint::next_request() {
  while (!requests_.empty()) {
    const PairName peer = requests_.front();
    requests_.pop_front();
    const Incoming& incoming = incoming_.at(peer);
    if (incoming.state != Incoming::State::pending) continue;
    return ConnectRequest{incoming.id, world_.node_name(peer.endpoint), incoming.data};
  }
  return std::nullopt;
}

NodeEndpoint::Incoming* NodeEndpoint::pending(std::uint64_t id, PairName* peer) {
  for (auto& [from, incoming] : incoming_) {
    if (incoming.id != id || incoming.state != Incoming::State::pending) continue;
    *peer = from;
    return &incoming;
  }
  return nullptr;
}

Result<std::unique_ptr<QueuePair>> NodeEndpoint::accept(const ConnectRequest& request,
                                                        const QueuePairOptions& options,
                                                        std::span<const std::byte> data) {
  if (const auto good = check(options, data, kAcceptDataMax); !good) {
    return std::unexpected(good.error());
  }
  PairName peer;
  Incoming* const incoming = pending(request.id, &peer);
  if (incoming == nullptr || world_.has_crashed(id_)) return fail(Code::not_found);
  if (pairs_.size() == kPairsMax) return fail(Code::out_of_memory, kPairsMax);
  auto pair = std::make_unique<Pair>(*this, PairName{id_, ++last_number_}, options);
  pair->connected_to(peer, incoming->data);
  incoming->state = Incoming::State::accepted;
  incoming->pair = pair->number();
  incoming->data.assign(data.begin(), data.end());
  answer(peer, *incoming);
  return pair;
}

void NodeEndpoint::reject(const ConnectRequest& request, std::span<const std::byte> /*data*/) {
  PairName peer;
  Incoming* const incoming = pending(request.id, &peer);
  if (incoming == nullptr || world_.has_crashed(id_)) return;
  incoming->state = Incoming::State::rejected;
  answer(peer, *incoming);
}

void NodeEndpoint::answer(PairName peer, const Incoming& incoming) {
  Message message;
  message.from = {id_, incoming.pair};
  message.to = peer;
  switch (incoming.state) {
    case Incoming::State::pending: message.kind = Message::Kind::pending; break;
    case Incoming::State::rejected: message.kind = Message::Kind::reject; break;
    case Incoming::State::gone: return;
    case Incoming::State::accepted:
      // If the pair has ended since, the peer has been notified.
      if (find(incoming.pair) == nullptr) return;
      message.kind = Message::Kind::accept;
      message.data = incoming.data;
      break;
  }
  world_.send(std::move(message));
}

void NodeEndpoint::wait(std::uint64_t timeout_ns) {
  const std::uint64_t now = world_.now_ns();
  const std::uint64_t until = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
  while (!news_.exchange(false, std::memory_order_relaxed)) {
    if (!world_.step_until(until)) return;
  }
}

void NodeEndpoint::on_message(Message message) {
  using Kind = Message::Kind;
  if (message.kind == Kind::connect) return on_connect(std::move(message));
  if (message.kind == Kind::accept) return on_accept(std::move(message));
  if (message.kind == Kind::end) return on_end(message);
  if (message.kind == Kind::end_taken) {
    peers_to_notify_.erase(message.to);
    return;
  }
  if (Pair* const pair = find(message.to.number)) pair->on_message(std::move(message));
}

void NodeEndpoint::on_connect(Message message) {
  if (!listens_) return;
  const auto [entry, added] = incoming_.try_emplace(message.from);
  Incoming& incoming = entry->second;
  if (added) {
    incoming.id = ++last_request_;
    incoming.data = std::move(message.data);
    requests_.push_back(message.from);
    wake();
  }
  answer(message.from, incoming);
}

void NodeEndpoint::on_accept(Message message) {
  Pair* const pair = find(message.to.number);
  if (pair != nullptr && pair->state() != QueuePair::State::error && pair->is_peer(message.from)) {
    return pair->on_message(std::move(message));
  }
  // It has given up, or another was quicker. The peer has a pair that will never be used.
  Message end;
  end.kind = Message::Kind::end;
  end.from = message.to;
  end.to = message.from;
  world_.send(std::move(end));
}

void NodeEndpoint::on_end(const Message& message) {
  std::uint32_t number = message.to.number;
  if (const auto known = incoming_.find(message.from); known != incoming_.end()) {
    if (known->second.state == Incoming::State::pending) {
      known->second.state = Incoming::State::gone;
    }
    number = known->second.pair;
  } else if (number == 0) {
    // It has given up before its first message came, which finds no pair then.
    incoming_.try_emplace(message.from).first->second.state = Incoming::State::gone;
  }
  if (Pair* const pair = find(number); pair != nullptr && pair->is_peer(message.from)) {
    pair->end(message.status, false);
  }
  Message taken;
  taken.kind = Message::Kind::end_taken;
  taken.from = message.to;
  taken.to = message.from;
  world_.send(std::move(taken));
}

void NodeEndpoint::notify_end(PairName from, PairName to, Status why, std::uint32_t retries,
                              std::uint64_t every_ns) {
  Message message;
  message.kind = Message::Kind::end;
  message.from = from;
  message.to = to;
  message.status = why;
  world_.send(std::move(message));
  if (retries == 0) {
    peers_to_notify_.erase(from);
    return;
  }
  peers_to_notify_[from] = retries;
  world_.schedule(id_, every_ns, tag_of(What::end_again, from), [=, this] {
    if (peers_to_notify_.contains(from)) notify_end(from, to, why, retries - 1, every_ns);
  });
}

void NodeEndpoint::crash() {
  for (const auto& [number, pair] : pairs_) pair->end(Status::retry_exceeded, false);
}

}  // namespace espalier::fabric::sim
