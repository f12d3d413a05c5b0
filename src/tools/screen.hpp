// SPDX-License-Identifier: Apache-2.0
// A full-screen terminal, for a command that redraws pictures and is controlled by keys: the
// interface that tests replace. tools/terminal_screen.hpp is the real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace espalier::tools {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: unlimited
};

struct ScreenLine {
  std::string text;      ///< printable, without control characters
  bool heading = false;  ///< stands out
  friend bool operator==(const ScreenLine&, const ScreenLine&) = default;
};

struct ScreenEvent {
  enum class Kind : std::uint8_t {
    time,     ///< timed out
    key,      ///< of `key`
    resized,  ///< or resumed: the picture must be redrawn
    end,      ///< by a signal, or because the terminal is gone
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
  /// Waits for the next event, at most so long.
  [[nodiscard]] virtual ScreenEvent wait(std::uint64_t ns) = 0;
};

}  // namespace espalier::tools
