// SPDX-License-Identifier: Apache-2.0
// The maps of one store, by name and by id: what a library embeds and what a node serves.
//
// A map is shared: a drop takes away its name and its id, and its memory goes back when the last
// who holds the core lets go, so a thread may go on answering requests on a map that another one
// has dropped. Nobody waits for anybody, and no answer is about a map of the same name made later.
//
// Invariants
// 1. An id names one map for ever; it is not used again when that map is dropped.
// 2. A core found here is not marked as dropped at the moment of finding; it may be right after.
//
// Thread: any. The lock is taken before all locks of maps and memory, and not held while the memory
// of a map is given back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree/write/map_core.hpp"

namespace espalier::tree {

class Catalog {
 public:
  static constexpr std::size_t kNameBytesMax = 255;

  /// The store must outlive the catalog, and every core that was got from it.
  explicit Catalog(StoreCore& store) : store_(store) {}
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// Makes an empty map. Cost: as MapCore::create; others wait meanwhile.
  /// Errors: already_exists, invalid_argument (options, or a name of none or too many bytes),
  /// out_of_memory, unsupported (all ids are used up).
  Result<std::shared_ptr<MapCore>> create(std::string_view name, const MapOptions& options);

  /// Errors: not_found.
  [[nodiscard]] Result<std::shared_ptr<MapCore>> open(std::string_view name) const;

  /// The map with this id; null: there is none, or no longer.
  [[nodiscard]] std::shared_ptr<MapCore> find(std::uint32_t id) const;

  /// Takes a map away from all who look for it, and marks it as dropped for those who have it.
  /// Returns it, so that the caller can clear what it keeps for it; its memory goes back when the
  /// last holder lets go. Errors: not_found.
  Result<std::shared_ptr<MapCore>> drop(std::string_view name);

  /// Ascending.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  StoreCore& store_;
  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, std::shared_ptr<MapCore>, std::less<>> by_name_;
  std::unordered_map<std::uint32_t, std::shared_ptr<MapCore>> by_id_;
  std::uint32_t next_id_ = 1;  // 0 once all are used up
};

}  // namespace espalier::tree
