// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/endpoint.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/number_text.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::fabric::roce {
namespace {

// Of one pair in one turn, so that none keeps the others waiting.
constexpr std::uint32_t kPacketsPerTurn = 64;
// Rounds of one turn, each as much as the port has room for.
constexpr int kRoundsPerTurn = 4;
// Checking timers visits each busy pair, so the interval grows with their number, which bounds the
// cost.
constexpr std::uint64_t kLookNsPerPair = 200;

Properties properties_over(const PacketPort& port) {
  Properties properties;
  properties.transport = "roce";
  // What is asked for again is read again. An answer to the first asking that was overtaken on the
  // way may then be taken behind an answer to the second, though it was read before.
  properties.reads_in_order = port.keeps_order();
  // A WRITE is acknowledged by the software that has placed it.
  properties.write_is_placed = true;
  properties.write_is_durable = true;  // a card brings packets, this program places bytes
  properties.atomic_with_processor = true;
  properties.peer_makes_progress = true;
  properties.refuses_with_data = true;
  properties.inline_bytes_max = Requester::kInlineBytesMax;
  properties.message_bytes_max = 16u << 20;
  properties.reads_in_flight_max = Responder::kRemembered;
  return properties;
}

std::optional<std::uint16_t> parse_service(std::string_view text) {
  const auto service = base::parse_digits<std::uint16_t>(text);
  if (!service || *service == 0) return std::nullopt;
  return service;
}

}  // namespace

RoceEndpoint::RoceEndpoint(std::unique_ptr<PacketPort> port, std::shared_ptr<RegionTable> regions,
                           NumberSource numbers)
    : Endpoint(properties_over(*port), std::move(regions)),
      port_(std::move(port)),
      reader_(this->regions()),
      numbers_(std::move(numbers)),
      connector_(*this),
      now_ns_(port_->now_ns()) {}

RoceEndpoint::~RoceEndpoint() {
  ESPALIER_ASSERT(pairs_.size() == 0);
  port_->flush();
}

Result<std::unique_ptr<Pair>> RoceEndpoint::make_pair(const QueuePairOptions& options) {
  const auto number = pairs_.draw_number([this] { return draw(); });
  if (!number) return fail(Code::out_of_memory, PairTable::kPairsMax);
  const auto first_psn = static_cast<std::uint32_t>(draw() >> 40);
  auto pair = std::make_unique<Pair>(*this, *number, first_psn, options);
  pairs_.insert(*number, pair.get());
  return pair;
}

Result<std::unique_ptr<QueuePair>> RoceEndpoint::connect(std::string_view address,
                                                         const QueuePairOptions& options,
                                                         std::span<const std::byte> data) {
  if (const auto good = check(options, data, kConnectDataMax); !good) {
    return std::unexpected(good.error());
  }
  const std::size_t slash = address.find('/');
  if (slash == std::string_view::npos) return fail(Code::invalid_argument);
  const auto peer = parse_address(address.substr(0, slash));
  const auto service = parse_service(address.substr(slash + 1));
  if (!peer || !service) return fail(Code::invalid_argument);
  if (peer->ip.is_v6 != port_->address().ip.is_v6) return fail(Code::invalid_argument);
  QueuePairOptions possible = options;
  possible.mtu_bytes = std::min(possible.mtu_bytes, port_->mtu_bytes_max());
  auto pair = make_pair(possible);
  if (!pair) return std::unexpected(pair.error());
  now_ns_ = port_->now_ns();
  connector_.connect(**pair, *peer, *service, data);
  port_->flush();
  return std::unique_ptr<QueuePair>(std::move(*pair));
}

Result<void> RoceEndpoint::listen(std::string_view address) {
  const auto service = parse_service(address);
  if (!service) return fail(Code::invalid_argument);
  return connector_.listen(*service);
}

std::optional<ConnectRequest> RoceEndpoint::next_request() { return connector_.next_request(); }

Result<std::unique_ptr<QueuePair>> RoceEndpoint::accept(const ConnectRequest& request,
                                                        const QueuePairOptions& options,
                                                        std::span<const std::byte> data) {
  if (const auto good = check(options, data, kAcceptDataMax); !good) {
    return std::unexpected(good.error());
  }
  const auto mtu = connector_.mtu_of(request.id);
  if (!mtu) return std::unexpected(mtu.error());
  QueuePairOptions agreed = options;
  agreed.mtu_bytes = *mtu;  // the client decides
  auto pair = make_pair(agreed);
  if (!pair) return std::unexpected(pair.error());
  now_ns_ = port_->now_ns();
  connector_.accept(request.id, **pair, data);
  port_->flush();
  return std::unique_ptr<QueuePair>(std::move(*pair));
}

void RoceEndpoint::reject(const ConnectRequest& request, std::span<const std::byte> data) {
  ESPALIER_ASSERT(data.size() <= kRejectDataMax);
  connector_.reject(request.id, data);
  port_->flush();
}

void RoceEndpoint::progress() {
  if (!delaying_ack_.empty()) {
    now_ns_ = port_->now_ns();
    send_delayed_acks(false);
  }
  port_->flush();  // what was posted since
  const std::span<const Arrived> burst = port_->receive();
  // Turns in which nothing comes are many, and cheaper than looking at the clock.
  constexpr std::uint32_t kTurnsPerLook = 16;
  if (!burst.empty() || ++quiet_turns_ % kTurnsPerLook == 0) now_ns_ = port_->now_ns();
  for (const Arrived& arrived : burst) take(arrived);
  if (planted(Bug::messages_served_first)) take_messages();
  if (look_again_ns_ != 0 && now_ns_ >= look_due_ns()) expire();
  if (!working_.empty()) transmit();
  port_->flush();
  if (messages_.empty()) return;
  take_messages();
  if (!working_.empty()) transmit();
  port_->flush();
}

void RoceEndpoint::flush() {
  send_delayed_acks(true);
  port_->flush();
}

// Pairs that have sent something since, for it leaves together, and those whose delay is over.
void RoceEndpoint::send_delayed_acks(bool all) {
  std::erase_if(delaying_ack_, [&](Pair* pair) { return pair->send_delayed_ack(all); });
}

int RoceEndpoint::begin_sleep() {
  flush();
  return port_->begin_sleep();
}

void RoceEndpoint::take(const Arrived& arrived) {
  ++counters_.packets;
  const auto packet = parse(arrived.ib);
  if (!packet) {
    ++counters_.malformed;
    return;
  }
  if (packet->bth.opcode == PacketOpcode::datagram_send_only) {
    if (messages_.size() == kMessagesPerTurn && !planted(Bug::messages_served_first)) {
      ++counters_.messages_shed;
    } else {
      messages_.push_back(arrived);
    }
    return;
  }
  Pair* const pair = pairs_.find(packet->bth.destination);
  if (pair == nullptr) {
    ++counters_.unknown_peers;
    return;
  }
  pair->packet(arrived.from, *packet);
}

void RoceEndpoint::take_messages() {
  for (const Arrived& arrived : messages_) {
    const auto packet = parse(arrived.ib);
    const auto message = packet ? parse_message(*packet) : std::nullopt;
    if (message) {
      connector_.message(arrived.from, *message);
    } else {
      ++counters_.malformed;
    }
  }
  messages_.clear();
}

void RoceEndpoint::expire() {
  look_again_ns_ = 0;
  looked_ns_ = now_ns_;
  const std::uint64_t connector_due_ns = std::exchange(connector_due_ns_, 0);
  if (connector_due_ns != 0) {
    connector_again_at(now_ns_ < connector_due_ns ? connector_due_ns : connector_.expire(now_ns_));
  }
  for (std::size_t i = 0; i < busy_.size();) {
    Pair& pair = *busy_[i];
    const std::uint64_t next = pair.expire(now_ns_);
    if (next != 0) look_again_at(next);
    if (pair.idle()) {
      pair.busy = false;
      busy_[i] = busy_.back();
      busy_.pop_back();
    } else {
      if (next == 0) look_again_at(now_ns_ + pair.asked_options().timeout_ns);
      ++i;
    }
  }
}

void RoceEndpoint::transmit() {
  for (int round = 0; round < kRoundsPerTurn && !working_.empty(); ++round) {
    std::vector<Pair*> pairs;
    pairs.swap(working_);
    for (Pair* pair : pairs) {
      pair->listed = false;
      if (pair->transmit(kPacketsPerTurn)) has_work(*pair);
    }
    // One that fills the port alone is not the first again.
    if (!working_.empty()) std::rotate(working_.begin(), working_.begin() + 1, working_.end());
    port_->flush();
  }
}

void RoceEndpoint::has_work(Pair& pair) {
  if (pair.listed) return;
  pair.listed = true;
  working_.push_back(&pair);
}

void RoceEndpoint::watch(Pair& pair) {
  if (pair.busy) return;
  pair.busy = true;
  busy_.push_back(&pair);
  look_again_at(now_ns_ + pair.requester().rto_ns());
}

void RoceEndpoint::prepare(Pair& pair) {
  now_ns_ = port_->now_ns();
  watch(pair);
  if (pair.transmit(kPacketsPerTurn)) has_work(pair);
  // What the next requests bring may leave together with this.
}

void RoceEndpoint::look_again_at(std::uint64_t when_ns) {
  if (look_again_ns_ == 0 || when_ns < look_again_ns_) look_again_ns_ = when_ns;
}

std::uint64_t RoceEndpoint::look_due_ns() const {
  return std::max(look_again_ns_, looked_ns_ + busy_.size() * kLookNsPerPair);
}

void RoceEndpoint::connector_again_at(std::uint64_t when_ns) {
  if (when_ns == 0) return;
  if (connector_due_ns_ == 0 || when_ns < connector_due_ns_) connector_due_ns_ = when_ns;
  look_again_at(when_ns);
}

void RoceEndpoint::send_terminate(Pair& pair, bool peer_knows) {
  connector_.terminate(pair, peer_knows);
}

void RoceEndpoint::forget(Pair& pair) {
  std::erase(working_, &pair);
  std::erase(busy_, &pair);
  std::erase(delaying_ack_, &pair);
  pairs_.erase(pair.number());
  port_->flush();
}

void RoceEndpoint::wait(std::uint64_t timeout_ns) {
  if (!working_.empty()) return;
  flush();
  now_ns_ = port_->now_ns();
  if (look_again_ns_ != 0) {
    const std::uint64_t due_ns = look_due_ns();
    const std::uint64_t left = due_ns > now_ns_ ? due_ns - now_ns_ : 0;
    timeout_ns = std::min(timeout_ns, left);
  }
  port_->wait(timeout_ns);
}

}  // namespace espalier::fabric::roce
