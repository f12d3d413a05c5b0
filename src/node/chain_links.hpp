// SPDX-License-Identifier: Apache-2.0
// A member's ways to the other members: a peer link to each, and the messages that they have not
// answered. What a member says ends once: with an answer, or without.
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
  /// `wake`: called by another thread when there is something for turn(). `budget`: of what the
  /// others send; outlives the links.
  ChainLinks(std::function<void()> wake, rings::MessageBudget& budget)
      : wake_(std::move(wake)), budget_(budget) {}
  ChainLinks(const ChainLinks&) = delete;
  ChainLinks& operator=(const ChainLinks&) = delete;
  ~ChainLinks();

  using LinkPointer = std::unique_ptr<channel::PeerLink>;
  /// Has links to the members of a view and to who joins, but for the one of this number, and keeps
  /// those it had. An address that is none has no link: what is said there is not answered. Returns
  /// those that it has no more, whose ends take up to T; what they were to say does not end. They
  /// go before this does.
  [[nodiscard]] std::vector<LinkPointer> meet(const chain::View& view, std::uint32_t self);
  /// Says something to another member. False: it has not left, for too much waits for an answer, or
  /// there is no such member. What has left ends once. Throws std::bad_alloc, and nothing has left.
  [[nodiscard]] bool say(const chain::Message& message, std::string_view records);
  /// Has all of it leave, and adds what has ended. Returns whether anything has. Throws
  /// std::bad_alloc, and nothing has ended.
  bool turn(std::vector<Ended>& ended);
  /// Whether something may end of which nobody wakes the thread.
  [[nodiscard]] bool waits() const;
  [[nodiscard]] std::uint64_t sleep_limit_ns() const;

 private:
  static constexpr std::uint32_t kSaidMax = 24;  // without an answer, to one member

  struct Link {
    std::uint32_t member = 0;
    std::unique_ptr<channel::PeerLink> link;
    std::uint32_t said = 0;
  };
  /// What was said, and room for its answer.
  struct Said {
    chain::Message sent;
    std::array<std::byte, sizeof(chain::Message)> room;
    channel::PeerAnswer answer;
  };
  [[nodiscard]] Link* find(std::uint32_t member);
  void ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status status) override;

  const std::function<void()> wake_;
  rings::MessageBudget& budget_;
  std::deque<Said> said_;  // stays where it is
  std::vector<std::size_t> free_;
  std::vector<Link> links_;
  std::vector<Ended>* ended_ = nullptr;  // of turn()
};

}  // namespace espalier::node
