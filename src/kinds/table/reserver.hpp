// SPDX-License-Identifier: Apache-2.0
// The owner of a reservation of slots of an encrypted table (table_reservation.cpp); only it may
// fill them.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>

namespace espalier::table {

/// Each session of a node is one; slots that it has not filled at its end are dead.
struct Reserver {};

/// The reserver of this process, for tables that no node serves; it does not end.
[[nodiscard]] const std::shared_ptr<const Reserver>& process_reserver();

/// The reservation that an append fills, and its owner.
struct ReservationClaim {
  std::uint64_t number = 0;
  std::shared_ptr<const Reserver> reserver = process_reserver();
};

}  // namespace espalier::table
