// SPDX-License-Identifier: Apache-2.0
// Has the tables of a switch follow a map: reads its tree, compiles it, installs the tables.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/compiler.hpp"
#include "dataplane/installed_function.hpp"
#include "tree/walk/map_view.hpp"

namespace espalier::place {

/// The tree as it is now, for the compiler. The address of a node is `base` and its offset in the
/// region. Every leaf counts as passed once, for as long as nothing counts them. What changes
/// meanwhile may be seen or not: tables are hints.
/// Requires: the region's bytes are at hand, and an epoch is exposed. Cost: all nodes.
[[nodiscard]] dataplane::TreeImage image_of(const tree::MapView& map, std::string_view prefix,
                                            std::uint64_t base);

class IndexController {
 public:
  /// `prefix`: as in KeyedReads. `base`: where the addresses of the redirect key begin.
  IndexController(dataplane::InstalledFunction& into, const dataplane::MapKeys& keys,
                  std::string prefix, std::uint64_t base)
      : into_(into), keys_(keys), prefix_(std::move(prefix)), base_(base) {}

  /// Compiles the tree as it is now, and installs it. Requires: as image_of().
  void install(const tree::MapView& map, const dataplane::TableLimits& limits);
  /// Installs tables that came from elsewhere. Requires: tables that check() accepts.
  void install(const dataplane::IndexTables& tables);
  /// Leaves the switch without tables: all READs pass.
  void clear();
  /// What was installed last, cleared or not.
  [[nodiscard]] const dataplane::IndexTables& tables() const { return tables_; }

 private:
  dataplane::InstalledFunction& into_;
  const dataplane::MapKeys keys_;
  const std::string prefix_;
  const std::uint64_t base_;
  dataplane::IndexTables tables_;
};

}  // namespace espalier::place
