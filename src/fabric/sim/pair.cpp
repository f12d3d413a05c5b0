// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/pair.hpp"

#include <utility>

#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {

Pair::Pair(NodeEndpoint& endpoint, PairName name, const QueuePairOptions& options)
    : QueuePair(name.number, options, endpoint.properties()),
      endpoint_(endpoint),
      name_(name),
      requester_(*this),
      responder_(*this) {
  endpoint_.add(*this, name.number);
}

Pair::~Pair() {
  if (state() != State::error) {
    // Nothing completes any more: entries in the completion queue are released, and not flushed.
    requester_.release();
    responder_.release();
    notify_peer(Status::success);
  }
  endpoint_.remove(name_.number);
}

World& Pair::world() const { return endpoint_.world(); }

const Properties& Pair::properties() const { return endpoint_.properties(); }

void Pair::close() { end(Status::success, true); }

void Pair::end(Status why, bool notify) {
  if (state() == State::error) return;
  requester_.flush();
  responder_.stop();
  enter_error_state(why);
  endpoint_.wake();
  if (notify) notify_peer(why);
}

void Pair::notify_peer(Status why) {
  if (peer_.endpoint == 0 || world().has_crashed(name_.endpoint)) return;
  endpoint_.notify_end(name_, peer_, why, options().retries, options().timeout_ns);
}

bool Pair::is_peer(PairName name) const {
  if (state() == State::connecting) return name.endpoint == peer_.endpoint;
  return name == peer_;
}

void Pair::connect_to(std::string_view address, std::span<const std::byte> data) {
  address_ = address;
  data_.assign(data.begin(), data.end());
  ask();
}

void Pair::ask() {
  // Another endpoint may listen there since the last time, but the endpoint that was asked must be
  // notified if this side gives up.
  if (const std::uint32_t listener = world().listener(address_)) peer_ = {listener, 0};
  Message connect = message(Message::Kind::connect, 0);
  connect.data = data_;
  world().send(std::move(connect));
  after(options().timeout_ns, What::connecting, asked_, [](Pair& pair) { pair.ask_again(); });
}

void Pair::ask_again() {
  if (state() != State::connecting) return;
  if (asked_ == options().retries) {
    ++world().counts().retry_exceeded;
    return end(Status::retry_exceeded, true);
  }
  ++asked_;
  ask();
}

void Pair::connected_to(PairName peer, std::span<const std::byte> peer_data) {
  peer_ = peer;
  become_connected(peer_data);
  endpoint_.wake();
}

void Pair::on_message(Message message) {
  if (state() == State::connecting) {
    if (message.kind == Message::Kind::pending) asked_ = 0;
    if (message.kind == Message::Kind::reject) end(Status::remote_operation, false);
    if (message.kind == Message::Kind::request) responder_.on_request(std::move(message));
    if (message.kind != Message::Kind::accept) return;
    connected_to(message.from, message.data);
    requester_.send_more();
    responder_.go_on();
    return;
  }
  if (!is_peer(message.from)) return;
  switch (message.kind) {
    case Message::Kind::request: return responder_.on_request(std::move(message));
    case Message::Kind::answer: return requester_.on_answer(message);
    case Message::Kind::not_ready: return requester_.on_not_ready(message);
    default: return;
  }
}

std::size_t Pair::begin(std::span<const WorkRequest> requests) { return requester_.take(requests); }

Message Pair::message(Message::Kind kind, std::uint64_t sequence) const {
  Message made;
  made.kind = kind;
  made.from = name_;
  made.to = peer_;
  made.sequence = sequence;
  return made;
}

void Pair::after(std::uint64_t delay_ns, What what, std::uint64_t which,
                 std::move_only_function<void(Pair&)> action) {
  world().schedule(name_, delay_ns, tag_of(what, name_, which), std::move(action));
}

void Pair::complete_noted(const WorkRequest& request, Status status, std::uint64_t old_value) {
  complete(request, status, old_value);
  world().note(tag_of(What::completed, name_, static_cast<std::uint64_t>(status)));
  endpoint_.wake();
}

void Pair::complete_receive_noted(const Receive& receive, Opcode opcode, Status status,
                                  std::uint32_t bytes, const std::uint32_t* immediate) {
  complete_receive(receive, opcode, status, bytes, immediate);
  world().note(tag_of(What::completed_receive, name_, static_cast<std::uint64_t>(status)));
  endpoint_.wake();
}

}  // namespace espalier::fabric::sim
