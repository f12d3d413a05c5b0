// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/connector.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/endpoint.hpp"

namespace espalier::fabric::roce {
namespace {

// A terminate message that is lost this often leaves the peer to find out by itself.
constexpr std::uint32_t kTerminates = 3;
constexpr std::uint64_t kTerminateNs = 4'000'000;
// An answer is repeated for as long as the peer, by its own word, repeats its question.
constexpr std::uint32_t kRepeats = 7;
// Before a question is repeated for the first time; each time it is twice as long.
constexpr std::uint64_t kRepeatNs = 4'000'000;
// An RTU is repeated while nothing comes through the pair: the peer may not repeat its REP as often
// as it would take, for it does not know yet that we are where we say.
constexpr std::uint32_t kReadies = 5;
// A peer may want another cookie when the first has become old, but not for ever.
constexpr std::uint32_t kCookiesMax = 8;

}  // namespace

Connector::Connector(RoceEndpoint& endpoint)
    : endpoint_(endpoint), cookies_([&endpoint] { return endpoint.draw(); }) {}

std::uint32_t Connector::new_id() {
  for (;;) {
    const auto id = static_cast<std::uint32_t>(endpoint_.draw());
    if (id != 0 && !connections_.contains(id)) return id;
  }
}

void Connector::send(const PortAddress& to, const ConnectionMessage& message) {
  std::byte* const at =
      endpoint_.port().begin(answers_to(to), kMessagePacketBytes - wire::roce::kIcrcBytes);
  if (at == nullptr) return;  // as if it were lost
  write_message_packet(at, message, psn_++);
  endpoint_.port().seal();
}

// I4. What is withheld is as if it were lost: it goes when the peer asks again.
void Connector::send(Connection& connection, const ConnectionMessage& message) {
  if (!connection.proven && !planted(Bug::unproven_peer_flooded)) {
    if (connection.allowed == 0) {
      ++endpoint_.counting().messages_withheld;
      return;
    }
    --connection.allowed;
  }
  send(connection.peer, message);
}

void Connector::set_again(Connection& connection, std::uint64_t when_ns) {
  const std::uint32_t id = connection.ids.local;
  if (connection.again_ns != 0) due_.erase({connection.again_ns, id});
  connection.again_ns = when_ns;
  if (when_ns == 0) return;
  due_.insert({when_ns, id});
  endpoint_.connector_again_at(when_ns);
}

void Connector::say(Connection& connection, const ConnectionMessage& message, std::uint64_t wait_ns,
                    std::uint32_t repeats) {
  connection.message = message;
  connection.wait_ns = wait_ns;
  connection.repeats = repeats;
  set_again(connection, endpoint_.now_ns() + wait_ns);
  send(connection, message);
}

void Connector::prove(Connection& connection) {
  if (std::exchange(connection.proven, true)) return;
  --unproven_;
  if (connection.pair != nullptr) connection.pair->release();
}

void Connector::refuse(const PortAddress& to, const ConnectionMessage& of, ConnectionIds ids,
                       ConnectionStep step, RejectReason reason) {
  RejectMessage reject;
  reject.ids = ids;
  reject.rejected = step;
  reject.reason = reason;
  send(to, {of.transaction, reject});
}

Connector::Connections::iterator Connector::find(const PortAddress& from, std::uint32_t local_id) {
  const auto at = connections_.find(local_id);
  if (at == connections_.end()) return at;
  const Connection& connection = at->second;
  // A peer that was asked for at 4791 may be a card: its first answer shows.
  const bool is_peer = connection.state == State::asking ? answers_to(from) == connection.peer
                                                         : connection.peer.sends_from(from);
  return is_peer ? at : connections_.end();
}

void Connector::erase(Connections::iterator at) {
  const Connection& connection = at->second;
  if (connection.state == State::asked || connection.state == State::refused) {
    remove_asked(connection);
  }
  if (connection.state == State::asked) std::erase(requests_, at->first);
  if (!connection.proven) --unproven_;
  if (connection.again_ns != 0) due_.erase({connection.again_ns, at->first});
  by_peer_.erase(name_of(connection.peer, connection.ids.remote));
  if (connection.pair != nullptr) connection.pair->connection = 0;
  connections_.erase(at);
}

void Connector::add_asked(Connection& connection) {
  connection.place = asked_.size();
  asked_.push_back(connection.ids.local);
  ++asked_by_[connection.peer.ip.gid()];
}

void Connector::remove_asked(const Connection& connection) {
  asked_[connection.place] = asked_.back();
  connections_.at(asked_.back()).place = connection.place;
  asked_.pop_back();
  const auto by = asked_by_.find(connection.peer.ip.gid());
  if (--by->second == 0) asked_by_.erase(by);
}

// Returns false if the address has had its share.
bool Connector::make_room(const PortAddress& from) {
  if (asked_.size() >= kAskedMany) {
    const auto by = asked_by_.find(from.ip.gid());
    if (by != asked_by_.end() && by->second >= kAskedShare) return false;
  }
  if (asked_.size() >= kAskedMax) {
    const std::size_t any = base::scale(endpoint_.draw(), asked_.size());
    erase(connections_.find(asked_[any]));
  }
  return true;
}

void Connector::connect(Pair& pair, const PortAddress& peer, std::uint16_t service,
                        std::span<const std::byte> data) {
  const std::uint32_t id = new_id();
  const QueuePairOptions& options = pair.asked_options();
  RequestMessage request;
  request.ids.local = id;
  request.service_id = service_id(service);
  request.local_pair = pair.number();
  request.starting_psn = pair.first_psn();
  const std::uint32_t reads_max = endpoint_.properties().reads_in_flight_max;
  request.responder_resources = static_cast<std::uint8_t>(reads_max);
  request.initiator_depth = static_cast<std::uint8_t>(std::min(options.reads_in_flight, reads_max));
  request.retries = static_cast<std::uint8_t>(options.retries);
  request.receive_retries = static_cast<std::uint8_t>(options.receive_retries);
  request.mtu = mtu_code(options.mtu_bytes);
  request.local_ack_timeout = timeout_code(options.timeout_ns);
  const PortAddress own = endpoint_.port().address();
  request.local_gid = own.ip.gid();
  request.remote_gid = peer.ip.gid();
  set_ip_service(request, {own.udp_port, own.ip, peer.ip});
  set_request_data(request, data);

  Connection& connection = connections_[id];
  connection.peer = {peer};
  connection.ids = {id, 0};
  connection.pair = &pair;
  pair.connection = id;
  say(connection, {endpoint_.draw(), request}, std::min(options.timeout_ns, kRepeatNs),
      options.retries);
}

Result<void> Connector::listen(std::uint16_t service) {
  if (!services_.insert(service).second) return fail(Code::already_exists);
  return {};
}

std::optional<ConnectRequest> Connector::next_request() {
  while (!requests_.empty()) {
    const std::uint32_t id = requests_.front();
    requests_.pop_front();
    const auto at = connections_.find(id);
    if (at == connections_.end() || at->second.state != State::asked) continue;
    const auto data = request_data(at->second.request);
    return ConnectRequest{id, to_text(at->second.peer), {data.begin(), data.end()}};
  }
  return std::nullopt;
}

Result<std::uint32_t> Connector::mtu_of(std::uint64_t request) const {
  const auto at = connections_.find(static_cast<std::uint32_t>(request));
  if (at == connections_.end() || at->second.state != State::asked) return fail(Code::not_found);
  return mtu_bytes(at->second.request.mtu);
}

void Connector::accept(std::uint64_t request, Pair& pair, std::span<const std::byte> data) {
  Connection& connection = connections_.at(static_cast<std::uint32_t>(request));
  const RequestMessage& asked = connection.request;
  const std::uint32_t reads_max = endpoint_.properties().reads_in_flight_max;
  ReplyMessage reply;
  reply.ids = connection.ids;
  reply.local_pair = pair.number();
  reply.starting_psn = pair.first_psn();
  reply.responder_resources = static_cast<std::uint8_t>(reads_max);
  reply.initiator_depth = static_cast<std::uint8_t>(
      std::min<std::uint32_t>(pair.asked_options().reads_in_flight, asked.responder_resources));
  reply.receive_retries = static_cast<std::uint8_t>(pair.asked_options().receive_retries);
  std::copy(data.begin(), data.end(), reply.private_data.begin());
  connection.state = State::answered;
  remove_asked(connection);
  connection.pair = &pair;
  pair.connection = connection.ids.local;
  if (!connection.proven && !planted(Bug::unproven_peer_flooded)) pair.hold();
  const std::uint64_t transaction = connection.message.transaction;
  pair.establish({connection.peer, asked.local_pair, asked.starting_psn, asked.responder_resources},
                 request_data(asked));
  say(connection, {transaction, reply}, std::min(pair.asked_options().timeout_ns, kRepeatNs),
      kRepeats);
}

void Connector::reject(std::uint64_t request, std::span<const std::byte> data) {
  const auto at = connections_.find(static_cast<std::uint32_t>(request));
  if (at == connections_.end() || at->second.state != State::asked) return;
  Connection& connection = at->second;
  connection.state = State::refused;  // for when the peer asks again, not having heard
  set_again(connection, endpoint_.now_ns() + kRefusedNs);
  RejectMessage reject;
  reject.ids = connection.ids;
  std::copy(data.begin(), data.end(), reject.private_data.begin());
  connection.message.body = reject;
  send(connection, connection.message);
  // Rejected requests leave the room to undecided ones.
  if (asked_.size() >= kAskedMany / 2) erase(at);
}

void Connector::message(const PortAddress& from, const ConnectionMessage& message) {
  std::visit([&](const auto& body) { take(from, message, body); }, message.body);
}

void Connector::take(const PortAddress& from, const ConnectionMessage& message,
                     const RequestMessage& body) {
  const PeerAddress peer = peer_at(from);
  if (const auto known = by_peer_.find(name_of(peer, body.ids.local)); known != by_peer_.end()) {
    Connection& connection = connections_.at(known->second);
    if (!connection.peer.sends_from(from)) return;
    connection.allowed += kAmplification;
    const bool decided = connection.state == State::answered || connection.state == State::refused;
    if (decided) send(connection, {message.transaction, connection.message.body});
    return;
  }
  const auto no = [&](RejectReason reason) {
    refuse(from, message, {0, body.ids.local}, ConnectionStep::request, reason);
  };
  const auto service = service_port(body.service_id);
  if (!service || !services_.contains(*service)) return no(RejectReason::invalid_service_id);
  if (body.transport_service != 0) return no(RejectReason::invalid_transport_service_type);
  if (!ip_service(body)) return no(RejectReason::unsupported_request);
  if (mtu_bytes(body.mtu) > endpoint_.port().mtu_bytes_max()) {
    return no(RejectReason::invalid_path_mtu);
  }
  const bool proven = is_proven(from, body);
  const bool many = unproven_ >= kUnprovenMax || asked_.size() >= kAskedMany;
  if (!proven && many) return send_cookie(from, message, body);
  if (!make_room(from)) return;
  const std::uint32_t id = new_id();
  Connection& connection = connections_[id];
  connection.state = State::asked;
  connection.peer = peer;
  connection.ids = {id, body.ids.local};
  connection.request = body;
  connection.message.transaction = message.transaction;
  connection.proven = proven;
  connection.allowed = kAmplification;
  if (!proven) ++unproven_;
  set_again(connection, endpoint_.now_ns() + kAskedNs);
  by_peer_[name_of(peer, body.ids.local)] = id;
  requests_.push_back(id);
  add_asked(connection);
}

bool Connector::is_proven(const PortAddress& from, const RequestMessage& request) {
  const PortAddress own = endpoint_.port().address();
  if (!cookies_.check(from, own, request, endpoint_.now_ns())) return false;
  ++endpoint_.counting().cookies_accepted;
  return true;
}

void Connector::send_cookie(const PortAddress& to, const ConnectionMessage& of,
                            const RequestMessage& request) {
  EndpointCounters& counters = endpoint_.counting();
  if (cookie_of(request) != 0) ++counters.cookies_refused;
  ++counters.cookies_sent;
  RejectMessage reject;
  reject.ids = {0, request.ids.local};
  set_cookie(reject, cookies_.make(to, endpoint_.port().address(), request, endpoint_.now_ns()));
  send(to, {of.transaction, reject});
}

void Connector::take(const PortAddress& from, const ConnectionMessage& message,
                     const ReplyMessage& body) {
  const auto at = find(from, body.ids.remote);
  if (at == connections_.end() ||
      (at->second.state != State::asking && at->second.ids.remote != body.ids.local)) {
    return refuse(from, message, {0, body.ids.local}, ConnectionStep::reply,
                  RejectReason::stale_connection);
  }
  Connection& connection = at->second;
  if (connection.state == State::asking) {
    connection.peer = peer_at(from);
    connection.ids.remote = body.ids.local;
    connection.state = State::up;
    connection.pair->establish(
        {connection.peer, body.local_pair, body.starting_psn, body.responder_resources},
        body.private_data);
    return say(connection, {message.transaction, ReadyMessage{connection.ids, {}}}, kRepeatNs,
               kReadies);
  }
  if (connection.state != State::up) return;
  send(connection, {message.transaction, ReadyMessage{connection.ids, {}}});
}

void Connector::take(const PortAddress& from, const ConnectionMessage&, const ReadyMessage& body) {
  const auto at = find(from, body.ids.remote);
  if (at == connections_.end() || at->second.state != State::answered) return;
  become_up(at->second);
}

void Connector::become_up(Connection& connection) {
  connection.state = State::up;
  set_again(connection, 0);
  prove(connection);
}

void Connector::heard_from(const Pair& pair) {
  const auto at = connections_.find(pair.connection);
  if (pair.connection == 0 || at == connections_.end()) return;
  const State state = at->second.state;
  if (state == State::answered || state == State::up) become_up(at->second);
}

void Connector::take(const PortAddress& from, const ConnectionMessage& message,
                     const RejectMessage& body) {
  const auto at = find(from, body.ids.remote);
  if (at == connections_.end()) return;
  const State state = at->second.state;
  if (state != State::asking && state != State::answered) return;
  if (state == State::asking && ask_with_cookie(at->second, message, body)) return;
  Pair* const pair = at->second.pair;
  erase(at);
  if (pair == nullptr) return;
  if (body.reason == RejectReason::consumer_reject) return pair->be_refused(body.private_data);
  pair->end(Status::remote_operation, true);
}

// Returns false if the message is another kind of refusal. One that answers a request before the
// last is nothing at all.
bool Connector::ask_with_cookie(Connection& connection, const ConnectionMessage& message,
                                const RejectMessage& reject) {
  const std::uint64_t cookie = cookie_of(reject);
  if (cookie == 0) return false;
  if (message.transaction != connection.message.transaction) return true;
  if (connection.cookies == kCookiesMax) return true;
  ++connection.cookies;
  RequestMessage request = std::get<RequestMessage>(connection.message.body);
  set_cookie(request, cookie);
  say(connection, {endpoint_.draw(), request}, connection.wait_ns, connection.repeats);
  return true;
}

void Connector::take(const PortAddress& from, const ConnectionMessage& message,
                     const DisconnectMessage& body) {
  DisconnectedMessage bye;
  bye.ids = {body.ids.remote, body.ids.local};
  send(from, {message.transaction, bye});
  const auto at = find(from, body.ids.remote);
  if (at == connections_.end()) return;
  // If it is of one that is still asked for, it has overtaken the reply.
  if (at->second.state != State::asking && at->second.ids.remote != body.ids.local) return;
  Pair* const pair = at->second.pair;
  erase(at);
  if (pair != nullptr) pair->ended_by_peer(undelivered_bytes(body));
}

void Connector::take(const PortAddress& from, const ConnectionMessage&,
                     const DisconnectedMessage& body) {
  const auto at = find(from, body.ids.remote);
  if (at != connections_.end() && at->second.state == State::leaving) erase(at);
}

// The peer's application thinks: so long as it says.
void Connector::take(const PortAddress& from, const ConnectionMessage&,
                     const ReceiptMessage& body) {
  const auto at = find(from, body.ids.remote);
  if (at == connections_.end() || at->second.state != State::asking) return;
  set_again(at->second, endpoint_.now_ns() + std::min(timeout_ns(body.service_timeout), kAskedNs));
}

void Connector::terminate(Pair& pair, bool peer_knows) {
  const auto at = connections_.find(pair.connection);
  if (pair.connection == 0 || at == connections_.end()) return;
  Connection& connection = at->second;
  if (peer_knows || connection.state == State::asking) return erase(at);
  connection.state = State::leaving;
  connection.pair = nullptr;
  pair.connection = 0;
  DisconnectMessage leave;
  leave.ids = connection.ids;
  leave.remote_pair = pair.peer().pair;
  set_undelivered_bytes(leave, pair.undelivered_bytes());
  try {
    say(connection, {endpoint_.draw(), leave}, kTerminateNs, kTerminates);
  } catch (const std::bad_alloc&) {  // the peer finds by silence that it is over
    erase(at);
  }
}

std::uint64_t Connector::expire(std::uint64_t now_ns) {
  std::vector<Pair*> given_up;
  while (!due_.empty() && due_.begin()->first <= now_ns) {
    const auto at = connections_.find(due_.begin()->second);
    Connection& connection = at->second;
    if (connection.repeats == 0) {
      if (connection.state == State::up) {  // the peer has nothing to say
        set_again(connection, 0);
        continue;
      }
      if (connection.pair != nullptr) given_up.push_back(connection.pair);
      erase(at);
      continue;
    }
    --connection.repeats;
    connection.wait_ns = std::max(2 * connection.wait_ns, kRepeatNs / 1024);
    EndpointCounters& counters = endpoint_.counting();
    if (connection.state == State::asking) ++counters.requests_again;
    if (connection.state == State::answered) ++counters.replies_again;
    if (connection.state == State::up) ++counters.readies_again;
    if (connection.state == State::leaving) ++counters.repeated_terminates;
    set_again(connection, now_ns + connection.wait_ns);
    send(connection, connection.message);
  }
  for (Pair* pair : given_up) pair->end(Status::retry_exceeded, true);
  return due_.empty() ? 0 : due_.begin()->first;
}

}  // namespace espalier::fabric::roce
