// SPDX-License-Identifier: Apache-2.0
#include "engine/free_dropped.hpp"

#include <utility>

#include "engine/services.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

// Steps of an object (StoredObject::free_some) between two reads of the clock.
constexpr std::uint32_t kStepsAtATime = 16;

class FreeDropped final : public HelperJob {
 public:
  FreeDropped(Services& services, std::shared_ptr<const void> kept)
      : services_(services), kept_(std::move(kept)) {
    services_.freeing_jobs.fetch_add(1, std::memory_order_relaxed);
  }
  ~FreeDropped() override { services_.freeing_jobs.fetch_sub(1, std::memory_order_relaxed); }
  JobStep step(StepContext& context) override {
    kept_.reset();
    return free_dropped(services_.store.dropped, context);
  }

 private:
  Services& services_;
  std::shared_ptr<const void> kept_;
};

}  // namespace

JobStep free_dropped(store::DroppedObjects& dropped, const StepContext& context) {
  while (dropped.collect_some(kStepsAtATime)) {
    if (context.should_return()) return JobStep::again;
  }
  return JobStep::done;
}

// Refused only when the pool ends; the store frees the rest then.
void begin_to_free(Services& services, std::shared_ptr<const void> kept) {
  if (kept == nullptr && services.freeing_jobs.load(std::memory_order_relaxed) != 0) return;
  static_cast<void>(
      services.helpers.submit(std::make_unique<FreeDropped>(services, std::move(kept))));
}

}  // namespace espalier::offload
