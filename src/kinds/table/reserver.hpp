// SPDX-License-Identifier: Apache-2.0
// Who reserves slots of an encrypted table (table_reservation.cpp), and alone may fill them.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>

namespace espalier::table {

/// Each session of a node is one, which ends with it; what it has not filled then is dead.
struct Reserver {};

/// This process itself, for tables that no node serves; it does not end.
[[nodiscard]] const std::shared_ptr<const Reserver>& process_reserver();

/// Says of an append which reservation it fills, and for whom.
struct ReservationClaim {
  std::uint64_t number = 0;
  std::shared_ptr<const Reserver> reserver = process_reserver();
};

}  // namespace espalier::table
