// SPDX-License-Identifier: Apache-2.0
// Verifies a data folder: reads its log, rebuilds the store in memory, and has each kind audit its
// objects.
//
// Thread: one; only the caller's thread reads the objects.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/object.hpp"
#include "engine/registry.hpp"
#include "node/data_reader.hpp"

namespace espalier::node {

struct CheckedObject {
  std::string kind;
  std::uint32_t id = 0;
  std::string name;
  catalog::ObjectNumbers numbers;
  std::vector<std::string> faults;  ///< a sentence each
};

struct DataReport {
  std::uint64_t records = 0;  ///< read and applied
  std::uint64_t record_bytes = 0;
  std::uint64_t next_sequence = 1;  ///< of the next record
  std::uint64_t segments = 0;
  std::optional<log::CheckpointHeader> checkpoint;  ///< read before the log
  std::vector<log::LogError> damaged_checkpoints;   ///< newer ones, which a start skips
  std::optional<log::LogEnd> tail;  ///< what a start would truncate: never acknowledged
  /// Why not all could be read; everything before is audited all the same.
  std::optional<DataMistake> mistake;
  std::optional<log::LogError> fault;  ///< the same as the log's error
  std::vector<CheckedObject> objects;  ///< by ascending names

  [[nodiscard]] bool good() const;
};

struct DataCheckTerms {
  std::uint64_t memory_bytes_max = 0;          ///< of the store; 0: a node's default
  std::span<const offload::Kind> own_kinds{};  ///< beside those of the registry
  /// Called after each record with the number of applied records and their bytes.
  std::function<void(std::uint64_t records, std::uint64_t bytes)> applied = [](std::uint64_t,
                                                                               std::uint64_t) {};
};

/// Cost: memory like that of the folder's node, reads of all segments, and audits of all objects.
/// Errors: words, if there is no memory for a store, or not enough for this one.
[[nodiscard]] std::expected<DataReport, DataMistake> check_data(DataReader& data,
                                                                const DataCheckTerms& terms);

/// Why a record is invalid, or cannot be applied.
[[nodiscard]] std::string why_refused(const Error& error);

}  // namespace espalier::node
