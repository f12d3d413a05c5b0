// SPDX-License-Identifier: Apache-2.0
// The hash maps that one scheduler's requests name, by number: found in the catalogue when a
// request first names one, and let go when it was dropped.
//
// Thread: that of the scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/node_parts.hpp"

namespace espalier::catalog {
class Catalog;
}
namespace espalier::hash {
class HashMap;
}

namespace espalier::offload {

class HashTable final : public SchedulerPart {
 public:
  /// The map of this number, which may be dropped; it stays until the step is over. Null: there is
  /// none. Cost: a comparison where the last request named it too. Errors: std::bad_alloc.
  [[nodiscard]] const std::shared_ptr<hash::HashMap>& find(const catalog::Catalog& catalog,
                                                           std::uint32_t number) {
    if (last_ != nullptr && number == last_number_) [[likely]]
      return *last_;
    return look_up(catalog, number);
  }
  void maintain(Services& services) override;

 private:
  const std::shared_ptr<hash::HashMap>& look_up(const catalog::Catalog& catalog,
                                                std::uint32_t number);

  std::unordered_map<std::uint32_t, std::shared_ptr<hash::HashMap>> maps_;
  std::uint32_t last_number_ = 0;                         // and what find() found for it
  const std::shared_ptr<hash::HashMap>* last_ = nullptr;  // in maps_
};

}  // namespace espalier::offload
