// SPDX-License-Identifier: Apache-2.0
// Somebody who has dialled and is not let in yet: first silent, then asking.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/ofi/line.hpp"

namespace espalier::fabric::ofi {

class Guest final : public FrameTaker {
 public:
  Guest(std::uint64_t id, std::string peer, Line& line);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& peer() const { return peer_; }
  /// Whether it has said what it wants.
  [[nodiscard]] bool asks() const { return asks_; }
  /// It has hung up, or talked nonsense.
  [[nodiscard]] bool is_gone() const { return line_ == nullptr; }
  [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }
  /// Whether next_request() has told of it.
  bool told = false;

  /// The line goes to somebody else. Requires: !is_gone().
  Line& hand_over();
  /// Sends what the line owes. Requires: !is_gone().
  void flush() { line_->out().flush(); }
  /// Says no.
  void turn_away();

  void take_frame(std::span<const std::byte> frame) override;
  void lose_line() override;

 private:
  std::uint64_t id_;
  std::string peer_;
  Line* line_;
  bool asks_ = false;
  std::vector<std::byte> data_;
};

}  // namespace espalier::fabric::ofi
