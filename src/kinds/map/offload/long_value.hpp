// SPDX-License-Identifier: Apache-2.0
// Answers with long values of maps (engine/long_answer.hpp), from the walk that found the value.
//
// Thread: that of the scheduler.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/long_answer.hpp"
#include "kinds/map/offload/snapshot.hpp"

namespace espalier::offload {

/// State of a read of one item.
struct ItemReadState {
  std::shared_ptr<HeldSnapshot> held;  // the snapshot read at, until the walk has ended
  std::unique_ptr<LongAnswer> answer;
};

/// Call within the completion, or the items, of the walk that found the value. `head` precedes it.
/// Null: the value cannot be pinned here.
std::unique_ptr<LongAnswer> long_answer(Call& call, std::string_view head, std::string_view value);

/// Begins an answer with a long value that a walk has found. Nothing: it cannot be pinned here, and
/// must be answered inline.
std::optional<Next> begin_long(Call& call, const wire::ResponseHeader& header,
                               std::string_view head, std::string_view value);

}  // namespace espalier::offload
