// SPDX-License-Identifier: Apache-2.0
// How etcd is asked by those whom it does not let in otherwise: a file, its owner's alone, of lines
// of a word and what belongs to it. Blank lines and those that begin with '#' are comments.
//
//     user NAME           as whom
//     password WORDS      to the end of the line
//     ca PATH             whoever signed etcd's certificate; with it all goes by TLS
//     certificate PATH    of this client, where etcd wants one
//     key PATH            of that certificate
//
// Thread: any; no state.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace espalier::chain {

/// Empty: without.
struct EtcdAccess {
  std::string user{};
  std::string password{};
  std::string ca{};
  std::string certificate{};
  std::string key{};

  [[nodiscard]] bool by_tls() const { return !ca.empty(); }
};

/// The variable of the environment that names the file.
inline constexpr const char* kEtcdFileVariable = "ESPALIER_ETCD_FILE";

/// Errors: a sentence with the file's name, and nothing that stands in it.
[[nodiscard]] std::expected<EtcdAccess, std::string> read_etcd_access(const std::string& path);

/// Whether a password would go over a network that others read: without TLS, to another machine.
[[nodiscard]] bool shows_password(const EtcdAccess& access,
                                  const std::vector<std::string>& endpoints);

}  // namespace espalier::chain
