// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/offload/hash_table.hpp"

#include <utility>

#include "catalog/catalog.hpp"
#include "engine/free_dropped.hpp"
#include "kinds/hash/hash_map.hpp"

namespace espalier::offload {

const std::shared_ptr<hash::HashMap>& HashTable::look_up(const catalog::Catalog& catalog,
                                                         std::uint32_t number) {
  static const std::shared_ptr<hash::HashMap> none;
  auto known = maps_.find(number);
  if (known == maps_.end()) {
    auto map = catalog.find<hash::HashMap>(number);
    if (map == nullptr) return none;
    known = maps_.emplace(number, std::move(map)).first;
  }
  last_number_ = number;
  last_ = &known->second;
  return *last_;
}

// Frees on another thread, for that takes time by the size of the map. Requests in flight hold it
// themselves.
void HashTable::maintain(Services& services) {
  std::erase_if(maps_, [&](auto& entry) {
    if (!entry.second->is_dropped()) return false;
    if (last_ == &entry.second) last_ = nullptr;
    begin_to_free(services, std::move(entry.second));
    return true;
  });
}

}  // namespace espalier::offload
