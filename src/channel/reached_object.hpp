// SPDX-License-Identifier: Apache-2.0
// A handle's reference to an object, wherever it is; reached.hpp has its creation and calls.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/fork_mark.hpp"
#include "base/until_fork.hpp"
#include "channel/node_number.hpp"
#include "espalier/error.hpp"

namespace espalier::channel {

class Channel;

/// Owns an object of this process, or refers to one on a node. Copies share it. Copies in forked
/// processes are left untouched.
template <class T>
class Reached {
 public:
  Reached(std::string name, std::shared_ptr<T> own)
      : at_(base::make_shared_until_fork<At>(std::move(name), nullptr, 0, own->id(),
                                             std::move(own))) {}
  /// `number`: assigned by `node`.
  Reached(std::string name, std::shared_ptr<Channel> channel, NodeNumber node, std::uint32_t number)
      : at_(base::make_shared_until_fork<At>(std::move(name), std::move(channel), node, number,
                                             nullptr)) {}

  [[nodiscard]] const std::string& name() const { return at_->name; }
  /// The object's id in requests.
  [[nodiscard]] std::uint32_t number() const { return at_->number; }
  [[nodiscard]] NodeNumber node() const { return at_->node; }
  /// Null: it is on a node. For callers that use an object of this process directly.
  [[nodiscard]] T* own() const { return at_->own.get(); }

  /// Issues a call on the object, which names it by its id; or by its name, and then the reply may
  /// concern a younger object.
  /// Errors: those of the call; invalid_argument (an invalid request), corrupt (the node's reply
  /// does not parse), and as Channel::ask; forked.
  template <class Request>
  Result<typename Request::Reply> ask(const Request& request) const;

 private:
  struct At {
    At(std::string name_in, std::shared_ptr<Channel> channel_in, NodeNumber node_in,
       std::uint32_t number_in, std::shared_ptr<T> own_in)
        : name(std::move(name_in)),
          channel(std::move(channel_in)),
          node(node_in),
          number(number_in),
          own(std::move(own_in)) {}

    const base::ForkMark mark;
    const std::string name;
    const std::shared_ptr<Channel> channel;  // if it is on a node
    const NodeNumber node;
    const std::uint32_t number;
    const std::shared_ptr<T> own;  // null: it is on a node
  };

  std::shared_ptr<const At> at_;
};

}  // namespace espalier::channel
