// SPDX-License-Identifier: Apache-2.0
// Execution of the calls of regions, for nodes and for stores of this process alike.
//
// Thread: any.
#pragma once

#include <memory>

#include "catalog/catalog.hpp"
#include "kinds/region/calls.hpp"

namespace espalier::region {
class RegionObject;
}

namespace espalier::region_calls {

// Errors: those of create_region(); not_found, wrong_kind. Requires: the catalogue of a store.
[[nodiscard]] Result<std::shared_ptr<region::RegionObject>> obtain(catalog::Catalog& catalog,
                                                                   const Create& asked);
[[nodiscard]] Result<std::shared_ptr<region::RegionObject>> obtain(catalog::Catalog& catalog,
                                                                   const Open& asked);

// Errors: as the calls of RegionObject.
[[nodiscard]] Result<Bytes> execute(const region::RegionObject& of, const Read& asked);
[[nodiscard]] Result<wire::Nothing> execute(region::RegionObject& of, const Write& asked);
[[nodiscard]] Result<Word> execute(region::RegionObject& of, const FetchAdd& asked);
[[nodiscard]] Result<Word> execute(region::RegionObject& of, const CompareSwap& asked);

}  // namespace espalier::region_calls
