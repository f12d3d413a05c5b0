// SPDX-License-Identifier: Apache-2.0
// Shared by requests to a node about embedding tables: they keep the words of an error.
//
// Thread: any.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "channel/reached.hpp"
#include "espalier/table_error.hpp"
#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier::client {

template <class T>
std::string_view bytes_of_words(std::span<const T> words) {
  return {reinterpret_cast<const char*>(words.data()), words.size_bytes()};
}

/// A request for whole, consecutive bags. Points into `work`.
[[nodiscard]] inline embedding_calls::Reduce reduce_request(const embedding::ReductionWork& work) {
  const auto count = [](std::size_t size) { return static_cast<std::uint32_t>(size); };
  embedding_calls::Reduce asked;
  asked.shape.reduction = static_cast<std::uint8_t>(work.reduction);
  asked.shape.vector = count(work.vector.size());
  asked.shape.bags = count(work.bags.offsets.size());
  asked.shape.ids = count(work.bags.ids.size());
  asked.shape.weights = count(work.bags.weights.size());
  asked.shape.grouping = work.bags.grouping;
  asked.vector = bytes_of_words(work.vector);
  asked.offsets = bytes_of_words(work.bags.offsets);
  asked.ids = bytes_of_words(work.bags.ids);
  asked.weights = bytes_of_words(work.bags.weights);
  return asked;
}

/// The answer of a node with a reply that was parsed.
template <class Reply>
struct NodeReply {
  channel::Answer answer;

  /// Points into the answer at its current place.
  [[nodiscard]] Reply get() const {
    return *wire::read_reply<Reply>(answer.reply.header, answer.reply.payload);
  }
};

/// Sends a request to the node of an object, and keeps the words of an error.
template <class Object, class Request>
TableResult<NodeReply<typename Request::Reply>> ask_node(channel::Channel& channel,
                                                         const Object& object,
                                                         const Request& request) {
  using Reply = typename Request::Reply;
  if (channel.is_copy()) return std::unexpected(TableError(Error{Code::forked, 0, 0}));
  const wire::RequestMessage<Request> message(request);
  auto answer = channel.ask(message.get(), object.node());
  if (!answer) return std::unexpected(answer.error());
  if (!wire::read_reply<Reply>(answer->reply.header, answer->reply.payload)) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  return NodeReply<Reply>{std::move(*answer)};
}

}  // namespace espalier::client
