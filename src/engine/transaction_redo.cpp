// SPDX-License-Identifier: Apache-2.0
#include "engine/transaction_redo.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "catalog/catalog.hpp"
#include "catalog/transaction_record.hpp"
#include "engine/services.hpp"
#include "memory/version_clock.hpp"
#include "store/numbered_clients.hpp"
#include "store/store_core.hpp"
#include "store/transaction.hpp"

namespace espalier::offload {
namespace {

using catalog::RedoFault;

// No object reaches so many versions.
constexpr std::uint64_t kTransactionVersionMax = ~std::uint64_t{0} >> 1;

/// The contents of a record: steps by object, and parts of no object.
struct RecordedTransaction {
  std::vector<store::ObjectSteps> objects{};  // those that exist
  std::vector<std::string_view> parts{};
  std::string_view client{};
  std::uint64_t version = 0;
  std::size_t steps = 0;
};

store::ObjectSteps& steps_of(RecordedTransaction& recorded, const catalog::Entry& entry) {
  const auto known = std::ranges::find(recorded.objects, entry.id, &store::ObjectSteps::id);
  if (known != recorded.objects.end()) return *known;
  return recorded.objects.emplace_back(store::ObjectSteps{entry.object, entry.id, {}, {}});
}

Result<void> add_part(RecordedTransaction& recorded, RedoTarget& target, const KindRedo& redo,
                      const catalog::RedoHead& head, std::string_view part) {
  std::vector<catalog::TransactionStep> steps;
  const auto version = redo.steps(part, steps);
  if (!version) return std::unexpected(version.error());
  if (*version == 0 || *version > kTransactionVersionMax ||
      (recorded.version != 0 && recorded.version != *version)) {
    return catalog::corrupt(RedoFault::version);
  }
  recorded.version = *version;
  recorded.steps += steps.size();
  if (recorded.steps > store::kTransactionKeysMax) return catalog::corrupt(RedoFault::count);
  recorded.parts.push_back(part);
  const catalog::EntryPointer entry = target.services().catalog().find_any(head.object);
  if (entry == nullptr) return {};
  if (static_cast<std::uint8_t>(entry->kind) != head.kind) {
    return catalog::corrupt(RedoFault::object);
  }
  store::ObjectSteps& of = steps_of(recorded, *entry);
  for (const catalog::TransactionStep& step : steps) {
    of.numbers.push_back(static_cast<std::uint32_t>(of.steps.size()));
    of.steps.push_back(step);
  }
  return {};
}

Result<RecordedTransaction> read_transaction_record(RedoTarget& target, std::span<const Kind> own,
                                                    std::string_view record) {
  RecordedTransaction recorded;
  const auto add = [&](std::string_view part) -> Result<void> {
    const auto head = catalog::read_redo_head(part);
    if (!head) return std::unexpected(head.error());
    if (head->type == static_cast<std::uint8_t>(catalog::RedoType::client)) {
      if (!recorded.client.empty()) return catalog::corrupt(RedoFault::count);
      recorded.client = part;
      return {};
    }
    const KindRedo* const redo = redo_of(static_cast<ObjectKind>(head->kind), own);
    if (redo == nullptr || redo->steps == nullptr) return fail(Code::unsupported, head->kind);
    return add_part(recorded, target, *redo, *head, part);
  };
  if (auto read = catalog::for_each_record(record, add); !read) {
    return std::unexpected(read.error());
  }
  return recorded;
}

Result<void> apply_apart(RedoTarget& target, const RecordedTransaction& recorded) {
  for (const std::string_view part : recorded.parts) {
    if (auto applied = target.apply(part); !applied) return applied;
  }
  return {};
}

// For a record that no transaction has written.
Result<void> refusal_of(const Error& error) {
  if (error.code == Code::key_too_long) return catalog::corrupt(RedoFault::key_bytes);
  if (error.code == Code::value_too_long) return catalog::corrupt(RedoFault::value);
  return std::unexpected(error);
}

Result<void> apply_writes(RedoTarget& target, RecordedTransaction& recorded) {
  if (recorded.objects.empty()) return {};
  const auto clock = store::clock_of(recorded.objects);
  if (!clock) return apply_apart(target, recorded);
  (*clock)->go_on_above(recorded.version - 1);
  const auto done = store::transact(target.services().store, recorded.objects);
  if (!done && done.error().code != Code::wrong_shard) return refusal_of(done.error());
  if (!done || done->refused) return apply_apart(target, recorded);
  (*clock)->go_on_above(recorded.version);
  return {};
}

}  // namespace

Result<void> apply_transaction(RedoTarget& target, std::span<const Kind> own,
                               std::string_view record) {
  auto recorded = read_transaction_record(target, own, record);
  if (!recorded) return std::unexpected(recorded.error());
  if (auto applied = apply_writes(target, *recorded); !applied) return applied;
  if (recorded->client.empty()) return {};
  return target.services().store.parts.of<store::NumberedClients>().apply_redo(recorded->client);
}

}  // namespace espalier::offload
