// SPDX-License-Identifier: Apache-2.0
// A progress line on a terminal: per cent, rate, time left. It is overwritten in place, at most a
// few times a second, appears after a moment (short work shows nothing), and is erased at the end.
// It is silent if the output is not a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/environment.hpp"

namespace espalier::tools {

class Progress {
 public:
  /// `total_bytes`: total input, if known.
  /// Requires: `environment` outlives this.
  Progress(Environment& environment, std::string label, std::optional<std::uint64_t> total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { wipe(); }

  /// Reports the total work done so far. Cost: one clock reading in kStride calls.
  void update(std::uint64_t done_bytes, std::uint64_t records) {
    if (enabled_ && ++calls_ % kStride == 0) show(done_bytes, records);
  }

  /// The same for work in large pieces. Cost: a clock reading.
  void update_piece(std::uint64_t done_bytes, std::uint64_t records) {
    if (enabled_) show(done_bytes, records);
  }

  /// The same for work counted in items. Cost: a clock reading.
  void update_items(std::uint64_t done, std::uint64_t total);

  /// Erases the line, so that other text can be printed; the next update shows it again.
  void wipe();

  /// The line for given numbers, for tests.
  [[nodiscard]] static std::string line(std::string_view label, std::uint64_t done_bytes,
                                        std::optional<std::uint64_t> total_bytes,
                                        std::uint64_t records, double seconds);
  [[nodiscard]] static std::string items_line(std::string_view label, std::uint64_t done,
                                              std::uint64_t total, double seconds);

 private:
  static constexpr std::uint64_t kStride = 1024;
  static constexpr std::uint64_t kFirstNs = 300'000'000;
  static constexpr std::uint64_t kEveryNs = 100'000'000;

  void show(std::uint64_t done_bytes, std::uint64_t records);
  /// Seconds so far, if the line is due.
  std::optional<double> due();
  void write(const std::string& line);

  Environment& environment_;
  std::string label_;
  std::optional<std::uint64_t> total_bytes_;
  bool enabled_;
  std::uint64_t start_ns_;
  std::uint64_t next_ns_;
  std::uint64_t calls_ = 0;
  bool shown_ = false;
};

}  // namespace espalier::tools
