// SPDX-License-Identifier: Apache-2.0
// What one connection takes of a node's limits (connection_limits.hpp).
#pragma once

#include <cstdint>
#include <utility>

#include "engine/principal_ref.hpp"

namespace espalier::offload {

class ConnectionLimits;

/// Returns the place when it is destroyed.
class ConnectionPlace {
 public:
  ConnectionPlace() = default;
  ConnectionPlace(ConnectionPlace&& other) noexcept
      : limits_(std::exchange(other.limits_, nullptr)),
        account_(std::move(other.account_)),
        ring_bytes_(other.ring_bytes_) {}
  ConnectionPlace& operator=(ConnectionPlace&& other) noexcept {
    std::swap(limits_, other.limits_);
    std::swap(account_, other.account_);
    std::swap(ring_bytes_, other.ring_bytes_);
    return *this;
  }
  ~ConnectionPlace();

 private:
  friend class ConnectionLimits;
  ConnectionPlace(ConnectionLimits& limits, PrincipalRef account, std::uint64_t ring_bytes)
      : limits_(&limits), account_(std::move(account)), ring_bytes_(ring_bytes) {}

  ConnectionLimits* limits_ = nullptr;
  PrincipalRef account_;
  std::uint64_t ring_bytes_ = 0;
};

}  // namespace espalier::offload
