// SPDX-License-Identifier: Apache-2.0
// A chain in etcd, for members on several machines: a key whose value is the text of a view, asked
// for by etcd's JSON gateway. A leader that was stopped keeps its connections open, so each request
// has a deadline, a connection of its own, and then goes to the next endpoint.
//
// Thread: as Membership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "chain/membership.hpp"

namespace espalier::chain {

/// What is asked of etcd: `endpoints`, each HOST:PORT, of one cluster, and a key.
struct EtcdPlace {
  std::vector<std::string> endpoints;
  std::string key;
};
/// Reads "etcd://HOST:PORT,HOST:PORT/KEY". Errors: a sentence.
[[nodiscard]] std::expected<EtcdPlace, std::string> parse_etcd_place(std::string_view text);

class EtcdMembership final : public Membership {
 public:
  /// One request to one endpoint.
  static constexpr long kRequestMs = 500;

  explicit EtcdMembership(EtcdPlace place) : place_(std::move(place)) {}

  [[nodiscard]] std::expected<std::optional<View>, std::string> read() override;
  [[nodiscard]] std::expected<bool, std::string> replace(const View& next) override;

 private:
  /// A view, and the revision at which etcd took it.
  struct Found {
    View view;
    std::string revision;
  };
  [[nodiscard]] std::expected<std::optional<Found>, std::string> find();
  [[nodiscard]] std::expected<std::string, std::string> post(std::string_view path,
                                                             const std::string& body);

  const EtcdPlace place_;
  std::size_t first_ = 0;  // the endpoint that answered last
};

}  // namespace espalier::chain
