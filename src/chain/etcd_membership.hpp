// SPDX-License-Identifier: Apache-2.0
// A chain's membership in etcd, for members on several machines: a key whose value is a view's
// text.
//
// Thread: as Membership.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "chain/etcd_gateway.hpp"
#include "chain/membership.hpp"

namespace espalier::chain {

/// A location in etcd: `endpoints`, each HOST:PORT, of one cluster, and a key.
struct EtcdPlace {
  std::vector<std::string> endpoints;
  std::string key;
};
/// Reads "etcd://HOST:PORT,HOST:PORT/KEY". Errors: a sentence.
[[nodiscard]] std::expected<EtcdPlace, std::string> parse_etcd_place(std::string_view text);

class EtcdMembership final : public Membership {
 public:
  explicit EtcdMembership(EtcdPlace place, EtcdAccess access = {})
      : key_(std::move(place.key)), gateway_(std::move(place.endpoints), std::move(access)) {}

  [[nodiscard]] std::expected<std::optional<View>, std::string> read() override;
  [[nodiscard]] std::expected<bool, std::string> replace(const View& next) override;

 private:
  /// A view, and the etcd revision of its last change.
  struct Found {
    View view;
    std::string revision;
  };
  [[nodiscard]] std::expected<std::optional<Found>, std::string> find();

  const std::string key_;
  EtcdGateway gateway_;
};

}  // namespace espalier::chain
