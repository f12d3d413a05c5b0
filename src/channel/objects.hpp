// SPDX-License-Identifier: Apache-2.0
// Calls on objects of any kind, over any channel (channel/channel.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/object.hpp"
#include "channel/channel.hpp"
#include "espalier/kind.hpp"
#include "wire/call_codec.hpp"

namespace espalier::wire {
struct SampledObjects;
struct SamplesWanted;
}  // namespace espalier::wire

namespace espalier::session_calls {
struct LogState;
}

namespace espalier::channel {

/// The reply in an answer. Errors: corrupt (it does not parse).
template <class R>
Result<R> reply_in(const Reply& answer) {
  static_assert(!wire::measure_of<R>().borrows(),
                "its bytes would be gone: read the reply where they are");
  auto reply = wire::read_reply<R>(answer.header, answer.payload);
  if (!reply) return fail(Code::corrupt);
  return *std::move(reply);
}

/// Sends a request to a node and waits for its reply. Errors: as Channel::ask; forked, corrupt.
template <class Request>
Result<typename Request::Reply> ask(Channel& channel, const Request& request,
                                    std::optional<NodeNumber> node = {}) {
  if (channel.is_copy()) return fail(Code::forked);
  const wire::RequestMessage<Request> message(request);
  const auto answer = channel.ask(message.get(), node);
  if (!answer) return std::unexpected(answer.error().error);
  return reply_in<typename Request::Reply>(answer->reply);
}

/// As Channel::make(), for an object of this name: the undo drops it.
std::expected<void, Refusal> make_object(Channel& channel, const wire::CallMessage& request,
                                         std::string_view name, ObjectKind kind,
                                         const TakeAnswer& take);

/// Waits until the changes of a call on objects of this process, or what it read when it was
/// refused, are durable in `sink`; null: no log. `refusal`: null if the call succeeded; a refusal
/// that implies that nothing was done or read waits for nothing. Cost: as catalog::await_record().
/// Errors: as there.
Result<void> await_answer(catalog::RedoSink* sink, const Error* refusal);
/// The same for a call that opened an object of this process and has read its properties: waits for
/// that object's records alone.
Result<void> await_opened(const catalog::Catalog& own, std::uint32_t id);

/// The progress of the store's log; `waits`: once everything answered before is durable.
/// Cost: one round trip, or as catalog::await_record().
/// Errors: as Channel::ask; unsupported (the store is in memory alone), kRecordLost.
Result<session_calls::LogState> log_state(Channel& channel, bool waits);

/// A named object of a store.
struct ListedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;
  std::string name;
  catalog::ObjectNumbers numbers{};
  std::string description;                 ///< in the format of its kind
  std::optional<Durability> durability{};  ///< nothing: an older node does not report it
};

/// The objects of a kind, by ascending names. Cost: one round trip.
/// Errors: as Channel::ask; corrupt.
Result<std::vector<ListedObject>> list(Channel& channel, ObjectKind kind = ObjectKind::any);

/// Statistics of the objects that `wanted` selects, or of the one with this name.
/// Cost: one round trip. Errors: as Channel::ask; unsupported (an older node), corrupt.
Result<wire::SampledObjects> samples(Channel& channel, const wire::SamplesWanted& wanted,
                                     std::string_view name = {});

/// Drops an object's name: handles to the object then get an error.
/// Errors: not_found; wrong_kind (detail: its kind); as Channel::ask.
/// Requires: for objects of this process, not a map, which its store drops (StoreImpl::drop_map).
Result<void> drop(Channel& channel, std::string_view name, ObjectKind kind);

/// Renames an object atomically. Errors: as catalog::Catalog::rename(); as Channel::ask.
Result<void> rename(Channel& channel, std::string_view name, std::string_view to, ObjectKind kind,
                    Displaced displaced);

}  // namespace espalier::channel
