// SPDX-License-Identifier: Apache-2.0
// Calls on an object through its handle, wherever the object is. For each of its calls a kind
// defines the action once, in the namespace of the calls, for nodes and stores of this process
// alike:
//
//   Result<std::shared_ptr<T>> obtain(catalog::Catalog&, const Create&);  // creates or opens one
//   Opened Opened::of(const T&);                                          // the reply to that
//   Result<Taken> execute(T&, const Take&);                               // or a Refusal, in words
//
// The reply of a call that opens an object has its number as `id`. An `execute` must refuse a
// dropped object, since handles of this process call it directly, and must accept or refuse every
// length that the row permits. Calls that take several steps at a node, or need the session, have
// handlers of their own (engine/typed_call.hpp).
//
// Thread: any.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/object.hpp"
#include "channel/channel.hpp"
#include "channel/objects.hpp"
#include "channel/reached_object.hpp"
#include "wire/call_codec.hpp"

namespace espalier::channel {

template <class T>
[[nodiscard]] Result<T> without_words(Result<T> result) {
  return result;
}
template <class T>
[[nodiscard]] Result<T> without_words(std::expected<T, Refusal> result) {
  if (!result) return std::unexpected(result.error().error);
  return *std::move(result);
}

/// A kind whose calls answer only what is released already, or make no records: callers need not
/// wait.
template <class T>
concept AnswersReleased = requires {
  { T::kAnswersReleased } -> std::convertible_to<bool>;
} && T::kAnswersReleased;

/// As await_answer() of objects.hpp.
template <class R>
Result<void> await_answer_of(catalog::RedoSink* sink, const Result<R>& reply) {
  return await_answer(sink, reply ? nullptr : &reply.error());
}

template <class T>
template <class Request>
Result<typename Request::Reply> Reached<T>::ask(const Request& request) const {
  static_assert(catalog::ObjectOfKind<T>);
  const At& at = *at_;
  if (at.own == nullptr) return channel::ask(*at.channel, request, at.node);
  if (at.mark.is_copy()) return fail(Code::forked);
  if (const auto fault = wire::fault_of(request)) {
    return fail(Code::invalid_argument, fault->detail);
  }
  auto reply = without_words(execute(*at.own, request));
  if constexpr (Request::kCall.changes && !AnswersReleased<T>) {
    if (auto durable = await_answer_of(at.own->redo(), reply); !durable) {
      return std::unexpected(durable.error());
    }
  }
  return reply;
}

/// An object used in this process. If its effects are recorded, it keeps its store, and so the
/// log's sink, alive.
template <class T>
std::shared_ptr<T> with_store(std::shared_ptr<T> object, const std::shared_ptr<Channel>& channel) {
  if (object->redo() == nullptr) return object;
  struct WithStore {
    std::shared_ptr<Channel> channel;  // destroyed last
    std::shared_ptr<T> object;
  };
  const auto kept = base::make_shared_until_fork<WithStore>(channel, std::move(object));
  return {kept, kept->object.get()};
}

/// The same for a store of this process.
template <class T, class Request, class MakeHandle, class Handle>
Result<Handle> reach_own(const std::shared_ptr<Channel>& channel, const Request& request,
                         const MakeHandle& make_handle) {
  catalog::Catalog& own = *channel->own_objects();
  if (const auto fault = wire::fault_of(request)) {
    return fail(Code::invalid_argument, fault->detail);
  }
  std::string name(request.name);
  auto object = obtain(own, request);
  if (!object) {
    if (auto durable = await_answer_of(own.redo(), object); !durable) {
      return std::unexpected(durable.error());
    }
    return std::unexpected(object.error());
  }
  const std::shared_ptr<T> made = *object;
  try {
    const auto reply = Request::Reply::of(*made);  // read before the wait, which covers it
    auto durable = Request::kCall.changes ? await_answer_of(own.redo(), object)
                                          : channel::await_opened(own, reply.id);
    if (!durable) return std::unexpected(durable.error());
    return make_handle(Reached<T>(std::move(name), with_store(*std::move(object), channel)), reply);
  } catch (...) {  // no memory for a handle: then no object is created either
    const catalog::EntryPointer named =
        Request::kCall.changes ? own.find_any(request.name) : nullptr;
    if (named != nullptr && named->object == made)
      static_cast<void>(own.drop(request.name, T::kKind));
    throw;
  }
}

/// Creates or opens an object, as the request says; returns `make_handle(Reached<T>, reply)`.
/// Throws std::bad_alloc, as make_handle may, and then has created no object.
/// Errors: those of the call, and as Reached::ask.
template <class T, class Request, class MakeHandle>
auto reach(const std::shared_ptr<Channel>& channel, const Request& request,
           const MakeHandle& make_handle) {
  static_assert(Request::kCall.opens, "its reply tells an object's number");
  using Opened = typename Request::Reply;
  using Handle = decltype(make_handle(std::declval<Reached<T>>(), std::declval<const Opened&>()));
  if (channel->is_copy()) return Result<Handle>(fail(Code::forked));
  if (channel->own_objects() != nullptr) {
    return reach_own<T, Request, MakeHandle, Handle>(channel, request, make_handle);
  }
  Result<Handle> handle = fail(Code::corrupt);
  const auto take = [&](Answer&& answer) {
    const auto reply = reply_in<Opened>(answer.reply);
    if (!reply) return;
    handle =
        make_handle(Reached<T>(std::string(request.name), channel, answer.node, reply->id), *reply);
  };
  const wire::RequestMessage<Request> message(request);
  if constexpr (Request::kCall.changes) {
    const auto made = make_object(*channel, message.get(), request.name, T::kKind, std::ref(take));
    if (!made) handle = std::unexpected(made.error().error);
  } else {
    auto answer = channel->ask(message.get());
    if (answer) {
      take(*std::move(answer));
    } else {
      handle = std::unexpected(answer.error().error);
    }
  }
  return handle;
}

}  // namespace espalier::channel
