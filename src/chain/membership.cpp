// SPDX-License-Identifier: Apache-2.0
#include "chain/membership.hpp"

#include <cstdlib>
#include <utility>

#include "chain/etcd_access.hpp"
#include "chain/etcd_membership.hpp"
#include "chain/file_membership.hpp"

namespace espalier::chain {

std::expected<std::unique_ptr<Membership>, std::string> open_membership(const std::string& place) {
  if (place.empty())
    return std::unexpected("a chain is kept in a file or in etcd, and none is given");
  if (place.find("://") == std::string::npos) return std::make_unique<FileMembership>(place);
  auto etcd = parse_etcd_place(place);
  if (!etcd) return std::unexpected(std::move(etcd.error()));
  EtcdAccess access;
  if (const char* const path = std::getenv(kEtcdFileVariable); path != nullptr && *path != '\0') {
    auto read = read_etcd_access(path);
    if (!read) return std::unexpected(std::move(read.error()));
    access = std::move(*read);
  }
  if (shows_password(access, etcd->endpoints)) {
    return std::unexpected(
        "a password would go to etcd where others can read it: 'ca PATH' in the file that " +
        std::string(kEtcdFileVariable) + " names has it go by TLS");
  }
  return std::make_unique<EtcdMembership>(std::move(*etcd), std::move(access));
}

}  // namespace espalier::chain
