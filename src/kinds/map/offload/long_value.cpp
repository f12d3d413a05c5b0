// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/long_value.hpp"

#include <utility>

#include "kinds/map/offload/walk_call.hpp"

namespace espalier::offload {

std::unique_ptr<LongAnswer> long_answer(Call& call, std::string_view head, std::string_view value) {
  base::EpochPin pin = map_of(call).pin();
  if (!pin) return nullptr;
  return std::make_unique<LongAnswer>(call, nullptr, std::move(pin), head, value);
}

std::optional<Next> begin_long(Call& call, const wire::ResponseHeader& header,
                               std::string_view head, std::string_view value) {
  ItemReadState& state = call.state<ItemReadState>();
  state.answer = long_answer(call, head, value);
  if (!state.answer) return std::nullopt;
  state.answer->header = header;
  return state.answer->copy(call);
}

}  // namespace espalier::offload
