// SPDX-License-Identifier: Apache-2.0
// An object as its handles keep it, wherever it lies; reached.hpp has how it is made and asked.
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

/// An object of this process, which stays as long as this, or the way to one of a node. Copies
/// share it. Those that fork() makes are left as they are.
template <class T>
class Reached {
 public:
  Reached(std::string name, std::shared_ptr<T> own)
      : at_(base::make_shared_until_fork<At>(std::move(name), nullptr, 0, own->id(),
                                             std::move(own))) {}
  /// `node` gave it this number.
  Reached(std::string name, std::shared_ptr<Channel> channel, NodeNumber node, std::uint32_t number)
      : at_(base::make_shared_until_fork<At>(std::move(name), std::move(channel), node, number,
                                             nullptr)) {}

  [[nodiscard]] const std::string& name() const { return at_->name; }
  /// As requests name it.
  [[nodiscard]] std::uint32_t number() const { return at_->number; }
  [[nodiscard]] NodeNumber node() const { return at_->node; }

  /// Asks for something of it, which names it by its number; or by its name, and then the reply
  /// may be about a younger one.
  /// Errors: those of the call; invalid_argument (what it asks for cannot be), corrupt (the node's
  /// reply is none), and as Channel::ask; forked.
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
    const std::shared_ptr<Channel> channel;  // of those of a node
    const NodeNumber node;
    const std::uint32_t number;
    const std::shared_ptr<T> own;  // null: it is a node's
  };

  std::shared_ptr<const At> at_;
};

}  // namespace espalier::channel
