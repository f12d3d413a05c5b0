// SPDX-License-Identifier: Apache-2.0
// An object as its handles reach it, wherever it lies. A kind of objects says for each of its calls
// what it does, once, in the namespace of the calls; nodes and stores of this process do it alike:
//
//   Result<std::shared_ptr<T>> obtain(catalog::Catalog&, const Create&);  // makes or opens one
//   Opened Opened::of(const T&);                                          // what that answers
//   Result<Taken> execute(T&, const Take&);                               // or a Refusal, in words
//
// The reply of what opens an object has its number as `id`. What takes more than one step at a
// node, or needs the session, is the kind's own (offload/typed_call.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork_mark.hpp"
#include "catalog/object.hpp"
#include "channel/channel.hpp"
#include "channel/objects.hpp"
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

/// An object of this process, which stays as long as this, or the way to one of a node.
template <catalog::ObjectOfKind T>
class Reached {
 public:
  Reached(std::string name, std::shared_ptr<T> own)
      : name_(std::move(name)), own_(std::move(own)), number_(own_->id()) {}
  /// `node` gave it this number.
  Reached(std::string name, std::shared_ptr<Channel> channel, NodeNumber node, std::uint32_t number)
      : name_(std::move(name)), channel_(std::move(channel)), node_(node), number_(number) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  /// As requests name it.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] NodeNumber node() const { return node_; }

  /// Asks for something of it, which names it by its number; or by its name, and then the reply
  /// may be about a younger one.
  /// Errors: those of the call; invalid_argument (what it asks for cannot be), corrupt (the node's
  /// reply is none), and as Channel::ask; forked.
  template <class Request>
  Result<typename Request::Reply> ask(const Request& request) const {
    if (own_ == nullptr) return channel::ask(*channel_, request, node_);
    if (mark_.is_copy()) return fail(Code::forked);
    if (const auto fault = wire::fault_of(request)) {
      return fail(Code::invalid_argument, fault->detail);
    }
    return without_words(execute(*own_, request));
  }

 private:
  base::ForkMark mark_;
  std::string name_;
  std::shared_ptr<T> own_;            // null: it is a node's
  std::shared_ptr<Channel> channel_;  // of those of a node
  NodeNumber node_ = kAnyNode;
  std::uint32_t number_ = 0;
};

template <class T, class Request, class MakeHandle>
auto obtain_by(const std::shared_ptr<Channel>& channel, const Request& request,
               const MakeHandle& make_handle)
    -> Result<decltype(make_handle(std::declval<Reached<T>>(),
                                   std::declval<const typename Request::Reply&>()))> {
  std::string name(request.name);
  if (catalog::Catalog* const own = channel->own_objects()) {
    auto object = obtain(*own, request);
    if (!object) return std::unexpected(object.error());
    const auto reply = Request::Reply::of(**object);
    return make_handle(Reached<T>(std::move(name), std::move(*object)), reply);
  }
  const wire::RequestMessage<Request> message(request);
  const auto answer = channel->ask(message.get(), kAnyNode);
  if (!answer) return std::unexpected(answer.error().error);
  const auto reply = reply_in<typename Request::Reply>(answer->reply);
  if (!reply) return std::unexpected(reply.error());
  return make_handle(Reached<T>(std::move(name), channel, answer->node, reply->id), *reply);
}

/// Makes an object or opens it, as the request asks; returns `make_handle(Reached<T>, reply)`.
/// Throws std::bad_alloc, as making the handle may, and then has made no object.
/// Errors: those of the call, and as Reached::ask.
template <class T, class Request, class MakeHandle>
auto reach(const std::shared_ptr<Channel>& channel, const Request& request,
           const MakeHandle& make_handle) -> decltype(obtain_by<T>(channel, request, make_handle)) {
  static_assert(Request::kCall.opens, "its reply tells an object's number");
  if (channel->is_copy()) return fail(Code::forked);
  try {
    return obtain_by<T>(channel, request, make_handle);
  } catch (...) {  // no memory for what was made: then it is to go again
    if (Request::kCall.changes) static_cast<void>(drop(*channel, request.name, T::kKind));
    throw;
  }
}

}  // namespace espalier::channel
