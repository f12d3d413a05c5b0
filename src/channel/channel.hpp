// SPDX-License-Identifier: Apache-2.0
// The path from a handle to the objects of a store, in this process or on a node. A kind's handles
// issue calls (wire/call_codec.hpp); a handle has the same class for both paths
// (channel/reached.hpp).
//
// An object of a node has an id, which is valid only at the node that assigned it: a restarted
// node, or another one at the same address, assigns its own. So a call on an object names the node.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>

#include "base/fork_mark.hpp"
#include "catalog/catalog.hpp"
#include "channel/node_number.hpp"
#include "espalier/table_error.hpp"
#include "wire/call_message.hpp"
#include "wire/message.hpp"

namespace espalier::store {
class StoreParts;
}

namespace espalier::channel {

/// An answer without an error.
struct Reply {
  wire::ResponseHeader header{};
  std::string payload;
};

/// An error, perhaps with text for people after that of the code.
using Refusal = TableError;

/// A node's answer, and the number of the node.
struct Answer {
  Reply reply;
  NodeNumber node = 0;
};

/// Receives the answer of a creation; an exception from it undoes the creation.
using TakeAnswer = std::function<void(Answer&&)>;

/// Made by base::make_shared_until_fork(): copies in forked processes are left untouched.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// The catalogue, if the store is in this process: nothing is sent. Null: the store is on a node.
  [[nodiscard]] catalog::Catalog* own_objects() const { return own_objects_; }
  /// The store's state for kinds; null: as above.
  [[nodiscard]] store::StoreParts* own_parts() const { return own_parts_; }

  // For a store on a node. Errors: the node's; connection_lost, and those of connecting;
  // std::bad_alloc. Cost: one round trip. Requires: there are no own objects.

  /// Sends a request and waits for its answer.
  /// Errors: also not_found (`node` is given, and another one is at the address now).
  virtual std::expected<Answer, Refusal> ask(const wire::CallMessage& request,
                                             std::optional<NodeNumber> node = {}) = 0;
  /// The same for a request that creates something. If memory for the answer, or for the result of
  /// `take`, runs out after the node has created it, the same session sends `undo`, and this
  /// throws.
  virtual std::expected<void, Refusal> make(const wire::CallMessage& request,
                                            const wire::CallMessage& undo,
                                            const TakeAnswer& take) = 0;

  /// Whether this is a copy in a forked process. Cost: a relaxed load.
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 protected:
  explicit Channel(catalog::Catalog* own_objects, store::StoreParts* own_parts = nullptr)
      : own_objects_(own_objects), own_parts_(own_parts) {}

 private:
  const base::ForkMark mark_;
  catalog::Catalog* const own_objects_;
  store::StoreParts* const own_parts_;
};

}  // namespace espalier::channel
