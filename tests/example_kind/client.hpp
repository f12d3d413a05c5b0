// SPDX-License-Identifier: Apache-2.0
// The handle of a queue in a store of this process, on a node, or behind a device.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "channel/no_memory.hpp"
#include "channel/reached.hpp"
#include "client/store_impl.hpp"
#include "tests/example_kind/calls.hpp"

namespace espalier::example {

class QueueHandle {
 public:
  // Errors of all calls: out_of_memory (of this process), forked; of a node: not_permitted,
  // connection_lost.

  /// Errors: already_exists, invalid_argument (an empty or too long name).
  static Result<QueueHandle> create(const Store& store, std::string_view name) {
    return reach(store, queue_calls::Create{name});
  }
  /// Errors: not_found, wrong_kind.
  static Result<QueueHandle> open(const Store& store, std::string_view name) {
    return reach(store, queue_calls::Open{name});
  }

  /// Returns the entry's number. Errors: not_found (the queue was dropped); out_of_memory (too many
  /// bytes wait already); invalid_argument (more than 65535 bytes).
  [[nodiscard]] Result<std::uint64_t> push(std::string_view bytes) const {
    if (bytes.size() > queue_calls::kBytesMax) return fail(Code::invalid_argument);
    const auto pushed = ask(queue_calls::Push{queue_.number(), bytes});
    if (!pushed) return std::unexpected(pushed.error());
    return pushed->number;
  }
  /// The oldest entry; nothing: the queue is empty. Errors: not_found (it was dropped).
  [[nodiscard]] Result<std::optional<Queue::Entry>> pop() const {
    auto popped = ask(queue_calls::Pop{queue_.number()});
    if (!popped) return std::unexpected(popped.error());
    if (!popped->found) return std::nullopt;
    return Queue::Entry{popped->number, std::move(popped->bytes)};
  }
  /// Errors: not_found (it was dropped).
  [[nodiscard]] Result<std::uint64_t> length() const {
    const auto counted = ask(queue_calls::Count{queue_.number()});
    if (!counted) return std::unexpected(counted.error());
    return counted->pushed - counted->popped;
  }

 private:
  explicit QueueHandle(channel::Reached<Queue> queue) : queue_(std::move(queue)) {}
  template <class Request>
  static Result<QueueHandle> reach(const Store& store, const Request& request) {
    return client::or_out_of_memory([&] {
      return channel::reach<Queue>(client::StoreImpl::of(store).channel(), request,
                                   [](channel::Reached<Queue>&& queue, const queue_calls::Opened&) {
                                     return QueueHandle(std::move(queue));
                                   });
    });
  }
  template <class Request>
  Result<typename Request::Reply> ask(const Request& request) const {
    return client::or_out_of_memory([&] { return queue_.ask(request); });
  }

  channel::Reached<Queue> queue_;
};

}  // namespace espalier::example
