// SPDX-License-Identifier: Apache-2.0
// Recovery of maps from their records.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/redo_effect.hpp"
#include "catalog/transaction_part.hpp"
#include "engine/redo_target.hpp"
#include "kinds/map/host/redo_run.hpp"
#include "kinds/map/offload/map_copy.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/write/apply_redo.hpp"
#include "kinds/map/write/audit.hpp"
#include "kinds/map/write/map_object.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::offload {
namespace {

struct MapRedoPart final : RedoPart {
  MapRedoPart(tree::StoreCore& store, base::EpochSlot slot, std::uint32_t index)
      : context(store, std::move(slot), index) {}
  tree::ThreadContext context;
  tree::RedoRunState run;
};

Result<void> restore_a_map(RedoTarget& target, const catalog::CreatedObject& created) {
  const auto made = tree::restore_map(target.services().store, created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<MapRedoPart*> part_of(RedoTarget& target) {
  tree::StoreCore& store = target.services().store;
  auto* part = target.find_part<MapRedoPart>();
  if (part == nullptr) {
    auto slot = store.epochs.join();
    if (!slot) return std::unexpected(slot.error());
    part = &target.part<MapRedoPart>(store, std::move(*slot), target.index());
  }
  return part;
}

Result<tree::ThreadContext*> context_of(RedoTarget& target) {
  const auto part = part_of(target);
  if (!part) return std::unexpected(part.error());
  return &(*part)->context;
}

Result<void> apply_to_a_map(RedoTarget& target, const catalog::RedoHead& head,
                            std::string_view record) {
  const auto context = context_of(target);
  if (!context) return std::unexpected(context.error());
  catalog::Catalog& objects = target.services().store.catalog;
  return catalog::apply_to<tree::MapCore>(objects, head.object, [&](tree::MapCore& map) {
    return tree::apply_redo(**context, map, record);
  });
}

Result<void> apply_run_to_a_map(RedoTarget& target, std::uint32_t object,
                                std::span<const std::string_view> records, std::size_t& applied) {
  const auto part = part_of(target);
  if (!part) return std::unexpected(part.error());
  catalog::Catalog& objects = target.services().store.catalog;
  return catalog::apply_to<tree::MapCore>(objects, object, [&](tree::MapCore& map) {
    return tree::apply_redo_run((*part)->context, map, records, applied, (*part)->run);
  });
}

Result<void> describe_map_writes(std::string_view record, const TakeEffect& take) {
  const auto redo = tree::read_map_redo(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->type != tree::RedoType::written) {
    const catalog::RedoNumber numbers[] = {{"version", redo->version}};
    const bool reserves = redo->type == tree::RedoType::reserved;
    take({reserves ? "reserve" : "restructure", std::nullopt, numbers});
  }
  wire::PayloadReader reader(redo->rest);
  for (std::uint32_t i = 0; i < redo->writes; ++i) {  // bounded by the record's end
    const auto write = tree::read_write(reader);
    if (!write) return std::unexpected(write.error());
    const bool erases = write->op == tree::WriteOp::erase;
    const catalog::RedoNumber numbers[] = {{"version", redo->version},
                                           {"value_bytes", write->value.size()}};
    take({erases ? "erase" : "put", write->key, std::span(numbers).first(erases ? 1 : 2)});
  }
  if (!reader.complete()) return catalog::corrupt(catalog::RedoFault::count);
  return {};
}

Result<std::uint64_t> steps_of_map_writes(std::string_view record,
                                          std::vector<catalog::TransactionStep>& to) {
  const auto redo = tree::read_map_redo(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->type != tree::RedoType::written) return catalog::corrupt(catalog::RedoFault::type);
  wire::PayloadReader reader(redo->rest);
  for (std::uint32_t i = 0; i < redo->writes; ++i) {  // bounded by the record's end
    const auto write = tree::read_write(reader);
    if (!write) return std::unexpected(write.error());
    const bool erases = write->op == tree::WriteOp::erase;
    to.push_back(
        {erases ? catalog::StepKind::erase : catalog::StepKind::put, write->key, write->value, {}});
  }
  if (!reader.complete()) return catalog::corrupt(catalog::RedoFault::count);
  return redo->version;
}

std::vector<std::string> audit_a_map(catalog::Object& object) {
  return tree::audit(static_cast<tree::MapCore&>(object));
}

}  // namespace

const KindRedo kMapRedo{.restore = restore_a_map,
                        .apply = apply_to_a_map,
                        .apply_run = apply_run_to_a_map,
                        .versions_record = {sizeof(tree::WrittenRecord), tree::write_reserved},
                        .describe = describe_map_writes,
                        .audit = audit_a_map,
                        .copy = copy_a_map,
                        .steps = steps_of_map_writes};

}  // namespace espalier::offload
