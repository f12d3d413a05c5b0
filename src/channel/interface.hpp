// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of the public API: interfaces, so that an object may lie in this
// process or elsewhere. In a process that was forked since, nothing of it is called and nothing is
// destroyed: public calls ask is_copy() first (public_call.hpp).
#pragma once

#include "base/fork_mark.hpp"
#include "base/leak_roots.hpp"

namespace espalier::client {

/// Destroyed through this, and never copied, but by fork().
class Interface {
 public:
  Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  virtual ~Interface() = default;

  /// Whether another process made it, which forked this one. Cost: a relaxed load.
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 private:
  const base::ForkMark mark_;
};

/// Leaves what another process made.
struct DeleteUnlessCopy {
  void operator()(Interface* behind) const noexcept {
    if (behind->is_copy()) {
      base::ignore_leak(behind);
    } else {
      delete behind;
    }
  }
};

}  // namespace espalier::client
