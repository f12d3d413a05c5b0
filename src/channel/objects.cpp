// SPDX-License-Identifier: Apache-2.0
#include "channel/objects.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/durable_mark.hpp"
#include "catalog/await_opened.hpp"
#include "catalog/await_records.hpp"
#include "catalog/calls.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/samples.hpp"
#include "wire/items.hpp"
#include "wire/object.hpp"
#include "wire/samples.hpp"
#include "wire/session_calls.hpp"

namespace espalier::channel {
namespace {

struct ListedItem {
  std::string_view key;
  std::string_view value;
  std::uint64_t version = 0;
};

std::optional<ListedObject> object_of(const ListedItem& item) {
  wire::ObjectEntry entry{};
  if (item.value.size() < sizeof entry) return std::nullopt;
  std::memcpy(&entry, item.value.data(), sizeof entry);
  return ListedObject{static_cast<ObjectKind>(entry.kind),
                      static_cast<std::uint32_t>(item.version),
                      std::string(item.key),
                      {entry.entries, entry.memory_bytes},
                      std::string(item.value.substr(sizeof entry)),
                      wire::durability_of(entry.durability)};
}

Result<std::vector<ListedObject>> list_own(const catalog::Catalog& own, ObjectKind kind) {
  std::vector<ListedObject> objects;
  for (const catalog::EntryPointer& entry : own.list(kind)) {
    objects.push_back({entry->kind, entry->id, entry->name, entry->object->numbers(),
                       entry->object->description(), entry->object->durability()});
  }
  if (auto durable = catalog::await_objects(own); !durable) {
    return std::unexpected(durable.error());
  }
  return objects;
}

}  // namespace

std::expected<void, Refusal> make_object(Channel& channel, const wire::CallMessage& request,
                                         std::string_view name, ObjectKind kind,
                                         const TakeAnswer& take) {
  const object_calls::Drop dropping = object_calls::drop(name, kind);
  const wire::RequestMessage<object_calls::Drop> undo(dropping);
  return channel.make(request, undo.get(), take);
}

Result<void> await_answer(catalog::RedoSink* sink, const Error* refusal) {
  const bool is_nothing =
      refusal != nullptr && (refusal->code == Code::busy || refusal->code == Code::system ||
                             refusal->code == Code::unsupported);
  if (sink == nullptr || is_nothing) return {};
  return catalog::await_record(sink, sink->handed_over());
}

Result<void> await_opened(const catalog::Catalog& own, std::uint32_t id) {
  return catalog::await_opened(own, id);
}

Result<session_calls::LogState> log_state(Channel& channel, bool waits) {
  if (channel.is_copy()) return fail(Code::forked);
  const catalog::Catalog* const own = channel.own_objects();
  if (own == nullptr) {
    const std::uint32_t wants = waits ? session_calls::kAwaitDurable : 0;
    return ask(channel, session_calls::AwaitDurable{wants | session_calls::kTellRun});
  }
  catalog::RedoSink* const sink = own->redo();
  if (sink == nullptr || !sink->mark().is_of_records()) return fail(Code::unsupported);
  const std::uint64_t recorded = sink->handed_over();
  if (waits) {
    if (auto durable = catalog::await_record(sink, recorded); !durable) {
      return std::unexpected(durable.error());
    }
  }
  return session_calls::LogState::of(recorded, sink->mark().released(), sink->promise().run);
}

Result<std::vector<ListedObject>> list(Channel& channel, ObjectKind kind) {
  if (channel.is_copy()) return fail(Code::forked);
  if (const catalog::Catalog* const own = channel.own_objects()) return list_own(*own, kind);
  const wire::RequestMessage<object_calls::List> message(object_calls::list(kind));
  const auto answer = channel.ask(message.get());
  if (!answer) return std::unexpected(answer.error().error);
  const auto listed =
      wire::read_reply<object_calls::Listed>(answer->reply.header, answer->reply.payload);
  if (!listed) return fail(Code::corrupt);
  std::vector<ListedObject> objects;
  std::string_view left = listed->items;
  for (ListedItem item; wire::take_item(left, item);) {
    auto object = object_of(item);
    if (!object) return fail(Code::corrupt);
    objects.push_back(*std::move(object));
  }
  if (!left.empty()) return fail(Code::corrupt);
  return objects;
}

Result<wire::SampledObjects> samples(Channel& channel, const wire::SamplesWanted& wanted,
                                     std::string_view name) {
  if (channel.is_copy()) return fail(Code::forked);
  if (const catalog::Catalog* const own = channel.own_objects()) {
    auto sampled = catalog::samples_of(*own, catalog::choice_of(wanted, name));
    if (auto durable = catalog::await_objects(*own); !durable) {
      return std::unexpected(durable.error());
    }
    return sampled;
  }
  const wire::RequestMessage<object_calls::Samples> message({name, wanted});
  const auto answer = channel.ask(message.get());
  if (!answer) return std::unexpected(answer.error().error);
  const auto sampled =
      wire::read_reply<object_calls::Sampled>(answer->reply.header, answer->reply.payload);
  if (!sampled) return fail(Code::corrupt);
  auto objects = wire::read_sampled_objects(sampled->items);
  if (!objects) return fail(Code::corrupt);
  return wire::SampledObjects{sampled->count, *std::move(objects)};
}

Result<void> drop(Channel& channel, std::string_view name, ObjectKind kind) {
  if (channel.is_copy()) return fail(Code::forked);
  if (catalog::Catalog* const own = channel.own_objects()) {
    ESPALIER_ASSERT(kind != ObjectKind::map && kind != ObjectKind::any);
    const auto dropped = own->drop(name, kind);
    if (auto durable = catalog::await_objects(*own); !durable) return durable;
    if (!dropped) return std::unexpected(dropped.error());
    return {};
  }
  const auto dropped = ask(channel, object_calls::drop(name, kind));
  if (!dropped) return std::unexpected(dropped.error());
  return {};
}

Result<void> rename(Channel& channel, std::string_view name, std::string_view to, ObjectKind kind,
                    Displaced displaced) {
  if (channel.is_copy()) return fail(Code::forked);
  if (catalog::Catalog* const own = channel.own_objects()) {
    const auto renamed = own->rename(name, to, kind, displaced);
    if (auto durable = catalog::await_objects(*own); !durable) return durable;
    if (!renamed) return std::unexpected(renamed.error());
    return {};
  }
  const auto renamed = ask(channel, object_calls::rename(name, to, kind, displaced));
  if (!renamed) return std::unexpected(renamed.error());
  return {};
}

}  // namespace espalier::channel
