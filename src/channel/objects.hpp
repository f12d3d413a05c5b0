// SPDX-License-Identifier: Apache-2.0
// What can be asked of objects of whatever kind, by whichever way (channel/channel.hpp).
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

/// The reply in an answer. Errors: corrupt (it is no such reply).
template <class R>
Result<R> reply_in(const Reply& answer) {
  static_assert(!wire::measure_of<R>().borrows(),
                "its bytes would be gone: read the reply where they are");
  auto reply = wire::read_reply<R>(answer.header, answer.payload);
  if (!reply) return fail(Code::corrupt);
  return *std::move(reply);
}

/// Asks a node, and waits for its reply. Errors: as Channel::ask; forked, corrupt.
template <class Request>
Result<typename Request::Reply> ask(Channel& channel, const Request& request,
                                    std::optional<NodeNumber> node = {}) {
  if (channel.is_copy()) return fail(Code::forked);
  const wire::RequestMessage<Request> message(request);
  const auto answer = channel.ask(message.get(), node);
  if (!answer) return std::unexpected(answer.error().error);
  return reply_in<typename Request::Reply>(answer->reply);
}

/// As Channel::make(), of an object of this name: what undoes that drops it.
std::expected<void, Refusal> make_object(Channel& channel, const wire::CallMessage& request,
                                         std::string_view name, ObjectKind kind,
                                         const TakeAnswer& take);

/// Waits until what a call on objects of this process has changed, or has seen when it was refused,
/// is durable in `sink`; null: there is none. `refusal`: null, it was carried out; one that says
/// that nothing was done or looked at waits for nothing. Cost: as catalog::await_record(). Errors:
/// likewise.
Result<void> await_answer(catalog::RedoSink* sink, const Error* refusal);
/// The same of what one is told that has opened an object of this process, whose facts it has read:
/// the records of that object alone.
Result<void> await_opened(const catalog::Catalog& own, std::uint32_t id);

/// How far the log of the store is; `waits`: once all is durable that was answered before.
/// Cost: one round trip, or as catalog::await_record(). Errors: as Channel::ask; unsupported (it is
/// in memory alone), kRecordLost.
Result<session_calls::LogState> log_state(Channel& channel, bool waits);

/// What is under a name of a store.
struct ListedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;
  std::string name;
  catalog::ObjectNumbers numbers{};
  std::string description;                 ///< in the bytes of its kind
  std::optional<Durability> durability{};  ///< nothing: an older node does not say
};

/// Those of a kind, by ascending names. Cost: one round trip.
/// Errors: as Channel::ask; corrupt.
Result<std::vector<ListedObject>> list(Channel& channel, ObjectKind kind = ObjectKind::any);

/// Statistics of the objects that `wanted` says, or of the one with this name.
/// Cost: one round trip. Errors: as Channel::ask; unsupported (an older node), corrupt.
Result<wire::SampledObjects> samples(Channel& channel, const wire::SamplesWanted& wanted,
                                     std::string_view name = {});

/// Takes an object's name from it: whoever still holds it finds that there is none.
/// Errors: not_found; wrong_kind (detail: its kind); as Channel::ask.
/// Requires: of objects of this process, no map, which its store drops (StoreImpl::drop_map).
Result<void> drop(Channel& channel, std::string_view name, ObjectKind kind);

/// Gives an object another name, in one step. Errors: as catalog::Catalog::rename(); as
/// Channel::ask.
Result<void> rename(Channel& channel, std::string_view name, std::string_view to, ObjectKind kind,
                    Displaced displaced);

}  // namespace espalier::channel
