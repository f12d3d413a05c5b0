// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?"
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace espalier::base {

/// Number of letters to insert, remove, replace or swap with their neighbour to turn `a` into `b`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` most likely was meant to be, or an empty string if none is near: at
/// most one mistake in three letters, or a beginning that only one candidate has.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace espalier::base
