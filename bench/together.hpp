// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace espalier::bench {

/// Runs `work(i)` on so many pinned threads, which begin together when `prepare(i)` is done on all
/// of them. Returns the seconds from the first one's start to the last one's end.
/// Errors: rethrows what the first of them threw; if preparing failed anywhere, none works.
double run_together(std::uint32_t threads, const std::function<void(std::uint32_t)>& prepare,
                    const std::function<void(std::uint32_t)>& work);

}  // namespace espalier::bench
