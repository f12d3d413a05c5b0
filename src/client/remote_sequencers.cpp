// SPDX-License-Identifier: Apache-2.0
#include "client/remote_sequencers.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "wire/object.hpp"

namespace espalier::client {
namespace {

// From any bytes.
Result<wire::SequencerFacts> read_facts(std::string_view payload) {
  wire::SequencerFacts facts{};
  if (payload.size() != sizeof facts) return fail(Code::corrupt);
  std::memcpy(&facts, payload.data(), sizeof facts);
  const bool bounded = facts.epoch != wire::kAnyEpoch && facts.epoch <= wire::kSequencerEpochMax &&
                       facts.first <= facts.next && facts.next <= wire::kSequencerEnd;
  if (!bounded) return fail(Code::corrupt);
  return facts;
}

class RemoteSequencer final : public SequencerImpl {
 public:
  RemoteSequencer(std::shared_ptr<RemoteSessions> sessions, std::string name, std::uint64_t node,
                  std::uint32_t number, std::uint32_t epoch)
      : SequencerImpl(std::move(name), epoch),
        sessions_(std::move(sessions)),
        node_(node),
        number_(number) {}

  Result<sequencer::Range> take(std::uint32_t of_epoch, std::uint32_t count) override;
  Result<wire::SequencerFacts> seal(std::uint32_t of_epoch) override {
    return change(wire::OffloadId::sequencer_seal, base::bytes_of(of_epoch));
  }
  Result<wire::SequencerFacts> advance(std::uint32_t of_epoch, std::uint64_t at_least) override {
    const wire::SequencerAdvance advance{of_epoch, 0, at_least};
    return change(wire::OffloadId::sequencer_advance, base::bytes_of(advance));
  }
  Result<wire::SequencerFacts> facts() override;

 private:
  /// A session that leads to the node which numbered it. Errors: not_found (another has come).
  Result<RemoteLease> reach();
  Result<wire::SequencerFacts> change(wire::OffloadId offload, std::string_view payload);

  const std::shared_ptr<RemoteSessions> sessions_;
  const std::uint64_t node_;
  const std::uint32_t number_;
};

Result<RemoteLease> RemoteSequencer::reach() {
  auto session = RemoteLease::take(sessions_);
  if (session && (*session)->rings->connection().node_id() != node_) return fail(Code::not_found);
  return session;
}

// What the node says is believed no more than any other message.
Result<sequencer::Range> RemoteSequencer::take(std::uint32_t of_epoch, std::uint32_t count) {
  const auto session = reach();
  if (!session) return std::unexpected(session.error());
  if (sessions_->reads_alone()) {
    return (*session)->adder.take((*session)->requests, (*session)->rings->connection(), number_,
                                  of_epoch, count);
  }
  Outgoing request;
  request.offload = wire::OffloadId::sequencer_take;
  request.map = number_;
  request.argument = count;
  request.payload = base::bytes_of(of_epoch);
  const auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  const std::uint64_t first = reply->header.version;
  if (reply->header.read_version != of_epoch || first > wire::kSequencerEnd ||
      count > wire::kSequencerEnd - first) {
    return fail(Code::corrupt);
  }
  return sequencer::Range{first, count, of_epoch};
}

Result<wire::SequencerFacts> RemoteSequencer::change(wire::OffloadId offload,
                                                     std::string_view payload) {
  const auto session = reach();
  if (!session) return std::unexpected(session.error());
  Outgoing request;
  request.offload = offload;
  request.map = number_;
  request.payload = payload;
  const auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  return read_facts(reply->payload);
}

Result<wire::SequencerFacts> RemoteSequencer::facts() {
  const auto session = reach();
  if (!session) return std::unexpected(session.error());
  Outgoing request;
  request.offload = wire::OffloadId::sequencer_open;
  request.key = name();
  const auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  if (reply->header.version != number_) return fail(Code::not_found);  // another of its name
  return read_facts(reply->payload);
}

Outgoing drop_request(std::string_view name) {
  Outgoing request;
  request.offload = wire::OffloadId::object_drop;
  request.key = name;
  request.argument = static_cast<std::uint32_t>(ObjectKind::sequencer);
  return request;
}

Result<std::shared_ptr<SequencerImpl>> reach_by_name(
    const std::shared_ptr<RemoteSessions>& sessions, RemoteSession& session,
    const Outgoing& request) {
  const auto reply = session.requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  const auto facts = read_facts(reply->payload);
  if (!facts) return std::unexpected(facts.error());
  return base::make_shared_until_fork<RemoteSequencer>(
      sessions, std::string(request.key), session.rings->connection().node_id(),
      static_cast<std::uint32_t>(reply->header.version), facts->epoch);
}

}  // namespace

Result<std::shared_ptr<SequencerImpl>> RemoteSequencers::create(std::string_view name,
                                                                std::uint64_t first) {
  Outgoing request;
  request.offload = wire::OffloadId::sequencer_create;
  request.key = name;
  request.payload = base::bytes_of(first);
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  try {
    return reach_by_name(sessions_, **session, request);
  } catch (...) {  // no memory for what the node made: then it is to go again
    static_cast<void>((*session)->requests.call(drop_request(name)));
    throw;
  }
}

Result<std::shared_ptr<SequencerImpl>> RemoteSequencers::open(std::string_view name) {
  Outgoing request;
  request.offload = wire::OffloadId::sequencer_open;
  request.key = name;
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  return reach_by_name(sessions_, **session, request);
}

Result<void> RemoteSequencers::drop(std::string_view name) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  const auto reply = (*session)->requests.call(drop_request(name));
  if (!reply) return std::unexpected(reply.error());
  return {};
}

Result<std::vector<SequencerInfo>> RemoteSequencers::list() {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  Outgoing request;
  request.offload = wire::OffloadId::object_list;
  request.argument = static_cast<std::uint32_t>(ObjectKind::sequencer);
  const auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  std::vector<SequencerInfo> all;
  std::string_view left = reply->payload;
  Item item;
  while (take_item(left, item)) {
    if (item.value.size() < sizeof(wire::ObjectEntry)) return fail(Code::corrupt);
    const auto facts = read_facts(item.value.substr(sizeof(wire::ObjectEntry)));
    if (!facts) return std::unexpected(facts.error());
    all.push_back({std::string(item.key), *facts});
  }
  return all;
}

}  // namespace espalier::client
