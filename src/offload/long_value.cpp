// SPDX-License-Identifier: Apache-2.0
#include "offload/long_value.hpp"

#include <algorithm>
#include <utility>

#include "offload/connection.hpp"
#include "offload/payload_reader.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

LongAnswer::LongAnswer(base::EpochPin pin, rings::MessageShare& share, std::vector<std::byte> head,
                       std::string_view value)
    : pin_(std::move(pin)), share_(share), head_(std::move(head)), value_(value) {
  share_.take_anyway(bytes());  // who asks has looked whether there is as much
}

std::unique_ptr<LongAnswer> LongAnswer::begin(Call& call, std::vector<std::byte>&& head,
                                              std::string_view value) {
  base::EpochPin pin = call.map().pin();
  if (!pin) return nullptr;
  return std::unique_ptr<LongAnswer>(
      new LongAnswer(std::move(pin), call.connection().share, std::move(head), value));
}

Next LongAnswer::copy(Call& call) {
  return call.helper_steps([this](StepContext& context) { return step(context); });
}

JobStep LongAnswer::step(StepContext& context) {
  if (message_.empty()) {
    message_.reserve(wire::kResponseHeaderBytes + bytes());
    message_.resize(wire::kResponseHeaderBytes);
    message_.insert(message_.end(), head_.begin(), head_.end());
  }
  while (copied_ != value_.size()) {
    const auto piece = bytes_of_text(value_.substr(copied_, kCopiedBytes));
    message_.insert(message_.end(), piece.begin(), piece.end());
    copied_ += piece.size();
    if (context.should_return()) return JobStep::again;
  }
  pin_ = base::EpochPin();
  return JobStep::done;
}

Next copy_staged(Call& call, tree::StagedValue& staged) {
  return call.helper_steps([&staged](StepContext& context) {
    while (!staged.copy(kCopiedBytes)) {
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

}  // namespace espalier::offload
