// SPDX-License-Identifier: Apache-2.0
// Sessions of targets that are an espalier::Map, at each place of the map.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bench/target.hpp"
#include "espalier/map.hpp"

namespace espalier::bench {

template <class T>
T value_or_throw(Result<T> result, std::string_view what) {
  if (!result) {
    throw std::runtime_error(fmt::format("{}: {}", what, message(result.error())));
  }
  return std::move(*result);
}

/// One thread's session with the map. Errors: throws std::runtime_error.
std::unique_ptr<TargetSession> open_map_session(const Map& map, std::uint32_t in_flight);

/// Scans the map. Errors: throws std::runtime_error.
Contents contents_of(const Map& map);

MapOptions map_options_of(const TargetOptions& options);

}  // namespace espalier::bench
