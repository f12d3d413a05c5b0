// SPDX-License-Identifier: Apache-2.0
// The memory that requests to models have for reduced rows, up to 16 MiB each: counted for each
// principal and for each scheduler, so that nobody has a node's heap filled by asking for more than
// it answers.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/account_parts.hpp"
#include "engine/node_parts.hpp"
#include "engine/principal_ref.hpp"

namespace espalier::offload {

/// Of a principal, at all schedulers.
struct PooledShare final : AccountPart {
  static constexpr std::uint64_t kBytesMax = 64 << 20;

  std::atomic<std::uint64_t> bytes{0};
};

/// Of a scheduler. Requests give back what they have of it also when it has gone.
struct PooledMemory final : SchedulerPart {
  static constexpr std::uint64_t kBytesMax = 256 << 20;

  const std::shared_ptr<std::atomic<std::uint64_t>> bytes =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// What one request has of both, until its end.
class PooledRows {
 public:
  PooledRows() = default;
  ~PooledRows();
  PooledRows(const PooledRows&) = delete;
  PooledRows& operator=(const PooledRows&) = delete;

  /// Whether there is as much left of both; else it has none. Requires: it is asked once.
  /// Errors: std::bad_alloc, and it has none.
  [[nodiscard]] bool take(std::uint64_t bytes, const PrincipalRef& account,
                          const PooledMemory& memory);

 private:
  PrincipalRef account_;
  std::shared_ptr<std::atomic<std::uint64_t>> scheduler_;
  std::uint64_t bytes_ = 0;
};

}  // namespace espalier::offload
