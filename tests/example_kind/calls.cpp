// SPDX-License-Identifier: Apache-2.0
#include "tests/example_kind/calls.hpp"

#include <utility>

namespace espalier::example::queue_calls {

Result<std::shared_ptr<Queue>> obtain(catalog::Catalog& catalog, const Create& asked) {
  return catalog.create<Queue>(asked.name, [](std::uint32_t id, const std::string&) {
    return Result<std::shared_ptr<Queue>>(std::make_shared<Queue>(id));
  });
}

Result<std::shared_ptr<Queue>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<Queue>(asked.name);
}

Result<Pushed> execute(Queue& queue, const Push& asked) {
  const auto number = queue.push(asked.bytes);
  if (!number) return std::unexpected(number.error());
  return Pushed{*number};
}

Result<Popped> execute(Queue& queue, const Pop&) {
  auto entry = queue.pop();
  if (!entry) return std::unexpected(entry.error());
  if (!*entry) return Popped{};
  return Popped{true, (*entry)->number, std::move((*entry)->bytes)};
}

Result<Counted> execute(Queue& queue, const Count&) {
  const auto now = queue.known_numbers();
  if (!now) return std::unexpected(now.error());
  return Counted{now->pushed, now->popped, now->bytes};
}

}  // namespace espalier::example::queue_calls
