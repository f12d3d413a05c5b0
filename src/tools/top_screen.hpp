// SPDX-License-Identifier: Apache-2.0
// The picture of `espalier top`, as lines of text: a pure function of the data and of the room.
//
// Invariants: (1) no line has more columns than there are, and there are no more lines than rows.
// (2) Every byte that comes from a node is made printable here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/screen.hpp"
#include "tools/top_view.hpp"

namespace espalier::tools {

enum class TopSort : std::uint8_t { activity, size, name };

[[nodiscard]] std::string_view name(TopSort sort);
/// The sort order after this one (key s).
[[nodiscard]] TopSort next(TopSort sort);

struct TopPicture {
  std::string_view address;
  TopSort sort = TopSort::activity;
  std::string_view trouble{};  ///< why nothing newer is shown; empty: there is none
};

/// Cost: linear in maps and offloads, and a sort of them.
[[nodiscard]] std::vector<ScreenLine> draw_top(const TopView& view, const TopPicture& picture,
                                               ScreenSize size);

}  // namespace espalier::tools
