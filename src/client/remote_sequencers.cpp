// SPDX-License-Identifier: Apache-2.0
#include "client/remote_sequencers.hpp"

#include <string>
#include <utility>

#include "catalog/calls.hpp"
#include "client/sequencer_adder.hpp"
#include "client/typed_call.hpp"
#include "sequencer/calls.hpp"
#include "wire/items.hpp"
#include "wire/object.hpp"

namespace espalier::client {
namespace {

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
    return change(sequencer_calls::Seal{number_, of_epoch});
  }
  Result<wire::SequencerFacts> advance(std::uint32_t of_epoch, std::uint64_t at_least) override {
    return change(sequencer_calls::Advance{number_, {of_epoch, 0, at_least}});
  }
  Result<wire::SequencerFacts> facts() override;

 private:
  /// A session that leads to the node which numbered it. Errors: not_found (another has come).
  Result<RemoteLease> reach();
  template <class Change>
  Result<wire::SequencerFacts> change(const Change& asked);

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
    return (*session)->parts.of<SequencerAdder>().take(
        (*session)->requests, (*session)->rings->connection(), number_, of_epoch, count);
  }
  const auto taken = ask((*session)->requests, sequencer_calls::Take{number_, count, of_epoch});
  if (!taken) return std::unexpected(taken.error());
  const std::uint64_t first = taken->first;
  if (taken->epoch != of_epoch || first > wire::kSequencerEnd ||
      count > wire::kSequencerEnd - first) {
    return fail(Code::corrupt);
  }
  return sequencer::Range{first, count, of_epoch};
}

template <class Change>
Result<wire::SequencerFacts> RemoteSequencer::change(const Change& asked) {
  const auto session = reach();
  if (!session) return std::unexpected(session.error());
  const auto now = ask((*session)->requests, asked);
  if (!now) return std::unexpected(now.error());
  return now->facts;
}

Result<wire::SequencerFacts> RemoteSequencer::facts() {
  const auto session = reach();
  if (!session) return std::unexpected(session.error());
  const auto opened = ask((*session)->requests, sequencer_calls::Open{name()});
  if (!opened) return std::unexpected(opened.error());
  if (opened->id != number_) return fail(Code::not_found);  // another of its name
  return opened->facts;
}

object_calls::Drop dropping(std::string_view name) {
  return object_calls::drop(name, ObjectKind::sequencer);
}

/// Makes one or opens it, as asked.
template <class Request>
Result<std::shared_ptr<SequencerImpl>> reach_by_name(
    const std::shared_ptr<RemoteSessions>& sessions, RemoteSession& session,
    const Request& request) {
  const auto opened = ask(session.requests, request);
  if (!opened) return std::unexpected(opened.error());
  return base::make_shared_until_fork<RemoteSequencer>(sessions, std::string(request.name),
                                                       session.rings->connection().node_id(),
                                                       opened->id, opened->facts.epoch);
}

}  // namespace

Result<std::shared_ptr<SequencerImpl>> RemoteSequencers::create(std::string_view name,
                                                                std::uint64_t first) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  try {
    return reach_by_name(sessions_, **session, sequencer_calls::Create{name, first});
  } catch (...) {  // no memory for what the node made: then it is to go again
    static_cast<void>(ask((*session)->requests, dropping(name)));
    throw;
  }
}

Result<std::shared_ptr<SequencerImpl>> RemoteSequencers::open(std::string_view name) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  return reach_by_name(sessions_, **session, sequencer_calls::Open{name});
}

Result<void> RemoteSequencers::drop(std::string_view name) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  const auto dropped = ask((*session)->requests, dropping(name));
  if (!dropped) return std::unexpected(dropped.error());
  return {};
}

Result<std::vector<SequencerInfo>> RemoteSequencers::list() {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  Reply answer;
  const auto listed = ask((*session)->requests, object_calls::list(ObjectKind::sequencer), answer);
  if (!listed) return std::unexpected(listed.error());
  std::vector<SequencerInfo> all;
  std::string_view left = listed->items;
  Item item;
  while (wire::take_item(left, item)) {
    if (item.value.size() < sizeof(wire::ObjectEntry)) return fail(Code::corrupt);
    const auto of_item =
        wire::read_reply<sequencer_calls::Facts>({}, item.value.substr(sizeof(wire::ObjectEntry)));
    if (!of_item) return fail(Code::corrupt);
    all.push_back({std::string(item.key), of_item->facts});
  }
  return all;
}

}  // namespace espalier::client
