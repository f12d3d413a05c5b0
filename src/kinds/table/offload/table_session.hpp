// SPDX-License-Identifier: Apache-2.0
// The identity under which a session reserves slots of encrypted tables; unfilled ones end with it.
//
// Thread: that of the session's scheduler.
#pragma once

#include <memory>

#include "engine/session_parts.hpp"
#include "kinds/table/reserver.hpp"

namespace espalier::offload {

class Connection;

class TableSession final : public SessionPart {
 public:
  [[nodiscard]] static const std::shared_ptr<const table::Reserver>& reserver_of(
      Connection& connection);

 private:
  const std::shared_ptr<const table::Reserver> reserver_ =
      std::make_shared<const table::Reserver>();
};

}  // namespace espalier::offload
