// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/offload/walk_piece.hpp"

#include <utility>

#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/hash_walk.hpp"
#include "kinds/hash/walk_items.hpp"

namespace espalier::offload {
namespace {

/// Bins that are visited between two looks at the clock.
constexpr int kBinsTogether = 16;

}  // namespace

WalkPiece::WalkPiece(std::shared_ptr<hash::HashMap> map, std::string_view after)
    : map_(std::move(map)), after_(after) {}
WalkPiece::~WalkPiece() = default;

bool WalkPiece::more() const { return count_ != 0 && !walk_->at_end(); }

JobStep WalkPiece::gather(StepContext& context) {
  const auto lease = hash::HashThreadLease::take(map_->store().threads);
  if (!lease) {
    error_ = lease.error();
    whole_ = true;
    return JobStep::done;
  }
  if (!walk_) {
    items_.reserve(hash::kWalkBytesMax);  // so that no exception loses an item
    walk_ = std::make_unique<hash::HashWalk>(*map_, after_);
  }
  const auto take = [this](const hash::WalkedItem& item) {
    hash::append_item(items_, item.key, item.value, item.version);
    ++count_;
    return items_.size() < hash::kWalkBytes;
  };
  for (int bins = 0; !walk_->at_end() && !map_->is_dropped(); ++bins) {
    if (bins == kBinsTogether) {
      if (context.should_return()) return JobStep::again;
      bins = 0;
    }
    if (!walk_->step(**lease, take)) break;
  }
  if (map_->is_dropped()) error_ = Error{Code::not_found, 0, map_->id()};
  whole_ = true;
  return JobStep::done;
}

}  // namespace espalier::offload
