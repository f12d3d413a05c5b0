// SPDX-License-Identifier: Apache-2.0
#include "engine/long_answer.hpp"

#include <utility>

#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "memory/staged_bytes.hpp"
#include "rings/response_ring.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

LongAnswer::LongAnswer(Call& call, std::shared_ptr<const void> kept, base::EpochPin pin,
                       std::string_view head, std::string_view value)
    : kept_(std::move(kept)),
      pin_(std::move(pin)),
      ring_(call.connection().ring(call.response_ring())),
      payload_bytes_(head.size() + value.size()),
      message_(wire::kResponseHeaderBytes),
      value_(value) {
  const auto bytes = bytes_of_text(head);
  message_.insert(message_.end(), bytes.begin(), bytes.end());
}

LongAnswer::~LongAnswer() {
  if (promised_) ring_.take_back(message_bytes());
}

Next LongAnswer::copy(Call& call) {
  if (!std::exchange(promised_, true)) ring_.promise(message_bytes());
  return call.helper_steps_when_possible([this](StepContext& context) { return step(context); });
}

JobStep LongAnswer::step(StepContext& context) {
  message_.reserve(message_bytes());
  while (!value_.empty()) {
    const auto piece = bytes_of_text(value_.substr(0, kCopiedBytes));
    message_.insert(message_.end(), piece.begin(), piece.end());
    value_.remove_prefix(piece.size());
    if (context.should_return() && !value_.empty()) return JobStep::again;
  }
  pin_ = base::EpochPin();
  return JobStep::done;
}

Next LongAnswer::answer(Call& call) {
  promised_ = false;
  return call.answer(header, std::move(message_));
}

void LongAnswer::send_items(Call& call, const wire::ResponseHeader& fields) {
  promised_ = false;
  call.send_chunk(wire::ChunkKind::items, fields, std::move(message_));
}

Next copy_staged(Call& call, memory::StagedBytes& staged) {
  return call.helper_steps_when_possible([&staged](StepContext& context) {
    while (!staged.copy(kCopiedBytes)) {
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

}  // namespace espalier::offload
