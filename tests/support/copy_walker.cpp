// SPDX-License-Identifier: Apache-2.0
#include "tests/support/copy_walker.hpp"

#include <cstring>
#include <stdexcept>

#include "kinds/map/walk/walk_impl.hpp"
#include "tests/support/store_parts.hpp"

namespace espalier::tree {
template class Walker<test::CopyPlace>;
}  // namespace espalier::tree

namespace espalier::test {
namespace {

// Made from the header's bytes alone, as a remote reader does.
tree::MapView view_of(const tree::StoreCore& store, const tree::MapCore& map) {
  wire::MapHeader header;
  std::memcpy(&header, store.region.at(map.header_offset), sizeof header);
  const auto view = tree::MapView::read(header, map.header_offset, store.region.bytes(), nullptr);
  if (!view) throw std::runtime_error("no view: " + message(view.error()));
  return *view;
}

}  // namespace

CopyWalker::CopyWalker(tree::StoreCore& store, const tree::MapCore& map, std::uint32_t index,
                       Clock& clock, std::uint32_t lanes, std::uint64_t seed,
                       CopyMachine::Order order)
    : recorder(clock, index),
      machine({store.region.at(0), store.region.bytes()}, seed, order),
      place(view_of(store, map), join_epochs(store)),
      walker(place, lanes, [this, &map](std::uint32_t, base::ReadyQueue& queue) {
        return CopyAccess(machine, queue, map.geometry.node_bytes);
      }) {}

}  // namespace espalier::test
