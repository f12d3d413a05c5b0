// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/pair.hpp"

#include <algorithm>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/ofi/greeting.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::RecordHead;
using wire::ofi::RecordKind;

Status known(std::uint8_t status) {
  constexpr auto kLast = static_cast<std::uint8_t>(Status::flushed);
  return status <= kLast ? static_cast<Status>(status) : Status::remote_invalid;
}

}  // namespace

Pair::Pair(std::uint32_t number, const QueuePairOptions& options, const Properties& properties,
           const Host& host, Channel& channel)
    : QueuePair(number, options, properties),
      host_(host),
      channel_(&channel),
      queue_(options.send_depth, properties.inline_bytes_max) {
  host_.pairs.push_back(this);
  channel_->hand_to(*this);
}

Pair::~Pair() {
  end(Status::success);
  std::erase(host_.pairs, this);
}

void Pair::greet(std::span<const std::byte> data) {
  write_greeting(channel_->out(), RecordKind::hello, data);
}

void Pair::welcome(std::span<const std::byte> peer_data, std::span<const std::byte> data) {
  write_greeting(channel_->out(), RecordKind::welcome, data);
  become_connected(peer_data);
}

bool Pair::progress(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  if (channel_ == nullptr) return false;
  bool any = false;
  if (state() == State::connected) {
    any = answer_on();
    if (channel_ == nullptr) return true;
    ask_on();
    look_at_clock(now_ns);
  }
  if (channel_ == nullptr) return true;
  channel_->out().flush();
  return any;
}

void Pair::take_frame(std::span<const std::byte> frame) {
  auto reader = FrameReader::open(frame);
  if (!reader) return end(Status::remote_invalid);
  const std::uint64_t done = reader->head().done;
  // More than was asked, or less than before: a protocol violation.
  if (!channel_->out().peer_took(reader->head().taken) || done < peer_did_ || done > asked_bytes_) {
    return end(Status::remote_invalid);
  }
  peer_did_ = done;
  heard_ = true;
  if ((reader->head().flags & wire::ofi::kFlagProbe) != 0) channel_->out().report_soon();
  while (channel_ != nullptr && !reader->at_end()) {
    const auto record = reader->next();
    if (!record) return end(Status::remote_invalid);
    if (record->kind() == RecordKind::end) {
      end_by_peer(*record);
    } else if (state() == State::connecting) {
      take_reply(*record);
    } else if (is_request(record->kind())) {
      take_request(*record);
    } else {
      take_answer(*record);
    }
  }
}

void Pair::take_reply(const Record& record) {
  if (record.kind() == RecordKind::refused) {
    std::exchange(channel_, nullptr)->let_go(true);
    return finish(Status::remote_operation);
  }
  const auto data =
      record.kind() == RecordKind::welcome ? read_greeting(record, kAcceptDataMax) : std::nullopt;
  if (!data) return end(Status::remote_invalid);
  become_connected(*data);
}

// The peer has said why.
void Pair::end_by_peer(const Record& record) {
  std::exchange(channel_, nullptr)->let_go(true);
  const Status failure = known(record.head.failure);
  if (failure != Status::success && at_peer()) {
    complete(queue_.front(), failure);
    queue_.pop();
  }
  finish(known(record.head.status));
}

void Pair::lose_channel() {
  std::exchange(channel_, nullptr)->let_go(true);
  if (!queue_.empty()) {
    complete(queue_.front(), Status::retry_exceeded);
    queue_.pop();
  }
  finish(Status::retry_exceeded);
}

void Pair::fail_oldest(Status why) {
  complete(queue_.front(), why);
  queue_.pop();
  end(why);
}

// `failure`: the status with which the peer completes its oldest request.
void Pair::end(Status why, Status failure) {
  if (state() == State::error) return;
  if (channel_ != nullptr) {
    RecordHead last{};
    last.kind = static_cast<std::uint8_t>(RecordKind::end);
    last.status = static_cast<std::uint8_t>(why);
    last.failure = static_cast<std::uint8_t>(failure);
    channel_->out().send_terminate(last);
    channel_->out().flush();
    std::exchange(channel_, nullptr)->let_go(false);
  }
  finish(why);
}

void Pair::finish(Status why) {
  if (incoming_.receive) {
    complete_receive(*incoming_.receive, Opcode::receive, Status::flushed, 0);
    incoming_.receive.reset();
  }
  for (; !queue_.empty(); queue_.pop()) complete(queue_.front(), Status::flushed);
  enter_error_state(why);
}

}  // namespace espalier::fabric::ofi
