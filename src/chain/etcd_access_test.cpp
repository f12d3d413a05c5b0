// SPDX-License-Identifier: Apache-2.0
// Chains in an etcd with authentication and TLS, with files of the test's own.
#include "chain/etcd_access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "chain/etcd_membership.hpp"
#include "chain/testing/own_etcd.hpp"

namespace espalier::chain {
namespace {

using testing::HasSubstr;
using testing::Not;

View first_view() {
  return {.chain = 3, .epoch = 1, .fence_ms = 400, .members = {{1, "a", "roce://10.0.0.1/a"}}};
}

std::string write_file(const base::TemporaryFolder& folder, const std::string& text,
                       mode_t mode = 0600) {
  const std::string path = (folder / "access").string();
  std::ofstream(path) << text;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

/// Enables authentication in etcd: as 'root', or as 'chains', with a role for the keys from "c" to
/// "d".
void ask_for_users(const OwnEtcd& etcd, EtcdAccess access = {}) {
  EtcdGateway gateway({etcd.endpoint()}, std::move(access));
  const std::pair<const char*, const char*> steps[] = {
      {"/v3/auth/user/add", R"({"name":"root","password":"r"})"},
      {"/v3/auth/user/grant", R"({"user":"root","role":"root"})"},
      {"/v3/auth/role/add", R"({"name":"of_chains"})"},
      {"/v3/auth/role/grant",
       R"({"name":"of_chains","perm":{"permType":"READWRITE","key":"Yw==","range_end":"ZA=="}})"},
      {"/v3/auth/user/add", R"({"name":"chains","password":"a \"pass\\word\" of words"})"},
      {"/v3/auth/user/grant", R"({"user":"chains","role":"of_chains"})"},
      {"/v3/auth/enable", "{}"}};
  for (const auto& [path, body] : steps) {
    const auto done = gateway.post(path, body);
    EXPECT_TRUE(done) << path << ": " << done.error();
  }
}

const EtcdAccess kChains{.user = "chains", .password = R"(a "pass\word" of words)"};

TEST(EtcdAccess, IsReadFromAFileOfItsOwners) {
  const base::TemporaryFolder folder;
  const auto read = read_etcd_access(
      write_file(folder,
                 "# of etcd\n\nuser chains\npassword  with blanks \t\nca /a/ca.pem\n"
                 "certificate /a/b.crt\nkey /a/b.key\n"));
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->user, "chains");
  EXPECT_EQ(read->password, "with blanks");
  EXPECT_EQ(read->ca, "/a/ca.pem");
  EXPECT_EQ(read->certificate, "/a/b.crt");
  EXPECT_EQ(read->key, "/a/b.key");
  EXPECT_TRUE(read->by_tls());
}

TEST(EtcdAccess, SaysWhatIsWrongAndNothingThatStandsThere) {
  const base::TemporaryFolder folder;
  const auto fault = [&](const std::string& text, mode_t mode = 0600) {
    const auto read = read_etcd_access(write_file(folder, text, mode));
    if (read) return std::string();
    EXPECT_THAT(read.error(), HasSubstr((folder / "access").string()));
    EXPECT_THAT(read.error(), Not(HasSubstr("secretword")));
    return read.error();
  };
  EXPECT_THAT(fault("user a\nsecretword b\n"), HasSubstr("line 2: a line begins with user,"));
  EXPECT_THAT(fault("user a\npassword secretword\nuser b\n"), HasSubstr("line 3: the word was"));
  EXPECT_THAT(fault("user\n"), HasSubstr("nothing stands behind"));
  EXPECT_THAT(fault("user a\n"), HasSubstr("belong together"));
  EXPECT_THAT(fault("password secretword\n"), HasSubstr("belong together"));
  EXPECT_THAT(fault("ca a\ncertificate b\n"), HasSubstr("belong together"));
  EXPECT_THAT(fault("certificate a\nkey b\n"), HasSubstr("by TLS alone"));
  EXPECT_THAT(fault("# nothing\n"), HasSubstr("says nothing"));
  EXPECT_NE(fault("user a\npassword secretword\n", 0644), "");  // others may read it
  EXPECT_FALSE(read_etcd_access((folder / "missing").string()));
}

TEST(EtcdAccess, APasswordGoesToOtherMachinesByTlsAlone) {
  EXPECT_FALSE(shows_password(kChains, {"127.0.0.1:2379", "localhost:2379", "[::1]:2379"}));
  EXPECT_TRUE(shows_password(kChains, {"127.0.0.1:2379", "192.0.2.1:2379"}));
  EXPECT_TRUE(shows_password(kChains, {"localhost.example.org:2379"}));
  EtcdAccess by_tls = kChains;
  by_tls.ca = "ca.pem";
  EXPECT_FALSE(shows_password(by_tls, {"192.0.2.1:2379"}));
  EXPECT_FALSE(shows_password({}, {"192.0.2.1:2379"}));
}

TEST(EtcdAccess, AUserIsLetInAndAgainWhenItsTokenIsOver) {
  const base::TemporaryFolder folder;
  OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers()) << "Is etcd installed? scripts/install-packages.sh --tests does it.";
  ask_for_users(etcd);
  EtcdMembership nobody({{etcd.endpoint()}, "chain"});
  EXPECT_FALSE(nobody.read());
  EXPECT_FALSE(nobody.replace(first_view()));
  EtcdAccess wrong = kChains;
  wrong.password = "another";
  const auto refused = EtcdMembership({{etcd.endpoint()}, "chain"}, wrong).read();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), HasSubstr("does not let user 'chains' in"));
  EXPECT_THAT(refused.error(), Not(HasSubstr("another")));
  EXPECT_FALSE(EtcdMembership({{etcd.endpoint()}, "beyond"}, kChains).read());

  EtcdMembership chains({{etcd.endpoint()}, "chain"}, kChains);
  EXPECT_EQ(chains.read().value(), std::nullopt);
  EXPECT_EQ(chains.replace(first_view()), true);
  EXPECT_EQ(chains.read().value(), first_view());
  etcd.restart();  // it has forgotten all tokens
  ASSERT_TRUE(etcd.answers());
  std::string why;
  for (const base::Stopwatch watch; watch.elapsed_ns() < kEtcdSoonNs;) {
    const auto view = chains.read();
    why = view ? "" : view.error();
    if (view) break;
    ::poll(nullptr, 0, 20);
  }
  EXPECT_EQ(why, "");
  EXPECT_EQ(chains.read().value(), first_view());
}

TEST(EtcdAccess, ByTlsOnlyWhomTheCaHasSignedIsBelieved) {
  const base::TemporaryFolder folder;
  for (const char* const name : {"server", "client", "other"}) {
    ASSERT_TRUE(make_certificate(folder, name));
  }
  const auto path = [&](const std::string& name) { return (folder / name).string(); };
  // etcd's gateway comes to it with the server's own certificate.
  std::ofstream(path("trusted.crt"))
      << std::ifstream(path("server.crt")).rdbuf() << std::ifstream(path("client.crt")).rdbuf();
  const OwnEtcd etcd(folder,
                     {"--cert-file=" + path("server.crt"), "--key-file=" + path("server.key"),
                      "--client-cert-auth", "--trusted-ca-file=" + path("trusted.crt")},
                     "https");
  EtcdAccess access{
      .ca = path("server.crt"), .certificate = path("client.crt"), .key = path("client.key")};
  EtcdMembership membership({{etcd.endpoint()}, "chain"}, access);
  std::string why = "it was never asked";
  for (const base::Stopwatch watch; !why.empty() && watch.elapsed_ns() < kEtcdSoonNs;) {
    const auto view = membership.read();
    why = view ? "" : view.error();
    ::poll(nullptr, 0, 20);
  }
  ASSERT_EQ(why, "");
  EXPECT_EQ(membership.replace(first_view()), true);

  const auto read_with = [&](const EtcdAccess& other) {
    return EtcdMembership({{etcd.endpoint()}, "chain"}, other).read();
  };
  EtcdAccess other_ca = access;
  other_ca.ca = path("other.crt");
  EXPECT_FALSE(read_with(other_ca));  // the server there has not proven its identity
  EtcdAccess unknown_client = access;
  unknown_client.certificate = path("other.crt");
  unknown_client.key = path("other.key");
  EXPECT_FALSE(read_with(unknown_client));
  EtcdAccess bare = access;
  bare.certificate = bare.key = "";
  EXPECT_FALSE(read_with(bare));
  EXPECT_FALSE(read_with({}));  // without TLS

  ask_for_users(etcd, access);
  EXPECT_FALSE(membership.read());
  access.user = kChains.user;
  access.password = kChains.password;
  const auto known = read_with(access);
  ASSERT_TRUE(known) << known.error();
  EXPECT_EQ(*known, first_view());
}

}  // namespace
}  // namespace espalier::chain
