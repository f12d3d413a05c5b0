// SPDX-License-Identifier: Apache-2.0
// The first line of each message of a switch's control, either way: a word, and how many bytes
// follow. switch_control.hpp defines the words.
//
// Thread: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::dataplane {

/// What a request may bring: some millions of entries.
inline constexpr std::uint64_t kControlBytesMax = std::uint64_t{64} << 20;
/// For a request, and for its answer.
inline constexpr std::uint64_t kControlLongestNs = 10'000'000'000;
inline constexpr std::size_t kControlLineBytesMax = 200;

struct ControlLine {
  std::string_view word;
  std::uint64_t bytes = 0;
};
/// Reads one, without its end. Nothing: it is none, or announces more than kControlBytesMax.
[[nodiscard]] std::optional<ControlLine> read_control_line(std::string_view line);
/// The line and what follows it; without a number where nothing does, unless `always`.
[[nodiscard]] std::string control_text(std::string_view word, std::string_view body,
                                       bool always = false);

}  // namespace espalier::dataplane
