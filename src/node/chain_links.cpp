// SPDX-License-Identifier: Apache-2.0
#include "node/chain_links.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/try_reserve.hpp"
#include "channel/peer/session_link.hpp"
#include "node/chain_calls.hpp"

namespace espalier::node {

// Destroys links first: their completions use the other fields.
ChainLinks::~ChainLinks() { links_.clear(); }

ChainLinks::Link* ChainLinks::find(std::uint32_t member) {
  const auto found = std::ranges::find(links_, member, &Link::member);
  return found != links_.end() ? &*found : nullptr;
}

// A silent member is probed and given up within T, and retried at the same interval.
std::vector<ChainLinks::LinkPointer> ChainLinks::meet(const chain::View& view, std::uint32_t self) {
  const std::uint64_t fence_ns = view.fence_ms * 1'000'000;
  std::vector<chain::MemberEntry> others = view.members;
  if (view.joining) others.push_back(*view.joining);
  for (const chain::MemberEntry& entry : others) {
    if (entry.number == self || find(entry.number) != nullptr) continue;
    const auto address = fabric::parse(entry.address);
    if (!address) continue;
    peer::PeerOptions options;
    options.address = *address;
    options.budget = &budget_;
    options.timeout_ns = fence_ns;
    options.silence_ns = fence_ns;
    options.answer_ns = 2 * fence_ns;
    options.pause_ns = fence_ns / 20;
    options.pause_max_ns = fence_ns / 4;
    links_.push_back({entry.number, std::make_unique<peer::SessionLink>(options, wake_)});
  }
  std::vector<LinkPointer> gone;
  gone.reserve(links_.size());
  for (Link& each : links_) {
    const auto found = std::ranges::find(others, each.member, &chain::MemberEntry::number);
    if (found == others.end()) gone.push_back(std::move(each.link));
  }
  std::erase_if(links_, [](const Link& each) { return each.link == nullptr; });
  return gone;
}

bool ChainLinks::say(const chain::Message& message, std::string_view records) {
  Link* const link = find(message.to);
  if (link == nullptr || link->said == kSaidMax) return false;
  if (free_.empty()) {
    base::reserve_more(free_, said_.size() + 1);  // all of them may be free
    said_.emplace_back();
    free_.push_back(said_.size() - 1);
  }
  const std::size_t place = free_.back();
  Said& said = said_[place];
  said.sent = message;
  said.answer = {.into = said.room};
  const chain_calls::Say request{message, records};
  const wire::RequestMessage<chain_calls::Say> call(request);
  if (!link->link->call(channel::PeerLink::kAnySession, call.get(), said.answer, place)) {
    return false;
  }
  free_.pop_back();
  ++link->said;
  return true;
}

bool ChainLinks::turn(std::vector<Ended>& ended) {
  base::reserve_more(ended, said_.size());
  ended_ = &ended;
  bool moved = false;
  for (Link& each : links_) {
    each.link->ring();
    moved = each.link->poll(*this) || moved;
  }
  ended_ = nullptr;
  return moved;
}

void ChainLinks::ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status) {
  Said& said = said_[owner];
  Ended ended{said.sent, std::nullopt};
  const std::string_view payload(reinterpret_cast<const char*>(said.room.data()),
                                 std::min(said.room.size(), said.answer.payload_bytes));
  if (how == fabric::PostEnd::done && said.answer.header.code == 0) {
    const auto reply = wire::read_reply<chain_calls::Said>(said.answer.header, payload);
    if (reply) ended.answer = reply->said;
  }
  Link* const link = find(said.sent.to);
  if (link != nullptr) --link->said;
  free_.push_back(owner);    // reserved
  ended_->push_back(ended);  // reserved, too
}

bool ChainLinks::waits() const {
  return std::ranges::any_of(links_, [](const Link& each) { return each.link->waits(); });
}

std::uint64_t ChainLinks::sleep_limit_ns() const {
  std::uint64_t limit_ns = std::numeric_limits<std::uint64_t>::max();
  for (const Link& each : links_) limit_ns = std::min(limit_ns, each.link->sleep_limit_ns());
  return limit_ns;
}

}  // namespace espalier::node
