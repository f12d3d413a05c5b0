// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/guest.hpp"

#include <utility>

#include "fabric/endpoint.hpp"
#include "fabric/ofi/greeting.hpp"
#include "fabric/ofi/record_reader.hpp"

namespace espalier::fabric::ofi {

Guest::Guest(std::uint64_t id, std::string peer, Line& line)
    : id_(id), peer_(std::move(peer)), line_(&line) {
  line_->hand_to(*this);
}

Guest::~Guest() {
  if (line_ != nullptr) line_->let_go(true);
}

Line& Guest::hand_over() { return *std::exchange(line_, nullptr); }

void Guest::turn_away() {
  if (line_ == nullptr) return;
  wire::ofi::RecordHead last{};
  last.kind = static_cast<std::uint8_t>(wire::ofi::RecordKind::refused);
  line_->out().say_farewell(last);
  line_->out().flush();
  hand_over().let_go(false);
}

// A greeting, once, with nothing behind it: whoever asks waits for the answer. But it may say
// farewell, or frames without records.
void Guest::take_frame(std::span<const std::byte> frame) {
  auto reader = RecordReader::open(frame);
  if (!reader || !line_->out().peer_took(reader->head().taken)) return turn_away();
  while (!reader->at_end()) {
    const auto record = reader->next();
    if (record && record->kind() == wire::ofi::RecordKind::end) return lose_line();
    const auto data = record && !asks_ && record->kind() == wire::ofi::RecordKind::hello
                          ? read_greeting(*record, kConnectDataMax)
                          : std::nullopt;
    if (!data) return turn_away();
    asks_ = true;
    data_.assign(data->begin(), data->end());
  }
}

void Guest::lose_line() {
  if (line_ != nullptr) hand_over().let_go(true);
}

}  // namespace espalier::fabric::ofi
