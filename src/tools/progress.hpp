// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that tells how far a long piece of work has come: per cent, rate, time
// left. It is written over in place, at most a few times a second, first after a moment (short work
// shows nothing), and wiped when the work is over. Anywhere but on a terminal it is silent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/environment.hpp"

namespace espalier::tools {

class Progress {
 public:
  /// `total_bytes`: what there is to read, where it is known.
  /// Requires: `environment` outlives this.
  Progress(Environment& environment, std::string label, std::optional<std::uint64_t> total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { wipe(); }

  /// Tells that so much is done in all. Cost: one clock reading in kStride calls.
  void update(std::uint64_t done_bytes, std::uint64_t records) {
    if (enabled_ && ++calls_ % kStride == 0) show(done_bytes, records);
  }

  /// The same for work that comes in large pieces. Cost: a clock reading.
  void update_piece(std::uint64_t done_bytes, std::uint64_t records) {
    if (enabled_) show(done_bytes, records);
  }

  /// The same for work that is counted in items. Cost: a clock reading.
  void update_items(std::uint64_t done, std::uint64_t total);

  /// Wipes the line, so that other text can be printed; the next update writes it again.
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
  /// Seconds so far, if the line is to be written now.
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
