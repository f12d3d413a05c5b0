// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/hash_threads.hpp"
#include "base/until_fork.hpp"

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "channel/thread_kept.hpp"
#include "store/store_core.hpp"

namespace espalier::hash {
namespace {

using KeptThreads = client::ThreadKept<HashThreads, HashThreads::Place*>;
constinit thread_local KeptThreads kept_threads;

struct KeptThreadsEnd {
  ~KeptThreadsEnd() { kept_threads.end(); }
  void expect() const {}
};
thread_local KeptThreadsEnd kept_threads_end;

/// The part of a store for its hash maps.
struct HashPart final : store::StorePart {
  explicit HashPart(tree::StoreCore& core)
      : store{core,         core.pool,    core.epochs, core.reclaimer,
              core.catalog, core.objects, core.dropped} {
    store.threads = base::make_shared_until_fork<HashThreads>(store);
  }
  ~HashPart() override { store.threads->close(); }
  bool give_back(memory::BufferCache& cache) noexcept override {
    return store.maps.give_back(store.reclaimer, cache);
  }

  HashStore store;
};

}  // namespace

HashStore& hash_store_of(const catalog::Catalog& catalog) {
  tree::StoreCore* const core = catalog.store();
  ESPALIER_ASSERT(core != nullptr);
  return core->parts.of<HashPart>(*core).store;
}

Result<HashThreads::Place*> HashThreads::acquire() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    Place* const kept = free_.back();
    free_.pop_back();
    return kept;
  }
  base::reserve_more(all_, 1);
  free_.reserve(all_.capacity());  // so that release() always finds room
  auto joined = HashThread::join(*store_);
  if (!joined) return std::unexpected(joined.error());
  all_.push_back(std::make_unique<Place>(*std::move(joined)));
  return all_.back().get();
}

void HashThreads::release(Place* kept) noexcept {
  const std::lock_guard lock(mutex_);
  if (store_ == nullptr) return;
  kept->busy = false;
  kept->thread.cache->flush();
  free_.push_back(kept);
}

void HashThreads::close() {
  const std::lock_guard lock(mutex_);
  free_.clear();
  all_.clear();
  store_ = nullptr;
}

bool HashThreads::closed() const {
  const std::lock_guard lock(mutex_);
  return store_ == nullptr;
}

Result<HashThreadLease> HashThreadLease::take(const std::shared_ptr<HashThreads>& threads) {
  const KeptThreads::Entry* const own = kept_threads.find(threads.get());
  if (own != nullptr && !own->session->busy) [[likely]]
    return HashThreadLease(own->session, nullptr);
  std::unique_ptr<KeptThreads::Entry> room;
  if (own == nullptr && kept_threads.keeps()) {
    kept_threads_end.expect();
    kept_threads.drop_unusable();
    room = std::make_unique<KeptThreads::Entry>();
  }
  const auto kept = threads->acquire();
  if (!kept) return std::unexpected(kept.error());
  if (!room) return HashThreadLease(*kept, threads.get());
  room->pool = threads;
  room->session = *kept;
  kept_threads.add(std::move(room));
  return HashThreadLease(*kept, nullptr);
}

HashThreadLease::HashThreadLease(KeptHashThread* place, HashThreads* extra)
    : place_(place), extra_(extra) {
  place->busy = true;
}

HashThreadLease::~HashThreadLease() {
  if (place_ == nullptr) return;
  place_->busy = false;
  if (extra_ != nullptr) extra_->release(place_);
}

}  // namespace espalier::hash
