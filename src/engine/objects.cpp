// SPDX-License-Identifier: Apache-2.0
// Offloads on objects of all kinds: list, statistics, drop and rename. What takes time by the
// number of objects, or by the size of one, runs on a helper.
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/calls.hpp"
#include "catalog/samples.hpp"
#include "engine/connection.hpp"
#include "engine/free_dropped.hpp"
#include "engine/own_calls.hpp"
#include "engine/principal.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "store/store_core.hpp"
#include "wire/object.hpp"

namespace espalier::offload {
namespace {

struct ChangeState {
  std::optional<Result<void>> done;
};

/// Changes the catalogue once, on a helper, which also frees the memory of a dropped object if
/// nothing else holds it. `change(catalog)` returns a Result; the parts of the request that it
/// refers to stay until the call ends.
template <class Change>
Next change_objects(Call& call, Change change) {
  ChangeState& state = call.state<ChangeState>();
  if (!state.done) {
    catalog::Catalog& catalog = call.services().catalog();
    store::DroppedObjects& waiting = call.services().store.dropped;
    return call.helper_steps([&catalog, &waiting, &state, change](StepContext& context) {
      if (!state.done) {
        const auto changed = change(catalog);
        state.done = changed ? Result<void>() : std::unexpected(changed.error());
      }
      return free_dropped(waiting, context);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer(call, wire::Nothing{});
}

Next drop(Call& call, const object_calls::Drop& asked) {
  return change_objects(call, [asked](catalog::Catalog& catalog) {
    return catalog.drop(asked.name, static_cast<ObjectKind>(asked.kind));
  });
}

Next rename(Call& call, const object_calls::Rename& asked) {
  return change_objects(call, [asked](catalog::Catalog& catalog) {
    return catalog.rename(asked.name, asked.to, static_cast<ObjectKind>(asked.kind),
                          static_cast<Displaced>(asked.how.displaced));
  });
}

struct ListState {
  bool asked = false;
  std::string items;
  std::uint64_t count = 0;
};

void add_item(ListState& list, const catalog::Entry& entry) {
  const catalog::ObjectNumbers numbers = entry.object->numbers();
  wire::ObjectEntry head{};
  head.entries = numbers.entries;
  head.memory_bytes = numbers.memory_bytes;
  head.kind = static_cast<std::uint8_t>(entry.kind);
  head.durability = static_cast<std::uint8_t>(wire::number_of(entry.object->durability()));
  std::string value(base::bytes_of(head));
  value += entry.object->description();
  list.items += base::bytes_of(wire::item_header(entry.id, entry.name.size(), value.size()));
  list.items += entry.name;
  list.items += value;
  ++list.count;
}

Next list(Call& call, const object_calls::List& asked) {
  ListState& state = call.state<ListState>();
  if (!std::exchange(state.asked, true)) {
    const catalog::Catalog& catalog = call.services().catalog();
    // Lists no names outside the client's prefix.
    return call.helper([&catalog, &state, kind = static_cast<ObjectKind>(asked.kind),
                        prefix = std::string(call.principal().prefix)] {
      for (const catalog::EntryPointer& entry : catalog.list(kind)) {
        if (entry->name.starts_with(prefix)) add_item(state, *entry);
      }
    });
  }
  if (!call.response_fits(state.items.size())) return call.writable();
  return answer(call, object_calls::Listed{state.count, state.items});
}

struct SamplesState {
  std::optional<catalog::Sampling> sampling;  // until all samples are taken
  bool asked = false;
  std::uint64_t count = 0;
  std::string items;
};

JobStep take_samples(SamplesState& state, const StepContext& context) {
  while (state.sampling->step()) {
    if (context.should_return()) return JobStep::again;
  }
  const wire::SampledObjects found = state.sampling->take();
  state.sampling.reset();
  state.count = found.count;
  state.items = wire::items_of(found.objects);
  return JobStep::done;
}

Next samples(Call& call, const object_calls::Samples& asked) {
  SamplesState& state = call.state<SamplesState>();
  if (!std::exchange(state.asked, true)) {
    const catalog::Catalog& catalog = call.services().catalog();
    // Samples no names outside the client's prefix.
    return call.helper_steps(
        [&catalog, &state,
         choice = catalog::choice_of(asked.wanted, asked.name, call.principal().prefix)](
            const StepContext& context) mutable {
          if (!state.sampling) state.sampling.emplace(catalog, std::move(choice));
          return take_samples(state, context);
        });
  }
  if (!call.response_fits(state.items.size())) return call.writable();
  return answer(call, object_calls::Sampled{state.count, state.items});
}

const Offload kObjectOffloads[] = {
    serve<object_calls::Drop, drop>(), serve<object_calls::Rename, rename>(),
    serve<object_calls::List, list>(), serve<object_calls::Samples, samples>()};

}  // namespace

std::span<const Offload> object_offloads() { return kObjectOffloads; }

}  // namespace espalier::offload
