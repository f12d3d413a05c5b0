// SPDX-License-Identifier: Apache-2.0
// A progress line on the error stream, if that is a terminal.
#pragma once

#include <string_view>

#include "bench/output.hpp"

namespace espalier::bench {

/// Thread: one at a time. Nothing is printed unless Output::err is a terminal.
class Progress {
 public:
  explicit Progress(const Output& output)
      : err_(output.err), on_(output.err_is_terminal) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// Replaces the line.
  void show(std::string_view what);
  /// Removes it, so that something else can be printed.
  void clear();

 private:
  std::ostream& err_;
  bool on_;
  bool shown_ = false;
};

}  // namespace espalier::bench
