// SPDX-License-Identifier: Apache-2.0
// A node whose clients have roles, from a file of secrets, with objects of theirs and of others.
#pragma once

#include <map>
#include <string>

#include "espalier/map.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/role_matrix.hpp"

namespace espalier::test {

class RoleFixture : public NodeFixture {
 protected:
  /// The prefix of some objects' names, to which some roles are restricted.
  static constexpr const char* kPrefix = "orders/";

  /// Writes the files of all clients.
  RoleFixture();
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& text) const;
  static std::string line(const std::string& name, const std::string& role, char digit,
                          const std::string& names = "") {
    return name + " " + role + " 0" + std::string(62, digit) + "0" +
           (names.empty() ? "" : " " + names) + "\n";
  }
  /// The lines of all clients, for the node.
  [[nodiscard]] std::string all_lines() const;
  [[nodiscard]] ClientSecret secret(const std::string& name) const {
    return ClientSecret::read_file(path(name)).value();
  }
  /// A connection as the node's own user.
  [[nodiscard]] Store admin() const { return *Store::connect("unix:" + socket()); }

  /// Makes a map "m", a sequencer "s", a hash map "h", a region "r", an embedding table "e", a
  /// model "g" and a table "t", with this prefix.
  void make(const std::string& prefix);
  /// Restores what earlier clients made or dropped.
  void restore(const std::string& prefix);
  [[nodiscard]] roles::Objects objects(const std::string& prefix) const;
  /// All changeable state as text, of objects without this prefix.
  [[nodiscard]] std::string state(const std::string& but = "-") const;
  /// The names of all objects.
  [[nodiscard]] std::string names() const;
  /// Each client issues all requests at an address, for both kinds of names; `by` as in
  /// roles::expect_as_written.
  void expect_all_as_written(const std::string& address, std::string_view by);

  const std::map<std::string, std::string> lines_{
      {"reader", line("reader", "read", 'a')},
      {"writer", line("writer", "write", 'b')},
      {"admin", line("admin", "admin", 'c')},
      {"peer", line("peer", "peer", 'f')},
      {"member", line("member", "replica", '9')},
      {"shop", line("shop", "admin", 'd', std::string(kPrefix) + "*")},
      {"clerk", line("clerk", "read", 'e', std::string(kPrefix) + "*")}};
  const std::map<std::string, roles::Client> clients_{
      {"reader", {roles::Right::read}},        {"writer", {roles::Right::write}},
      {"admin", {roles::Right::admin}},        {"peer", {roles::Right::peer}},
      {"member", {roles::Right::replica}},     {"shop", {roles::Right::admin, kPrefix}},
      {"clerk", {roles::Right::read, kPrefix}}};
};

}  // namespace espalier::test
