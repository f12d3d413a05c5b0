// SPDX-License-Identifier: Apache-2.0
#include "node/node_page.hpp"

#include <sys/random.h>

#include <cstddef>

#include "base/atomic_bytes.hpp"
#include "base/system_error.hpp"
#include "wire/ring.hpp"

namespace espalier::node {

Result<memory::SharedMemory> make_node_page(bool asymmetric) {
  auto page = memory::SharedMemory::create("espalier-node", sizeof(wire::NodePage));
  if (!page) return std::unexpected(page.error());
  wire::NodePage contents{};
  contents.magic = wire::kNodePageMagic;
  contents.format = wire::kConnectionFormat;
  contents.flags = asymmetric ? wire::kNodeAsymmetric : 0;
  if (::getrandom(&contents.node_id, sizeof contents.node_id, 0) != sizeof contents.node_id) {
    return base::refused_by_system();
  }
  base::store_plain(page->at(0), contents);
  return page;
}

std::uint64_t node_id_of(const memory::SharedMemory& page) {
  return base::load_plain<std::uint64_t>(page.at(offsetof(wire::NodePage, node_id)));
}

}  // namespace espalier::node
