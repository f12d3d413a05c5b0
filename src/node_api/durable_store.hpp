// SPDX-License-Identifier: Apache-2.0
// Implementation of open_durable_store(), also for tests, which need small logs.
//
// Thread: any.
#pragma once

#include <cstdint>

#include "espalier/durable_store.hpp"

namespace espalier::node_api {

/// As the public function, with bounds of any size and segments of so many bytes.
[[nodiscard]] TableResult<Store> open_durable_store(const DataOptions& data,
                                                    const StoreOptions& options,
                                                    std::uint64_t segment_bytes);

}  // namespace espalier::node_api
