// SPDX-License-Identifier: Apache-2.0
// Answers with long values of maps (engine/long_answer.hpp): from the walk that has found one.
//
// Thread: that of the scheduler.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/long_answer.hpp"
#include "kinds/map/offload/snapshot.hpp"

namespace espalier::offload {

/// What a read of one item keeps.
struct ItemReadState {
  std::shared_ptr<HeldSnapshot> held;  // what it reads, until its walk has ended
  std::unique_ptr<LongAnswer> answer;
};

/// Within the completion, or the items, of the walk that found the value. `head` comes before it.
/// Null: it cannot be pinned here.
std::unique_ptr<LongAnswer> long_answer(Call& call, std::string_view head, std::string_view value);

/// Begins an answer with a long value, where a walk has found it. Nothing: it cannot be pinned
/// here, and is to be answered at once.
std::optional<Next> begin_long(Call& call, const wire::ResponseHeader& header,
                               std::string_view head, std::string_view value);

}  // namespace espalier::offload
