// SPDX-License-Identifier: Apache-2.0
// Huge pages for shared memory, whatever the system's settings for it are: one byte of an extent is
// touched, then the extent is collapsed into a page of 2 MiB (madvise(2), Linux 6.1 or newer). Also
// populates pages before they are touched.
#pragma once

#include "memory/address_range.hpp"

namespace espalier::memory {

/// Collapses an open extent into one huge page. Cost: milliseconds, during which threads that write
/// there wait. Errors: system (detail: errno); then small pages serve. Thread: any.
Result<void> collapse(AddressRange& range, std::uint64_t offset);
/// Populates all pages of an open extent as if each had been written, with huge pages where
/// advised. Cost: milliseconds. Errors: system (detail: errno); then the first touch populates
/// them. Thread: any.
Result<void> populate(AddressRange& range, std::uint64_t offset);

}  // namespace espalier::memory
