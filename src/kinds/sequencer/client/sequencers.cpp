// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/client/sequencers.hpp"

#include "base/until_fork.hpp"
#include "catalog/await_records.hpp"
#include "channel/objects.hpp"
#include "channel/reached.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "kinds/sequencer/client/sequencer_adder.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/execute.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "store/store_parts.hpp"

namespace espalier::client {
namespace {

/// The sessions by which a store adds by itself; null: it asks, or has the sequencers.
std::shared_ptr<RemoteSessions> adding_by(const std::shared_ptr<channel::Channel>& channel) {
  auto sessions = std::dynamic_pointer_cast<RemoteSessions>(channel);
  return sessions != nullptr && sessions->reads_alone() ? sessions : nullptr;
}

template <class Request>
Result<std::shared_ptr<SequencerImpl>> reach(const std::shared_ptr<channel::Channel>& channel,
                                             const Request& request) {
  return channel::reach<sequencer::Sequencer>(
      channel, request, [&](SequencerImpl::Object&& object, const sequencer_calls::Opened& opened) {
        return base::make_shared_until_fork<SequencerImpl>(std::move(object), opened.facts.epoch,
                                                           adding_by(channel));
      });
}

Result<wire::SequencerFacts> facts_in(const Result<sequencer_calls::Facts>& reply) {
  if (!reply) return std::unexpected(reply.error());
  return reply->facts;
}

}  // namespace

// What a node says is believed no more than any other message.
Result<sequencer::Range> SequencerImpl::take(std::uint32_t of_epoch, std::uint32_t count) {
  if (adding_ != nullptr) return take_by_adding(of_epoch, count);
  const auto taken = object_.ask(sequencer_calls::Take{object_.number(), count, of_epoch});
  if (!taken) return std::unexpected(taken.error());
  const std::uint64_t first = taken->first;
  if (taken->epoch != of_epoch || first > wire::kSequencerEnd ||
      count > wire::kSequencerEnd - first) {
    return fail(Code::corrupt);
  }
  return sequencer::Range{first, count, of_epoch};
}

Result<sequencer::Range> SequencerImpl::take_by_adding(std::uint32_t of_epoch,
                                                       std::uint32_t count) {
  const auto session = RemoteLease::take_at(*adding_, object_.node());
  if (!session) return std::unexpected(session.error());
  return (*session)->parts.of<SequencerAdder>().take(
      (*session)->requests, (*session)->rings->connection(), object_.number(), of_epoch, count);
}

Result<wire::SequencerFacts> SequencerImpl::seal(std::uint32_t of_epoch) {
  return facts_in(object_.ask(sequencer_calls::Seal{object_.number(), of_epoch}));
}

Result<wire::SequencerFacts> SequencerImpl::advance(std::uint32_t of_epoch,
                                                    std::uint64_t at_least) {
  return facts_in(object_.ask(sequencer_calls::Advance{object_.number(), {of_epoch, 0, at_least}}));
}

// Another one may have its name by now.
Result<wire::SequencerFacts> SequencerImpl::facts() {
  const auto opened = object_.ask(sequencer_calls::Open{name()});
  if (!opened) return std::unexpected(opened.error());
  if (opened->id != object_.number()) return fail(Code::not_found);
  return opened->facts;
}

Result<std::shared_ptr<SequencerImpl>> create_sequencer(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name, std::uint64_t first) {
  return reach(channel, sequencer_calls::Create{name, first});
}

Result<std::shared_ptr<SequencerImpl>> open_sequencer(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name) {
  return reach(channel, sequencer_calls::Open{name});
}

Result<std::vector<SequencerInfo>> list_sequencers(channel::Channel& channel) {
  auto listed = channel::list(channel, ObjectKind::sequencer);
  if (!listed) return std::unexpected(listed.error());
  std::vector<SequencerInfo> all;
  for (channel::ListedObject& object : *listed) {
    const auto facts = wire::read_reply<sequencer_calls::Facts>({}, object.description);
    if (!facts) return fail(Code::corrupt);
    all.push_back({std::move(object.name), facts->facts});
  }
  return all;
}

Result<std::uint64_t> count(channel::Channel& channel, std::string_view name,
                            std::uint32_t numbers) {
  if (channel.is_copy()) return fail(Code::forked);
  if (store::StoreParts* const parts = channel.own_parts()) {
    const catalog::Catalog& own = *channel.own_objects();
    const auto first = parts->of<sequencer::Counters>().take(name, numbers, own.redo());
    if (!first) return first;
    if (auto durable = catalog::await_records(own); !durable) {
      return std::unexpected(durable.error());
    }
    return first;
  }
  const auto counted = channel::ask(channel, sequencer_calls::Count{name, numbers});
  if (!counted) return std::unexpected(counted.error());
  return counted->first;
}

}  // namespace espalier::client
