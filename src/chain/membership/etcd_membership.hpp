// SPDX-License-Identifier: Apache-2.0
// A chain's membership in etcd, for members on several machines: a key whose value is a view's
// text.
//
// Thread: as Membership.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chain/membership/etcd_gateway.hpp"
#include "chain/membership/membership.hpp"

namespace espalier::chain {

/// A location in etcd: `endpoints`, each HOST:PORT, of one cluster, and a key.
struct EtcdPlace {
  std::vector<std::string> endpoints;
  std::string key;
};
inline constexpr std::string_view kEtcdScheme = "etcd://";
/// Reads "etcd://HOST:PORT,HOST:PORT/KEY". Errors: a sentence.
[[nodiscard]] std::expected<EtcdPlace, std::string> parse_etcd_place(std::string_view text);
/// The credentials in the file that ESPALIER_ETCD_FILE names; none: it names none. Errors: a
/// sentence; also where a password would cross a network in the clear on its way there.
[[nodiscard]] std::expected<EtcdAccess, std::string> etcd_access_of_process(const EtcdPlace& place);

/// A view, and the etcd revision of its last change.
struct EtcdView {
  View view;
  std::string revision;
};
/// What etcd answers of the key of a chain, in any bytes; nothing: there is no such key. Errors: a
/// sentence.
[[nodiscard]] std::expected<std::optional<EtcdView>, std::string> read_etcd_answer(
    std::string_view answer);

class EtcdMembership final : public Membership {
 public:
  explicit EtcdMembership(EtcdPlace place, EtcdAccess access = {})
      : key_(std::move(place.key)), gateway_(std::move(place.endpoints), std::move(access)) {}

  [[nodiscard]] std::expected<std::optional<View>, std::string> read() override;
  /// The same before `until_ns` of base::monotonic_ns(), and why not.
  [[nodiscard]] std::expected<std::optional<View>, EtcdError> read_until(std::uint64_t until_ns);
  [[nodiscard]] std::expected<bool, std::string> replace(const View& next) override;

 private:
  [[nodiscard]] std::expected<std::optional<EtcdView>, EtcdError> find(std::uint64_t until_ns);

  const std::string key_;
  EtcdGateway gateway_;
};

}  // namespace espalier::chain
