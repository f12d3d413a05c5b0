// SPDX-License-Identifier: Apache-2.0
// Base of the implementations behind the handles of the public API, so that an object may be in
// this process or elsewhere. In a forked process nothing of it is called or destroyed: public calls
// check is_copy() first (public_call.hpp).
#pragma once

#include "base/fork_mark.hpp"
#include "base/leak_roots.hpp"

namespace espalier::client {

/// Destroyed through this class, and never copied, except by fork().
class Interface {
 public:
  Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  virtual ~Interface() = default;

  /// Whether this is a copy in a forked process. Cost: a relaxed load.
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 private:
  const base::ForkMark mark_;
};

/// Leaks copies in a forked process.
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
