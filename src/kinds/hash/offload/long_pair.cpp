// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/offload/long_pair.hpp"

#include <span>

namespace espalier::offload {

LongPairAnswer::LongPairAnswer(std::shared_ptr<hash::HashMap> map, base::EpochPin pin,
                               rings::ResponseRing& ring, std::string_view value)
    : map_(std::move(map)),
      pin_(std::move(pin)),
      ring_(ring),
      value_bytes_(value.size()),
      message_(wire::kResponseHeaderBytes),
      left_(value) {}

LongPairAnswer::~LongPairAnswer() {
  if (promised_) ring_.take_back(message_bytes());
}

Next LongPairAnswer::go_on(Call& call) {
  if (left_.empty()) {
    promised_ = false;
    return call.answer(header, std::move(message_));
  }
  if (!std::exchange(promised_, true)) ring_.promise(message_bytes());
  return call.helper_steps_when_possible([this](StepContext& context) { return copy(context); });
}

JobStep LongPairAnswer::copy(StepContext& context) {
  message_.reserve(message_bytes());
  while (!left_.empty()) {
    const auto piece = std::as_bytes(std::span(left_.substr(0, kCopiedPieceBytes)));
    message_.insert(message_.end(), piece.begin(), piece.end());
    left_.remove_prefix(piece.size());
    if (context.should_return() && !left_.empty()) return JobStep::again;
  }
  pin_ = base::EpochPin();
  return JobStep::done;
}

}  // namespace espalier::offload
