// SPDX-License-Identifier: Apache-2.0
// Quotas for the memory of reduced rows of requests to models, up to 16 MiB each: for each
// principal and for each scheduler, so that no client fills a node's heap by requests for more than
// the node answers.
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

/// The quota of a principal, at all schedulers.
struct PooledShare final : AccountPart {
  static constexpr std::uint64_t kBytesMax = 64 << 20;

  std::atomic<std::uint64_t> bytes{0};
};

/// The quota of a scheduler. Requests return their share even after it is gone.
struct PooledMemory final : SchedulerPart {
  static constexpr std::uint64_t kBytesMax = 256 << 20;

  const std::shared_ptr<std::atomic<std::uint64_t>> bytes =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// The share of one request of both, until its end.
class PooledRows {
 public:
  PooledRows() = default;
  ~PooledRows();
  PooledRows(const PooledRows&) = delete;
  PooledRows& operator=(const PooledRows&) = delete;

  /// Takes a share of both quotas; false: there is not so much left, and it has none. Requires: it
  /// is called once. Errors: std::bad_alloc, and it has none.
  [[nodiscard]] bool take(std::uint64_t bytes, const PrincipalRef& account,
                          const PooledMemory& memory);

 private:
  PrincipalRef account_;
  std::shared_ptr<std::atomic<std::uint64_t>> scheduler_;
  std::uint64_t bytes_ = 0;
};

}  // namespace espalier::offload
