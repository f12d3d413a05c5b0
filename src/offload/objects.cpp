// SPDX-License-Identifier: Apache-2.0
// Offloads on objects of all kinds: listing and dropping them. What takes time by their number or
// by the size of one runs on a helper.
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "offload/connection.hpp"
#include "offload/free_dropped.hpp"
#include "offload/object_calls.hpp"
#include "wire/object.hpp"

namespace espalier::offload {
namespace {

/// The kind that a request's argument names; none: no number of a kind.
std::optional<ObjectKind> kind_of(std::uint32_t argument) {
  if (argument > 255) return std::nullopt;
  return static_cast<ObjectKind>(argument);
}

struct DropState {
  std::optional<Result<void>> done;
};

Next object_drop(Call& call) {
  DropState& state = call.state<DropState>();
  if (!state.done) {
    const auto kind = kind_of(call.argument());
    if (!kind) return call.fail({Code::invalid_argument, 0, call.argument()});
    catalog::Catalog& catalog = call.services().catalog();
    tree::DroppedMaps& maps = call.services().store.dropped;
    return call.helper_steps(
        [&catalog, &maps, &state, name = call.key(), kind = *kind](StepContext& context) {
          if (!state.done) {
            const auto dropped = catalog.drop(name, kind);
            state.done = dropped ? Result<void>() : std::unexpected(dropped.error());
          }
          // Its memory goes back here, if nothing else holds it.
          return free_dropped(maps, context);
        });
  }
  if (!*state.done) return call.fail(state.done->error());
  return call.answer({});
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
  std::string value(base::bytes_of(head));
  value += entry.object->description();
  list.items += base::bytes_of(wire::item_header(entry.id, entry.name.size(), value.size()));
  list.items += entry.name;
  list.items += value;
  ++list.count;
}

// As the items of a scan.
Next object_list(Call& call) {
  ListState& state = call.state<ListState>();
  if (!std::exchange(state.asked, true)) {
    const auto kind = kind_of(call.argument());
    if (!kind) return call.fail({Code::invalid_argument, 0, call.argument()});
    const catalog::Catalog& catalog = call.services().catalog();
    // Of others' objects not even the names are told.
    return call.helper(
        [&catalog, &state, kind = *kind, prefix = std::string(call.principal().prefix)] {
          for (const catalog::EntryPointer& entry : catalog.list(kind)) {
            if (entry->name.starts_with(prefix)) add_item(state, *entry);
          }
        });
  }
  if (!call.response_fits(state.items.size())) return call.writable();
  wire::ResponseHeader header{};
  header.version = state.count;
  return call.answer(header, {state.items});
}

const Offload kObjectOffloads[] = {
    {.id = wire::OffloadId::object_drop,
     .name = "object_drop",
     .format = "key: the object's name; argument: its kind, 0 for any",
     .summary = "removes a map, table or sequencer; its memory comes back when nobody reads it any "
                "more, and queries of it that run end with dropped",
     .right = Right::admin,
     .limits = kObjectName,
     .object = Names::by_name,
     .step = object_drop},
    {.id = wire::OffloadId::object_list,
     .name = "object_list",
     .format = "argument: a kind, 0 for all",
     .summary = "answers the names and numbers of all objects, and an ObjectEntry of each with its "
                "MapShape, its TableFacts and schema, or its SequencerFacts, as items",
     .right = Right::read,
     .limits = {},
     .step = object_list},
};

}  // namespace

Next answer_object(Call& call, std::uint32_t id, const catalog::Object& object) {
  wire::ResponseHeader header{};
  header.version = id;
  return call.answer(header, {object.description()});
}

std::span<const Offload> object_offloads() { return kObjectOffloads; }

}  // namespace espalier::offload
