// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/single_read.hpp"
#include "kinds/map/walk/walk_impl.hpp"

namespace espalier::tree {

template class Walker<HostPlace<HostAccess>>;
template class HostExecutor<HostAccess>;

}  // namespace espalier::tree
