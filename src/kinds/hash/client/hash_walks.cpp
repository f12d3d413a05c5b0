// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/hash_walks.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "channel/reached.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/hash_walk.hpp"
#include "kinds/hash/walk_items.hpp"

namespace espalier::client {
namespace {

/// A walk by the pieces that a node answers.
class NodeWalk {
 public:
  NodeWalk(channel::Channel& channel, const channel::Reached<hash::HashMap>& object,
           const ItemSink& sink)
      : channel_(channel), object_(object), sink_(sink) {}

  Result<std::uint64_t> run() {
    for (bool more = true; more && wanted_;) {
      const wire::RequestMessage<hash_calls::Walk> message({object_.number(), after_});
      const auto answer = channel_.ask(message.get(), object_.node());
      if (!answer) return std::unexpected(answer.error().error);
      const auto read =
          wire::read_reply<hash_calls::Walked>(answer->reply.header, answer->reply.payload);
      if (!read) return fail(Code::corrupt);
      if (const auto good = take_piece(*read); !good) return std::unexpected(good.error());
      more = read->more;
    }
    return delivered_;
  }

 private:
  Result<void> take_piece(const hash_calls::Walked& piece) {
    std::string_view left = piece.items;
    hash::ItemRead item;
    std::uint32_t count = 0;
    for (; wanted_ && hash::take_item(left, item); ++count) {
      if (item.head.left_out == 0) {
        together_.push_back({item.key, item.value, item.head.version});
        if (together_.size() == kTogether) deliver();
      } else {
        deliver();
        if (const auto good = take_long(item.key); !good) return good;
      }
    }
    deliver();
    if (!wanted_) return {};
    // A last key that is not behind `after_` would make the walk endless.
    const bool bad = count != piece.count || !left.empty() || (count != 0 && item.key == after_);
    if (bad) return fail(Code::corrupt);
    after_ = item.key;
    return {};
  }

  // Skips an item that was erased meanwhile.
  Result<void> take_long(std::string_view key) {
    if (!wanted_) return {};
    const wire::RequestMessage<hash_calls::Get> message({object_.number(), key});
    const auto answer = channel_.ask(message.get(), object_.node());
    if (!answer) return std::unexpected(answer.error().error);
    const auto found =
        wire::read_reply<hash_calls::ItemFound>(answer->reply.header, answer->reply.payload);
    if (!found) return fail(Code::corrupt);
    if (!found->found) return {};
    together_.push_back({key, found->value, found->version});
    deliver();
    return {};
  }

  void deliver() {
    if (together_.empty() || !wanted_) return;
    delivered_ += together_.size();
    wanted_ = sink_(together_);
    together_.clear();
  }

  static constexpr std::size_t kTogether = 256;

  channel::Channel& channel_;
  const channel::Reached<hash::HashMap>& object_;
  const ItemSink& sink_;
  std::string after_;
  std::vector<Item> together_;
  std::uint64_t delivered_ = 0;
  bool wanted_ = true;
};

}  // namespace

Result<std::uint64_t> walk_own(hash::HashMap& map, const ItemSink& sink) {
  const auto lease = hash::HashThreadLease::take(map.store().threads);
  if (!lease) return std::unexpected(lease.error());
  std::uint64_t delivered = 0;
  const auto take = [&](const hash::WalkedItem& walked) {
    const Item item{walked.key, walked.value, walked.version};
    ++delivered;
    return sink({&item, 1});
  };
  hash::HashWalk walk(map);
  while (!map.is_dropped() && !walk.at_end() && walk.step(**lease, take)) {
  }
  if (map.is_dropped()) return fail(Code::not_found, map.id());
  return delivered;
}

Result<std::uint64_t> walk_of_node(channel::Channel& channel,
                                   const channel::Reached<hash::HashMap>& object,
                                   const ItemSink& sink) {
  return NodeWalk(channel, object, sink).run();
}

}  // namespace espalier::client
