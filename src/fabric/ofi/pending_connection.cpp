// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/pending_connection.hpp"

#include <utility>

#include "fabric/endpoint.hpp"
#include "fabric/ofi/frame_reader.hpp"
#include "fabric/ofi/greeting.hpp"

namespace espalier::fabric::ofi {

PendingConnection::PendingConnection(std::uint64_t id, std::string peer, Channel& channel)
    : id_(id), peer_(std::move(peer)), channel_(&channel) {
  channel_->hand_to(*this);
}

PendingConnection::~PendingConnection() {
  if (channel_ != nullptr) channel_->let_go(true);
}

Channel& PendingConnection::hand_over() { return *std::exchange(channel_, nullptr); }

void PendingConnection::reject() {
  if (channel_ == nullptr) return;
  wire::ofi::RecordHead last{};
  last.kind = static_cast<std::uint8_t>(wire::ofi::RecordKind::refused);
  channel_->out().send_terminate(last);
  channel_->out().flush();
  hand_over().let_go(false);
}

// A greeting, once, with nothing behind it: a client waits for the answer. But it may send a
// terminate message, or frames without records.
void PendingConnection::take_frame(std::span<const std::byte> frame) {
  auto reader = FrameReader::open(frame);
  if (!reader || !channel_->out().peer_took(reader->head().taken)) return reject();
  while (!reader->at_end()) {
    const auto record = reader->next();
    if (record && record->kind() == wire::ofi::RecordKind::end) return lose_channel();
    const auto data = record && !asks_ && record->kind() == wire::ofi::RecordKind::hello
                          ? read_greeting(*record, kConnectDataMax)
                          : std::nullopt;
    if (!data) return reject();
    asks_ = true;
    data_.assign(data->begin(), data->end());
  }
}

void PendingConnection::lose_channel() {
  if (channel_ != nullptr) hand_over().let_go(true);
}

}  // namespace espalier::fabric::ofi
