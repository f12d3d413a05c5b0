// SPDX-License-Identifier: Apache-2.0
// A member's links to the other members: a peer link to each, and the messages in flight. Each
// message completes once, with an answer or without.
//
// Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "chain/message.hpp"
#include "chain/view.hpp"
#include "channel/peer_link.hpp"
#include "rings/message_budget.hpp"

namespace espalier::node {

class ChainLinks final : private channel::PeerEnds {
 public:
  struct Ended {
    chain::Message sent;
    std::optional<chain::Message> answer;
  };
  /// `wake`: called by another thread when turn() has work. `budget`: of received messages;
  /// outlives the links.
  ChainLinks(std::function<void()> wake, rings::MessageBudget& budget)
      : wake_(std::move(wake)), budget_(budget) {}
  ChainLinks(const ChainLinks&) = delete;
  ChainLinks& operator=(const ChainLinks&) = delete;
  ~ChainLinks();

  using LinkPointer = std::unique_ptr<channel::PeerLink>;
  /// Makes links to the members of a view and the joining node, except `self`, and keeps existing
  /// ones. An invalid address gets no link, and messages to it are not answered. Returns the links
  /// that are no longer needed, which may take up to T to close; messages on them do not complete.
  /// They must be destroyed before this object.
  [[nodiscard]] std::vector<LinkPointer> meet(const chain::View& view, std::uint32_t self);
  /// Sends a message to another member. False: not sent, since too many are in flight, or there is
  /// no such member. A sent message completes once. Throws std::bad_alloc, and nothing was sent.
  [[nodiscard]] bool say(const chain::Message& message, std::string_view records);
  /// Transmits all messages, and adds completions. Returns whether there were any. Throws
  /// std::bad_alloc, and nothing was completed.
  bool turn(std::vector<Ended>& ended);
  /// Whether a completion may come that does not wake the thread.
  [[nodiscard]] bool waits() const;
  [[nodiscard]] std::uint64_t sleep_limit_ns() const;

 private:
  static constexpr std::uint32_t kSaidMax = 24;  // in flight, to one member

  struct Link {
    std::uint32_t member = 0;
    std::unique_ptr<channel::PeerLink> link;
    std::uint32_t said = 0;
  };
  /// A sent message, and room for its answer.
  struct Said {
    chain::Message sent;
    std::array<std::byte, sizeof(chain::Message)> room;
    channel::PeerAnswer answer;
  };
  [[nodiscard]] Link* find(std::uint32_t member);
  void ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status status) override;

  const std::function<void()> wake_;
  rings::MessageBudget& budget_;
  std::deque<Said> said_;  // addresses stay fixed
  std::vector<std::size_t> free_;
  std::vector<Link> links_;
  std::vector<Ended>* ended_ = nullptr;  // argument of turn()
};

}  // namespace espalier::node
