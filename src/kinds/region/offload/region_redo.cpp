// SPDX-License-Identifier: Apache-2.0
// Regions out of their records: that they are there, with zeros, for what is written to one makes
// none.
#include <memory>

#include "catalog/redo_effect.hpp"
#include "catalog/redo_record.hpp"
#include "engine/object_copy.hpp"
#include "engine/redo_target.hpp"
#include "kinds/region/offload/region_offloads.hpp"
#include "kinds/region/region_object.hpp"

namespace espalier::offload {
namespace {

Result<void> restore_a_region(RedoTarget& target, const catalog::CreatedObject& created) {
  const auto made = region::restore_region(target.services().catalog(), created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<void> apply_to_a_region(RedoTarget&, const catalog::RedoHead&, std::string_view) {
  return fail(Code::corrupt, static_cast<std::uint32_t>(catalog::RedoFault::type));
}

Result<void> describe_nothing(std::string_view, const TakeEffect&) {
  return catalog::corrupt(catalog::RedoFault::type);
}

Result<std::unique_ptr<ObjectCopy>> copy_a_region(Services&,
                                                  const std::shared_ptr<const catalog::Entry>&) {
  return std::make_unique<EmptyCopy>();
}

}  // namespace

const KindRedo kRegionRedo{.restore = restore_a_region,
                           .apply = apply_to_a_region,
                           .describe = describe_nothing,
                           .copy = copy_a_region};

}  // namespace espalier::offload
