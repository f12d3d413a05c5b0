// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/membership.hpp"

#include <utility>

#include "chain/membership/etcd_membership.hpp"
#include "chain/membership/file_membership.hpp"

namespace espalier::chain {

std::expected<std::unique_ptr<Membership>, std::string> open_membership(const std::string& place) {
  if (place.empty())
    return std::unexpected("a chain is kept in a file or in etcd, and none is given");
  if (place.find("://") == std::string::npos) return std::make_unique<FileMembership>(place);
  auto etcd = parse_etcd_place(place);
  if (!etcd) return std::unexpected(std::move(etcd.error()));
  auto access = etcd_access_of_process(*etcd);
  if (!access) return std::unexpected(std::move(access.error()));
  return std::make_unique<EtcdMembership>(std::move(*etcd), std::move(*access));
}

}  // namespace espalier::chain
