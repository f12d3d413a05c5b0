// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/long_value.hpp"

#include <utility>

#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/write/staged_value.hpp"
#include "rings/response_ring.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

LongAnswer::LongAnswer(base::EpochPin pin, rings::ResponseRing& ring, std::string_view head,
                       std::string_view value)
    : pin_(std::move(pin)),
      ring_(ring),
      payload_bytes_(head.size() + value.size()),
      message_(wire::kResponseHeaderBytes),
      value_(value) {
  const auto bytes = bytes_of_text(head);
  message_.insert(message_.end(), bytes.begin(), bytes.end());
}

std::unique_ptr<LongAnswer> LongAnswer::begin(Call& call, std::string_view head,
                                              std::string_view value) {
  base::EpochPin pin = map_of(call).pin();
  if (!pin) return nullptr;
  rings::ResponseRing& ring = call.connection().ring(call.response_ring());
  return std::unique_ptr<LongAnswer>(new LongAnswer(std::move(pin), ring, head, value));
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

std::optional<Next> begin_long(Call& call, const wire::ResponseHeader& header,
                               std::string_view head, std::string_view value) {
  ItemReadState& state = call.state<ItemReadState>();
  state.answer = LongAnswer::begin(call, head, value);
  if (!state.answer) return std::nullopt;
  state.answer->header = header;
  return state.answer->copy(call);
}

Next copy_staged(Call& call, tree::StagedValue& staged) {
  return call.helper_steps_when_possible([&staged](StepContext& context) {
    while (!staged.copy(kCopiedBytes)) {
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

}  // namespace espalier::offload
