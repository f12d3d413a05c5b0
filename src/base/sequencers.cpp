// SPDX-License-Identifier: Apache-2.0
#include "base/sequencers.hpp"

namespace espalier::base {

Result<std::uint64_t> Sequencers::take(std::string_view name, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  auto at = next_.find(name);
  if (at == next_.end()) {
    if (next_.size() >= kMost) return fail(Code::out_of_memory, kMost);
    at = next_.emplace(name, 0).first;
  }
  const std::uint64_t first = at->second;
  at->second += count;
  return first;
}

}  // namespace espalier::base
