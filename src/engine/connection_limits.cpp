// SPDX-License-Identifier: Apache-2.0
#include "engine/connection_limits.hpp"

#include <algorithm>

#include "base/places.hpp"

namespace espalier::offload {

ConnectionPlace::~ConnectionPlace() {
  if (limits_ != nullptr) limits_->give(*account_, ring_bytes_);
}

std::uint32_t ConnectionLimits::principal_max() const {
  if (options_.principal_max != 0) return options_.principal_max;
  return std::max(1u, options_.connections_max - options_.connections_max / 2);
}

// Ring memory that one more connection of this principal may take.
std::uint64_t ConnectionLimits::ring_bytes_left(const PrincipalAccount& account,
                                                bool runs_node) const {
  const auto rest = [](std::uint64_t all, std::uint64_t taken) {
    return taken < all ? all - taken : 0;
  };
  const std::uint64_t all = options_.ring_bytes_max;
  if (runs_node) return rest(all, ring_bytes_);
  return std::min(rest(all - all / kReserve, ring_bytes_),
                  rest(all / 2, account.connections.ring_bytes));
}

Result<ConnectionPlace> ConnectionLimits::take(const PrincipalRef& account, bool runs_node,
                                               const wire::ConnectionLayout& layout) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t all = options_.connections_max;
  if (connections_ >= all) return base::full(base::Places::connections, all);
  if (!runs_node && connections_ >= all - kept_of(all)) {
    ++refused_;
    return base::full(base::Places::connections, all);
  }
  if (!runs_node && account->connections.count >= principal_max()) {
    ++refused_;
    return base::full(base::Places::principal_connections, principal_max());
  }
  const std::uint64_t bytes = layout.bytes();
  if (bytes > ring_bytes_left(*account, runs_node)) {
    ++refused_;
    return fail(Code::out_of_memory, static_cast<std::uint32_t>(options_.ring_bytes_max >> 20));
  }
  ++connections_;
  ++account->connections.count;
  ring_bytes_ += bytes;
  account->connections.ring_bytes += bytes;
  return ConnectionPlace(*this, account, bytes);
}

Result<ConnectionPlace> ConnectionLimits::take_smaller(const PrincipalRef& account, bool runs_node,
                                                       wire::ConnectionLayout& layout) {
  std::uint64_t part = 0;
  {
    const std::lock_guard lock(mutex_);
    part = ring_bytes_left(*account, runs_node) / kRingPart;
  }
  while (layout.bytes() > part) {
    std::uint32_t& larger = layout.response_slots >= layout.request_slots ? layout.response_slots
                                                                          : layout.request_slots;
    if (larger <= wire::kRingSlotsMin) break;
    larger /= 2;
  }
  return take(account, runs_node, layout);
}

void ConnectionLimits::give(PrincipalAccount& account, std::uint64_t ring_bytes) {
  const std::lock_guard lock(mutex_);
  --connections_;
  --account.connections.count;
  ring_bytes_ -= ring_bytes;
  account.connections.ring_bytes -= ring_bytes;
}

ConnectionLimits::Numbers ConnectionLimits::numbers() const {
  const std::lock_guard lock(mutex_);
  Numbers numbers;
  numbers.connections = connections_;
  numbers.connections_max = options_.connections_max;
  numbers.principal_max = principal_max();
  numbers.ring_bytes = ring_bytes_;
  numbers.ring_bytes_max = options_.ring_bytes_max;
  numbers.principal_ring_bytes_max = options_.ring_bytes_max / 2;
  numbers.kept = kept_of(options_.connections_max);
  numbers.refused = refused_;
  return numbers;
}

PrincipalAccount::Connections ConnectionLimits::taken_by(const PrincipalAccount& account) const {
  const std::lock_guard lock(mutex_);
  return account.connections;
}

}  // namespace espalier::offload
