// SPDX-License-Identifier: Apache-2.0
#include "node_api/node_store.hpp"

#include <utility>

#include "base/assert.hpp"
#include "client/embedded_store.hpp"
#include "engine/services.hpp"
#include "espalier/regex.hpp"
#include "store/store_core.hpp"

namespace espalier::node_api {
namespace {

bool keeps_dropped_map(const Store& store) {
  return static_cast<client::EmbeddedStore&>(client::StoreImpl::of(store)).keeps_dropped();
}

}  // namespace

void NodeStore::serve(offload::Services& services,
                      const std::shared_ptr<const program::OwnCalls>& own) {
  const std::lock_guard lock(mutex_);
  ESPALIER_ASSERT(services_ == nullptr || (services_ == &services && own_ == own));
  if (services_ != nullptr) return;
  services_ = &services;
  own_ = own;
}

std::shared_ptr<Store> NodeStore::store() const {
  std::shared_ptr<Store> old;  // goes after the lock
  const std::lock_guard lock(mutex_);
  ESPALIER_ASSERT(services_ != nullptr);
  if (newest_ != nullptr && !keeps_dropped_map(*newest_)) return newest_;
  // The node's, which outlives this part.
  const std::shared_ptr<tree::StoreCore> core(std::shared_ptr<void>(), &services_->store);
  auto impl = std::make_unique<client::EmbeddedStore>(core, regular_expressions());
  impl->carry_out(own_);
  auto made = std::make_shared<Store>(client::StoreImpl::handle(std::move(impl)));
  old = std::exchange(newest_, std::move(made));
  return newest_;
}

void NodeStore::let_dropped_go() {
  std::shared_ptr<Store> old;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (newest_ != nullptr && keeps_dropped_map(*newest_)) old = std::exchange(newest_, nullptr);
}

void NodeStoreKeeper::maintain(offload::Services& services) {
  services.part<NodeStore>().let_dropped_go();
}

}  // namespace espalier::node_api
