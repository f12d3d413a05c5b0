// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/chain_nodes.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace espalier::client {
namespace {

std::unexpected<Error> no_chain(ChainFault fault) {
  return fail(Code::no_chain, static_cast<std::uint32_t>(fault));
}

constexpr ChainFault chain_fault_of(chain::EtcdFault fault) {
  return static_cast<ChainFault>(fault);
}
static_assert(chain_fault_of(chain::EtcdFault::unavailable) == ChainFault::unavailable);
static_assert(chain_fault_of(chain::EtcdFault::refused) == ChainFault::refused);
static_assert(chain_fault_of(chain::EtcdFault::strange) == ChainFault::strange);
static_assert(chain_fault_of(chain::EtcdFault::no_library) == ChainFault::no_library);

ChainNodes::Known made_known(std::vector<OneAddress> nodes) {
  return std::make_shared<const std::vector<OneAddress>>(std::move(nodes));
}

}  // namespace

ChainNodes::ChainNodes(std::vector<OneAddress> nodes) : known_(made_known(std::move(nodes))) {
  ESPALIER_ASSERT(!known_->empty());
}

ChainNodes::ChainNodes(chain::EtcdPlace place) : place_(std::move(place)), known_(made_known({})) {}

ChainNodes::Known ChainNodes::known() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

ChainNodes::Turn ChainNodes::turn(bool is_first) const {
  std::shared_ptr<NodeConnection> connection;  // may end here, and then without the lock
  const std::lock_guard lock(mutex_);
  const std::size_t count = known_->size();
  if (!last_) return {known_, 0, count};
  connection = last_connection_.lock();
  if (connection != nullptr && !connection->lost()) return {known_, *last_, count};
  const bool leaves_out = is_first && is_in_etcd();
  return {known_, (*last_ + 1) % count, count - (leaves_out ? 1 : 0)};
}

void ChainNodes::accepted(const Turn& turn, std::size_t place,
                          const std::shared_ptr<NodeConnection>& connection) {
  const std::lock_guard lock(mutex_);
  if (turn.nodes != known_) return;  // another thread has asked meanwhile
  last_ = place;
  last_connection_ = connection;
}

bool ChainNodes::may_ask() const {
  return is_in_etcd() && base::monotonic_ns() >= may_ask_ns_.load(std::memory_order_relaxed);
}

bool ChainNodes::is_far() const {
  if (is_in_etcd()) return true;
  return std::ranges::any_of(*known(), [](const OneAddress& node) {
    return client::is_far(std::visit([](const auto& one) -> NodeAddress { return one; }, node));
  });
}

Result<void> ChainNodes::ask(std::uint64_t until_ns) {
  ESPALIER_ASSERT(is_in_etcd());
  const auto before = known();
  const std::lock_guard asking(asking_);
  if (known() != before) return {};  // another thread has asked meanwhile
  if (failed_ && !may_ask()) return std::unexpected(*failed_);
  auto nodes = ask_etcd(until_ns);
  may_ask_ns_.store(base::monotonic_ns() + kAskPauseNs, std::memory_order_relaxed);
  failed_ = nodes ? std::nullopt : std::optional(nodes.error());
  if (failed_) return std::unexpected(*failed_);
  auto found = made_known(std::move(*nodes));
  const std::lock_guard lock(mutex_);
  known_ = std::move(found);
  last_.reset();
  return {};
}

// In the order of the chain: the head comes first. An address of a form that this version does not
// know is one of a later version's, and passed over.
Result<std::vector<OneAddress>> ChainNodes::ask_etcd(std::uint64_t until_ns) {
  if (etcd_ == nullptr) {
    auto access = chain::etcd_access_of_process(*place_);
    if (!access) return no_chain(ChainFault::access_file);
    etcd_ = std::make_unique<chain::EtcdMembership>(*place_, std::move(*access));
  }
  const auto view = etcd_->read_until(until_ns);
  if (!view) return no_chain(chain_fault_of(view.error().fault));
  if (!*view) return no_chain(ChainFault::no_chain);
  std::vector<OneAddress> nodes;
  for (const chain::MemberEntry& member : (*view)->members) {
    if (member.clients.empty()) continue;
    if (auto address = parse_one_address(member.clients)) nodes.push_back(std::move(*address));
  }
  if (nodes.empty()) return no_chain(ChainFault::no_addresses);
  return nodes;
}

}  // namespace espalier::client
