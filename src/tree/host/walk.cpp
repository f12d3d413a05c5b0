// SPDX-License-Identifier: Apache-2.0
#include "tree/host/at_once.hpp"
#include "tree/host/walk_impl.hpp"

namespace espalier::tree {

template class Engine<HostAccess>;

}  // namespace espalier::tree
