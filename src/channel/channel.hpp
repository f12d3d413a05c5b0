// SPDX-License-Identifier: Apache-2.0
// The way from a handle to the objects of a store: to those of this process, or to those of a node.
// What a kind's handles ask for is a call (wire/call_codec.hpp); a handle is one class whichever
// way it goes (channel/reached.hpp).
//
// An object of a node is known by a number, which only the node that gave it knows: one that starts
// anew, or another at the same address, gives its own. So a call on an object says which node is
// meant.
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

/// Why there is none, perhaps with words for people behind what the code says.
using Refusal = TableError;

/// What a node answered, and which one.
struct Answer {
  Reply reply;
  NodeNumber node = 0;
};

/// Takes an answer that made something; what it throws undoes that.
using TakeAnswer = std::function<void(Answer&&)>;

/// Made by base::make_shared_until_fork(), for copies that fork() makes are left as they are.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// The objects, where they are of this process: nothing is sent. Null: they lie on a node.
  [[nodiscard]] catalog::Catalog* own_objects() const { return own_objects_; }
  /// What kinds keep beside them; null: as above.
  [[nodiscard]] store::StoreParts* own_parts() const { return own_parts_; }

  // Of a node. Errors: what it refused; connection_lost, and whatever keeps this process from
  // connecting; std::bad_alloc. Cost: one round trip. Requires: there are no own objects.

  /// Sends a request and waits for its answer.
  /// Errors: besides, not_found (`node` is named, and another one has come).
  virtual std::expected<Answer, Refusal> ask(const wire::CallMessage& request,
                                             std::optional<NodeNumber> node = {}) = 0;
  /// The same of a request that makes something. Once the node has done so, there may be no memory
  /// for its answer, or for what `take` makes of it: then the same session asks for `undo`, and
  /// this throws.
  virtual std::expected<void, Refusal> make(const wire::CallMessage& request,
                                            const wire::CallMessage& undo,
                                            const TakeAnswer& take) = 0;

  /// Whether another process made it, which forked this one. Cost: a relaxed load.
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
