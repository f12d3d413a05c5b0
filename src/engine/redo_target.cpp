// SPDX-License-Identifier: Apache-2.0
#include "engine/redo_target.hpp"

#include <algorithm>
#include <new>

#include "catalog/apply_record.hpp"
#include "catalog/client_record.hpp"
#include "catalog/redo_effect.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/transaction_redo.hpp"
#include "memory/version_clock.hpp"
#include "store/numbered_clients.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {

namespace {

std::string_view verb_of_client(catalog::ClientFact fact) {
  switch (fact) {
    case catalog::ClientFact::known: return "know client";
    case catalog::ClientFact::forgotten: return "forget client";
    case catalog::ClientFact::done:
    case catalog::ClientFact::done_alone: return "done for client";
    case catalog::ClientFact::condition: return "condition failed for client";
    case catalog::ClientFact::invalid: break;
  }
  return "none";
}

// A client's id is its right to ask for its answers: it is not shown.
Result<void> describe_client(std::string_view record, const TakeEffect& take) {
  const auto redo = catalog::read_client_record(record);
  if (!redo) return std::unexpected(redo.error());
  const catalog::RedoNumber numbers[] = {{"number", redo->fields.number},
                                         {"acknowledged", redo->fields.acknowledged},
                                         {"answer_bytes", redo->bytes.size()}};
  take({verb_of_client(redo->fact), std::nullopt, numbers});
  return {};
}

Result<void> describe_renamed(std::string_view record, const TakeEffect& take) {
  const auto renamed = catalog::read_renamed(record);
  if (!renamed) return std::unexpected(renamed.error());
  const catalog::RedoNumber numbers[] = {{"rename", renamed->rename}, {"other", renamed->other}};
  if (renamed->id == 0) {
    take({"know_renames", std::nullopt, std::span(numbers).first(1)});
    return {};
  }
  take({"rename", renamed->name, std::span(numbers).first(renamed->other == 0 ? 1 : 2)});
  if (renamed->other == 0) return {};
  if (renamed->other_name.empty()) {
    take({"drop_other", std::nullopt, {}});
  } else {
    take({"rename_other", renamed->other_name, {}});
  }
  return {};
}

}  // namespace

const KindRedo* redo_of(ObjectKind objects, std::span<const Kind> own) {
  for (const auto kinds : {all_kinds(), own}) {
    for (const Kind& kind : kinds) {
      if (kind.objects == objects) return kind.redo;
    }
  }
  return nullptr;
}

Result<void> RedoTarget::apply(std::string_view record) {
  const auto restore = [this](const catalog::CreatedObject& created) -> Result<void> {
    const KindRedo* const redo = redo_of(created.kind, own_);
    if (redo == nullptr) return fail(Code::unsupported, static_cast<std::uint32_t>(created.kind));
    auto restored = redo->restore(*this, created);
    if (restored) begin_versions_of(created.id);
    return restored;
  };
  const auto apply_own = [this](const catalog::RedoHead& head,
                                std::string_view own) -> Result<void> {
    if (head.type == static_cast<std::uint8_t>(catalog::RedoType::client)) {
      return services_.store.parts.of<store::NumberedClients>().apply_redo(own);
    }
    const KindRedo* const redo = redo_of(static_cast<ObjectKind>(head.kind), own_);
    if (redo == nullptr) return fail(Code::unsupported, head.kind);
    return redo->apply(*this, head, own);
  };
  try {
    const auto head = catalog::read_redo_head(record);
    if (head && head->type == static_cast<std::uint8_t>(catalog::RedoType::transaction)) {
      if (head->object != 0) return catalog::corrupt(catalog::RedoFault::object);
      return apply_transaction(*this, own_, record);
    }
    return catalog::apply_record(services_.catalog(), record, restore, apply_own);
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

std::uint64_t run_of_recovered(const Services& services) {
  std::uint64_t run = 1;
  for (const catalog::EntryPointer& entry : services.catalog().list()) {
    const memory::VersionClock* const clock = entry->object->transaction_clock();
    if (clock != nullptr) run = std::max(run, clock->taken() >> kRunVersionBits);
  }
  return run;
}

// Before its first record is applied, so none of its items has an earlier run's version.
void RedoTarget::begin_versions_of(std::uint32_t object) {
  if (versions_above_ == 0 || planted(Bug::versions_of_earlier_runs)) return;
  const catalog::EntryPointer entry = services_.catalog().find_any(object);
  memory::VersionClock* const clock =
      entry != nullptr ? entry->object->transaction_clock() : nullptr;
  if (clock != nullptr) clock->go_on_above(versions_above_);
}

namespace {

/// What is shorter is not worth what applies a run: it has lanes and rooms of its own.
constexpr std::size_t kRunMin = 16;

// Those at the beginning that are of one object, and of its kind's own types.
std::span<const std::string_view> run_at(std::span<const std::string_view> records,
                                         const catalog::RedoHead& first) {
  std::size_t count = 1;
  for (; count < records.size(); ++count) {
    const auto head = catalog::read_redo_head(records[count]);
    const bool goes_on = head && head->type >= catalog::kOwnRedoTypes && head->kind == first.kind &&
                         head->object == first.object;
    if (!goes_on) break;
  }
  return records.first(count);
}

}  // namespace

Result<void> RedoTarget::apply_all(std::span<const std::string_view> records,
                                   std::size_t& applied) {
  applied = 0;
  while (applied < records.size()) {
    const auto rest = records.subspan(applied);
    const auto head = catalog::read_redo_head(rest.front());
    const KindRedo* const redo = head && head->type >= catalog::kOwnRedoTypes
                                     ? redo_of(static_cast<ObjectKind>(head->kind), own_)
                                     : nullptr;
    const bool has_runs = redo != nullptr && redo->apply_run != nullptr;
    const auto run = has_runs ? run_at(rest, *head) : rest.first(1);
    if (run.size() < kRunMin) {
      for (const std::string_view record : run) {
        if (auto one = apply(record); !one) return one;
        ++applied;
      }
      continue;
    }
    std::size_t of_run = 0;
    try {
      const auto done = redo->apply_run(*this, head->object, run, of_run);
      applied += done ? run.size() : of_run;
      if (!done) return done;
    } catch (const std::bad_alloc&) {  // nothing of the run is applied yet
      return fail(Code::out_of_memory);
    }
  }
  return {};
}

namespace {

struct RecoveredClock {
  const catalog::EntryPointer entry;
  memory::VersionClock& clock;
  const VersionsRecord& record;
};

// Of each of the objects that share a clock: what is recorded of one goes when that is dropped.
std::vector<RecoveredClock> clocks_above_records(Services& services, std::span<const Kind> own) {
  std::vector<RecoveredClock> above;
  for (const catalog::EntryPointer& entry : services.catalog().list()) {
    memory::VersionClock* const clock = entry->object->transaction_clock();
    const KindRedo* const redo = redo_of(entry->kind, own);
    const bool is_recorded = entry->object->redo() != nullptr && redo != nullptr;
    if (clock == nullptr || !is_recorded || redo->versions_record.write == nullptr) continue;
    if (clock->is_above_records()) above.push_back({entry, *clock, redo->versions_record});
  }
  return above;
}

}  // namespace

Result<void> record_recovered(Services& services, std::span<const Kind> own) {
  if (planted(Bug::recovered_versions_unrecorded)) return {};
  const std::vector<RecoveredClock> above = clocks_above_records(services, own);
  for (const RecoveredClock& one : above) {
    catalog::RedoSink* const sink = one.entry->object->redo();
    auto room = catalog::RedoRoom::reserve(sink, one.record.bytes);
    if (!room) return std::unexpected(room.error());
    one.record.write(room->bytes(), one.entry->id, one.clock.taken());
    room->hand_over();
  }
  for (const RecoveredClock& one : above) one.clock.go_on_above(one.clock.taken());
  return {};
}

Result<void> describe_record(std::string_view record, std::span<const Kind> own,
                             const TakeEffect& take) {
  const auto head = catalog::read_redo_head(record);
  if (!head) return std::unexpected(head.error());
  if (head->type == static_cast<std::uint8_t>(catalog::RedoType::created)) {
    const auto created = catalog::read_created(record);
    if (!created) return std::unexpected(created.error());
    const catalog::RedoNumber numbers[] = {{"form_bytes", created->form.size()},
                                           {"durability", wire::number_of(created->durability)}};
    take({"create", std::nullopt, std::span(numbers).first(created->durability ? 2 : 1)});
    return {};
  }
  if (head->type == static_cast<std::uint8_t>(catalog::RedoType::dropped)) {
    const auto dropped = catalog::read_dropped(record);
    if (!dropped) return std::unexpected(dropped.error());
    take({"drop", std::nullopt, {}});
    return {};
  }
  if (head->type == static_cast<std::uint8_t>(catalog::RedoType::renamed)) {
    return describe_renamed(record, take);
  }
  if (head->type == static_cast<std::uint8_t>(catalog::RedoType::transaction)) {
    take({"transact", std::nullopt, {}});
    return catalog::for_each_record(record, [&](std::string_view one) {
      return describe_record(one, own, take);  // of a kind's own type: it goes no deeper
    });
  }
  if (head->type == static_cast<std::uint8_t>(catalog::RedoType::client)) {
    return describe_client(record, take);
  }
  const KindRedo* const redo = redo_of(static_cast<ObjectKind>(head->kind), own);
  if (redo == nullptr || redo->describe == nullptr) return fail(Code::unsupported, head->kind);
  return redo->describe(record, take);
}

// Objects are made by calls that answer their numbers.
const Kind* kind_without_records(std::span<const Kind> own) {
  const auto has_objects = [](const Kind& kind) {
    for (const std::span<const Offload> group : kind.calls) {
      if (std::ranges::any_of(group, &Offload::opens)) return true;
    }
    return false;
  };
  for (const Kind& kind : all_kinds()) {
    if (kind.redo == nullptr && has_objects(kind)) return &kind;
  }
  // Those of the registry that have records and no copy refuse to make objects where there is a
  // sink. Of a program's own that is not known, and one such object would fail each checkpoint.
  for (const Kind& kind : own) {
    const bool is_durable = kind.redo != nullptr && kind.redo->copy != nullptr;
    if (!is_durable && has_objects(kind)) return &kind;
  }
  return nullptr;
}

}  // namespace espalier::offload
