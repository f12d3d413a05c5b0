// SPDX-License-Identifier: Apache-2.0
#include "tests/example_kind/kind.hpp"

#include "engine/object_call.hpp"
#include "engine/typed_call.hpp"
#include "tests/example_kind/calls.hpp"

namespace espalier::example {

const offload::Kind& queue_kind() {
  static const offload::Offload calls[] = {
      offload::serve_opening<queue_calls::Create>(),  offload::serve_opening<queue_calls::Open>(),
      offload::serve_on<Queue, queue_calls::Push>(),  offload::serve_on<Queue, queue_calls::Pop>(),
      offload::serve_on<Queue, queue_calls::Count>(),
  };
  static const std::span<const offload::Offload> all(calls);
  static const offload::Kind kind{.name = "queue", .calls = {&all, 1}};
  return kind;
}

}  // namespace espalier::example
