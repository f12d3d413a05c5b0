// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace espalier::bench {

/// Runs `work(i)` on so many pinned threads, which begin together when `prepare(i)` is done on all
/// of them. Returns the seconds from the first start to the last end. Errors: rethrows the first
/// exception; if a preparation failed, nothing is run.
double run_together(std::uint32_t threads, const std::function<void(std::uint32_t)>& prepare,
                    const std::function<void(std::uint32_t)>& work);

}  // namespace espalier::bench
