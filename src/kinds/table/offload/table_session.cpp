// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/table_session.hpp"

#include "engine/connection.hpp"

namespace espalier::offload {

const std::shared_ptr<const table::Reserver>& TableSession::reserver_of(Connection& connection) {
  return connection.parts.of<TableSession>().reserver_;
}

}  // namespace espalier::offload
