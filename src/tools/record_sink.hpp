// SPDX-License-Identifier: Apache-2.0
// Destination of records: a map of this process one by one, or a node with many in flight, so that
// records do not wait for each other's round trips.
//
// Invariant: of records with the same key the last one stays. Requests in flight together are
// unordered, so a key is never in flight twice.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "espalier/hash_map.hpp"
#include "espalier/map.hpp"
#include "tools/record.hpp"

namespace espalier::tools {

class RecordSink {
 public:
  /// A record that was not stored, and the reason.
  struct Lost {
    std::string file;
    std::uint64_t line = 0;
    Error error;
  };
  virtual ~RecordSink() = default;

  /// Stores a record; copies what it needs. Returns a lost record, if any: this one, or an earlier
  /// one. Requires: key and value have lengths that the map takes.
  [[nodiscard]] virtual std::optional<Lost> put(const std::string& file, const Record& record) = 0;
  /// Waits until all records are stored, or one is lost.
  [[nodiscard]] virtual std::optional<Lost> finish() = 0;
  /// Records whose key was there before. Right after finish().
  [[nodiscard]] std::uint64_t existed() const { return existed_; }

 protected:
  std::uint64_t existed_ = 0;
};

/// Stores records sequentially. Requires: `map` outlives it.
[[nodiscard]] std::unique_ptr<RecordSink> direct_sink(Map& map);

/// Keeps up to 256 records, or about 2 MiB of them, in flight. Errors: as Pipeline::open.
[[nodiscard]] Result<std::unique_ptr<RecordSink>> pipelined_sink(const Map& map);
[[nodiscard]] Result<std::unique_ptr<RecordSink>> pipelined_sink(const HashMap& map);

}  // namespace espalier::tools
