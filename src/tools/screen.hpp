// SPDX-License-Identifier: Apache-2.0
// A whole terminal, for a command that draws one picture after another and is steered by keys: the
// seam that tests replace. tools/terminal_screen.hpp is the real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace espalier::tools {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: as many as it takes
};

struct ScreenLine {
  std::string text;      ///< printable, and none of it steers the terminal
  bool heading = false;  ///< stands out
  friend bool operator==(const ScreenLine&, const ScreenLine&) = default;
};

struct ScreenEvent {
  enum class Kind : std::uint8_t {
    time,     ///< nothing happened until the time was over
    key,      ///< of `key`
    resized,  ///< or shown again: the picture must be drawn anew
    end,      ///< by a signal, or because nobody is there any more
  };
  Kind kind = Kind::time;
  char key = 0;
};

/// Thread: one at a time.
class Screen {
 public:
  virtual ~Screen() = default;
  [[nodiscard]] virtual ScreenSize size() = 0;
  /// Shows these lines from the top, and nothing else.
  virtual void show(std::span<const ScreenLine> lines) = 0;
  /// Waits for whatever comes first, at most so long.
  [[nodiscard]] virtual ScreenEvent wait(std::uint64_t ns) = 0;
};

}  // namespace espalier::tools
