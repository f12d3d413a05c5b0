// SPDX-License-Identifier: Apache-2.0
// What is missing is named: the library, its version, a provider.
#include "fabric/ofi/library.hpp"

#include <gtest/gtest.h>

#include <string>

#include "fabric/ofi/endpoint.hpp"

namespace espalier::fabric::ofi {
namespace {

roce::PortAddress loopback() { return {roce::IpAddress::v4(127, 0, 0, 1), 0}; }

Unsupported unsupported_reason_of(const Error& error) {
  EXPECT_EQ(error.code, Code::unsupported);
  return static_cast<Unsupported>(error.detail);
}

TEST(OfiLibrary, OneThatIsNotThereIsNamed) {
  const auto opened = open("tcp", *RegionTable::create(), "libfabric-that-is-not-there.so.1");
  ASSERT_FALSE(opened);
  EXPECT_EQ(unsupported_reason_of(opened.error()), Unsupported::library);
  EXPECT_NE(explain(Unsupported::library).find("libfabric1"), std::string_view::npos);
}

TEST(OfiLibrary, OneThatIsSomethingElseIsNotUsed) {
  const auto loaded = Library::load("libc.so.6");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(unsupported_reason_of(loaded.error()), Unsupported::version);
}

TEST(OfiLibrary, FindsWhatConnects) {
  const auto library = *Library::load();
  const auto info = library->find("tcp", loopback(), true);
  ASSERT_TRUE(info) << message(info.error());
  EXPECT_EQ((*info)->ep_attr->type, FI_EP_MSG);
  EXPECT_STREQ((*info)->fabric_attr->prov_name, "tcp");
}

// libfabric's shm takes wrong keys, and neither it nor any layered provider makes connections.
TEST(OfiLibrary, SaysWhatNoProviderDoes) {
  const auto library = *Library::load();
  for (const std::string name : {"nonesuch", "shm", "tcp;ofi_rxm", "udp", ""}) {
    const auto info = library->find(name, loopback(), true);
    if (name.empty() && info) continue;  // any that there is
    ASSERT_FALSE(info) << name;
    EXPECT_EQ(unsupported_reason_of(info.error()), Unsupported::provider) << name;
  }
  for (const Unsupported unsupported_reason :
       {Unsupported::none, Unsupported::library, Unsupported::version, Unsupported::provider,
        Unsupported::features}) {
    EXPECT_TRUE(explain(unsupported_reason).ends_with("."));
  }
}

}  // namespace
}  // namespace espalier::fabric::ofi
