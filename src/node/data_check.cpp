// SPDX-License-Identifier: Apache-2.0
#include "node/data_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/byte_size.hpp"
#include "base/machine_memory.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_record.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "log/checkpoint_format.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"

namespace espalier::node {
namespace {

/// Only this thread and the helpers of the services use the store.
constexpr std::uint32_t kCheckParticipants = 64;
/// No messages arrive.
constexpr std::uint64_t kCheckMessageBytes = std::uint64_t{1} << 20;

DataMistake too_little(std::uint64_t bytes) {
  return {
      fmt::format("memory of {} is too little for what the folder has", base::exact_bytes(bytes)),
      "Give as much as its node has: --memory-max SIZE."};
}

std::string kind_name_of(const catalog::Entry& entry) {
  const std::string_view own = entry.object->kind_name();
  const std::string_view known = own.empty() ? name(entry.kind) : own;
  return known.empty() ? fmt::format("kind {}", static_cast<int>(entry.kind)) : std::string(known);
}

CheckedObject audit_object(const catalog::Entry& entry, std::span<const offload::Kind> own) {
  CheckedObject checked{kind_name_of(entry), entry.id, entry.name, entry.object->numbers(), {}};
  const offload::KindRedo* const redo = offload::redo_of(entry.kind, own);
  if (redo != nullptr && redo->audit != nullptr) checked.faults = redo->audit(*entry.object);
  return checked;
}

/// Reads and applies all records. A fault of the data that ends the log early goes into the report.
/// Errors: others.
std::expected<void, DataMistake> apply_log(DataReader& data, offload::Services& services,
                                           const DataCheckTerms& terms, DataReport& report) {
  offload::RedoTarget target(services, terms.own_kinds);
  Error refused{};
  const auto read = data.read([&](std::uint64_t, std::span<const std::byte> record) {
    auto applied = target.apply({reinterpret_cast<const char*>(record.data()), record.size()});
    if (!applied) {
      refused = applied.error();
      return applied;
    }
    report.record_bytes += record.size();
    terms.applied(++report.records, report.record_bytes);
    return applied;
  });
  report.next_sequence = read ? read->next_sequence : read.error().sequence;
  if (read) {
    report.segments = read->segments.size();
    report.checkpoint = read->checkpoint;
    report.damaged_checkpoints = read->damaged_checkpoints;
    report.tail = read->cut;
    return {};
  }
  const bool is_of_record = read.error().fault == log::LogFault::refused;
  if (is_of_record && refused.code == Code::out_of_memory) {
    return std::unexpected(too_little(services.store.region.limit_bytes()));
  }
  DataMistake mistake = data.mistake_of(read.error());
  if (!is_of_record && !is_damage(read.error().fault)) return std::unexpected(std::move(mistake));
  if (is_of_record) {
    const bool is_copied =
        log::number_in(read.error().file.text(), log::kCheckpointBegin, log::kWhole).has_value();
    // Records of a checkpoint have no sequence.
    const std::uint64_t sequence = is_copied ? 0 : read.error().sequence;
    mistake.what += ": " + why_refused(refused);
    mistake.hint =
        fmt::format("'espalier log dump --data DIR --from {0} --to {0}' shows it.", sequence);
  }
  report.mistake = std::move(mistake);
  report.fault = read.error();
  return {};
}

}  // namespace

bool DataReport::good() const {
  const auto is_sound = [](const CheckedObject& object) { return object.faults.empty(); };
  return !mistake && damaged_checkpoints.empty() && std::ranges::all_of(objects, is_sound);
}

std::string why_refused(const Error& error) {
  if (error.code != Code::corrupt) return message(error);
  const auto fault = static_cast<catalog::RedoFault>(error.detail);
  return fmt::format("{} ({})", message(error), catalog::text_of(fault));
}

std::expected<DataReport, DataMistake> check_data(DataReader& data, const DataCheckTerms& terms) {
  memory::RegionOptions options;
  options.bytes_max =
      terms.memory_bytes_max != 0 ? terms.memory_bytes_max : base::default_store_bytes();
  auto region = memory::Region::reserve(options);
  if (!region) {
    return std::unexpected(
        DataMistake{fmt::format("cannot reserve memory of {}: {}",
                                base::exact_bytes(options.bytes_max), words_of(region.error())),
                    "A smaller limit may help: --memory-max SIZE."});
  }
  tree::StoreCore store(std::move(*region), kCheckParticipants);
  offload::HelperOptions helpers;
  helpers.threads = 1;
  offload::Services services(store, kCheckMessageBytes, terms.own_kinds, helpers);
  DataReport report;
  auto applied = apply_log(data, services, terms, report);
  if (!applied) return std::unexpected(std::move(applied.error()));
  store.dropped.collect();
  for (const catalog::EntryPointer& entry : store.catalog.list()) {
    report.objects.push_back(audit_object(*entry, terms.own_kinds));
  }
  return report;
}

}  // namespace espalier::node
