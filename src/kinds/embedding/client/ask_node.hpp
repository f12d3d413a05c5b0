// SPDX-License-Identifier: Apache-2.0
// What requests to a node about embedding tables have in common: the words of a refusal are kept.
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

/// What a request says of bags that are whole and follow each other. Points into what is asked.
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

/// What a node answered, of which a reply was read.
template <class Reply>
struct NodeReply {
  channel::Answer answer;

  /// Points into the answer, as it lies now.
  [[nodiscard]] Reply get() const {
    return *wire::read_reply<Reply>(answer.reply.header, answer.reply.payload);
  }
};

/// Asks the node of an object for something, and keeps the words of a refusal.
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
