// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/offload/pooled_rows.hpp"

#include "base/assert.hpp"
#include "engine/principal_accounts.hpp"

namespace espalier::offload {
namespace {

// Other requests may be refused while too much is counted.
bool take_counted(std::atomic<std::uint64_t>& counted, std::uint64_t bytes, std::uint64_t most) {
  if (counted.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most) return true;
  counted.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

}  // namespace

PooledRows::~PooledRows() {
  if (scheduler_ == nullptr) return;
  account_->parts.of<PooledShare>().bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  scheduler_->fetch_sub(bytes_, std::memory_order_relaxed);
}

bool PooledRows::take(std::uint64_t bytes, const PrincipalRef& account,
                      const PooledMemory& memory) {
  ESPALIER_ASSERT(scheduler_ == nullptr);
  std::atomic<std::uint64_t>& share = account->parts.of<PooledShare>().bytes;
  if (!take_counted(share, bytes, PooledShare::kBytesMax)) return false;
  if (!take_counted(*memory.bytes, bytes, PooledMemory::kBytesMax)) {
    share.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  account_ = account;
  scheduler_ = memory.bytes;
  bytes_ = bytes;
  return true;
}

}  // namespace espalier::offload
