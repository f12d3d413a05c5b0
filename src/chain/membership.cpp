// SPDX-License-Identifier: Apache-2.0
#include "chain/membership.hpp"

#include <utility>

#include "chain/etcd_membership.hpp"
#include "chain/file_membership.hpp"

namespace espalier::chain {

std::expected<std::unique_ptr<Membership>, std::string> open_membership(const std::string& place) {
  if (place.empty())
    return std::unexpected("a chain is kept in a file or in etcd, and none is given");
  if (place.find("://") == std::string::npos) return std::make_unique<FileMembership>(place);
  auto etcd = parse_etcd_place(place);
  if (!etcd) return std::unexpected(std::move(etcd.error()));
  return std::make_unique<EtcdMembership>(std::move(*etcd));
}

}  // namespace espalier::chain
