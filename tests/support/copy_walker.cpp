// SPDX-License-Identifier: Apache-2.0
#include "tests/support/copy_walker.hpp"

#include <stdexcept>

#include "tree/host/walk_impl.hpp"

namespace espalier::tree {
template class Engine<test::CopyAccess>;
}  // namespace espalier::tree

namespace espalier::test {
namespace {

base::EpochSlot join(tree::StoreCore& store) {
  auto slot = store.epochs.join();
  if (!slot) throw std::runtime_error("no slot: " + message(slot.error()));
  return std::move(*slot);
}

}  // namespace

CopyWalker::CopyWalker(tree::StoreCore& store, tree::MapCore& map, std::uint32_t index,
                       Clock& clock, std::uint32_t lanes, std::uint64_t seed,
                       CopyMachine::Order order)
    : worker(store, join(store), index),
      recorder(clock, index),
      machine({store.region.at(0), store.region.bytes()}, seed, order),
      engine(worker, map, lanes, [this, &map](std::uint32_t, base::ReadyQueue& queue) {
        return CopyAccess(machine, queue, map.geometry.node_bytes);
      }) {}

}  // namespace espalier::test
