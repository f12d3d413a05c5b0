// SPDX-License-Identifier: Apache-2.0
// Credentials for etcd: a file, readable by its owner alone, of lines of a keyword and its value.
// Blank lines and lines that begin with '#' are ignored.
//
//     user NAME           the user
//     password WORDS      to the end of the line
//     ca PATH             the CA of etcd's certificate; enables TLS
//     certificate PATH    of this client, if etcd requires one
//     key PATH            of that certificate
//
// Thread: any; no state.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace espalier::chain {

/// Empty: not given.
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

/// Errors: a sentence with the file's name, and none of its contents.
[[nodiscard]] std::expected<EtcdAccess, std::string> read_etcd_access(const std::string& path);

/// Whether a password would cross a network in the clear: without TLS, to another machine.
[[nodiscard]] bool shows_password(const EtcdAccess& access,
                                  const std::vector<std::string>& endpoints);

}  // namespace espalier::chain
