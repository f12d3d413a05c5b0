// SPDX-License-Identifier: Apache-2.0
#include "engine/secrets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <string>

#include "base/temporary_folder.hpp"
#include "engine/hello_numbers.hpp"
#include "engine/seen_numbers.hpp"

namespace espalier::offload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kA = std::string(62, '0') + "a1";
const std::string kB = std::string(62, '0') + "b2";

class SecretsTest : public testing::Test {
 protected:
  auto load(const std::string& lines, mode_t mode = 0600) {
    const std::string path = (folder_ / "secrets").string();
    std::ofstream(path) << lines;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return secrets_.load(path);
  }
  const base::TemporaryFolder folder_;
  Secrets secrets_;
};

TEST_F(SecretsTest, AreFoundByName) {
  const auto loaded = load("# who may come\n\nshop write " + kA + " orders/*\nadmin admin " + kB);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(*loaded, 2u);
  crypto::SecretBytes secret{};
  const auto shop = secrets_.find("shop", secret);
  ASSERT_TRUE(shop);
  EXPECT_EQ(shop->access.who(), "shop");
  EXPECT_EQ(shop->access.role(), Right::write);
  EXPECT_EQ(shop->access.prefix(), "orders/");
  EXPECT_EQ(secret[31], std::byte{0xa1});
  EXPECT_FALSE(shop->access.may_at_once(Right::read)) << "it is not for all names";
  const auto admin = secrets_.find("admin", secret);
  ASSERT_TRUE(admin);
  EXPECT_TRUE(admin->access.may_at_once(Right::admin));
  // For an unknown name, the secret is random.
  secret = {};
  EXPECT_FALSE(secrets_.find("nobody", secret));
  EXPECT_NE(secret, crypto::SecretBytes{});
  EXPECT_FALSE(secrets_.find("", secret));
}

TEST_F(SecretsTest, AMistakeChangesNothingAndAllOfThemAreTold) {
  ASSERT_TRUE(load("shop write " + kA));
  const std::uint64_t generation = secrets_.generation();
  const auto wrong = load("shop write " + kB + "\nshop read " + kA + "\nx y z\n\nb admin 12\n");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error(), ElementsAre(HasSubstr("line 2: the name shop was there before"),
                                         HasSubstr("line 3: behind the name stands a role"),
                                         HasSubstr("line 5: behind the role stands a secret")));
  EXPECT_THAT(load("shop write " + kB, 0644).error(), ElementsAre(HasSubstr("has mode 0644")));
  EXPECT_THAT(secrets_.load((folder_ / "none").string()).error(),
              ElementsAre(HasSubstr("No such file")));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "wrong\n";
  EXPECT_THAT(load(many).error(), SizeIs(10));
  EXPECT_EQ(secrets_.generation(), generation);
  crypto::SecretBytes secret{};
  ASSERT_TRUE(secrets_.find("shop", secret));
  EXPECT_EQ(secret[31], std::byte{0xa1});
}

TEST_F(SecretsTest, WhoIsTakenOutOrIsAnotherIsNoLongerKnown) {
  const std::string as_before = "same write " + kA + " x*\n";
  ASSERT_TRUE(load("a write " + kA + "\nb write " + kA + "\nc write " + kA + " x*\n" + as_before));
  crypto::SecretBytes secret{};
  std::map<std::string, std::uint64_t> lines;
  for (const std::string name : {"a", "b", "c", "same"}) {
    lines[name] = secrets_.find(name, secret)->line;
    EXPECT_TRUE(secrets_.still(name, lines[name]));
  }
  ASSERT_TRUE(load("a write " + kB + "\nb read " + kA + "\nnew read " + kB + "\nc write " + kA +
                   " y*\n" + as_before));
  EXPECT_FALSE(secrets_.still("a", lines["a"])) << "it has another secret";
  EXPECT_FALSE(secrets_.still("b", lines["b"])) << "it has another role";
  EXPECT_FALSE(secrets_.still("c", lines["c"])) << "it is for other names";
  EXPECT_TRUE(secrets_.still("same", lines["same"]));
  // What it was once it is not again for those of that time.
  ASSERT_TRUE(load("a write " + kA + "\n" + as_before));
  EXPECT_FALSE(secrets_.still("a", lines["a"]));
  EXPECT_TRUE(secrets_.still("a", secrets_.find("a", secret)->line));
  EXPECT_FALSE(secrets_.still("b", lines["b"]));
  EXPECT_TRUE(secrets_.still("same", lines["same"]));
}

TEST_F(SecretsTest, LieInFewPagesAndAreOverwritten) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "n" + std::to_string(i) + " read " + kA + "\n";
  const std::size_t before = crypto::secret_pages_taken();
  ASSERT_TRUE(load(lines));
  EXPECT_LE(crypto::secret_pages_taken(), before + 9);
  ASSERT_TRUE(load("n read " + kA));
  auto slot = secrets_.pool()->take();
  ASSERT_TRUE(slot);
  EXPECT_EQ(**slot, crypto::SecretBytes{}) << "a place that was used before";
}

TEST(SeenNumbers, AreTakenOnceAndALittleOutOfOrder) {
  SeenNumbers seen;
  EXPECT_FALSE(seen.take(0));
  EXPECT_TRUE(seen.take(1));
  EXPECT_FALSE(seen.take(1));
  EXPECT_TRUE(seen.take(5));
  EXPECT_TRUE(seen.take(3));
  EXPECT_FALSE(seen.take(3));
  EXPECT_FALSE(seen.take(5));
  EXPECT_TRUE(seen.take(68));
  EXPECT_FALSE(seen.take(4)) << "too far below, though it did not come";
  EXPECT_TRUE(seen.take(6));
  EXPECT_TRUE(seen.take(~std::uint32_t{0}));
  EXPECT_FALSE(seen.take(68));
  EXPECT_TRUE(seen.take(~std::uint32_t{0} - 63));
  EXPECT_FALSE(seen.take(~std::uint32_t{0} - 64));
  EXPECT_FALSE(seen.take(0));
}

TEST(HelloNumbers, RiseWhereAPairTakesThePlaceOfAnother) {
  using enum wire::LinkWay;
  HelloNumbers hellos;
  EXPECT_FALSE(hellos.take(write, 0));
  EXPECT_TRUE(hellos.take(write, 1));
  EXPECT_TRUE(hellos.take(send, 4)) << "both are of the rings";
  EXPECT_FALSE(hellos.take(write, 4));
  EXPECT_FALSE(hellos.take(write, 3)) << "it came late";
  EXPECT_TRUE(hellos.take(reads, 2)) << "each kind has its own";
  EXPECT_TRUE(hellos.take(reads, 8));
  EXPECT_FALSE(hellos.take(reads, 8));
  EXPECT_FALSE(hellos.take(reads, 7));
  EXPECT_TRUE(hellos.take(writes, 9));
  EXPECT_TRUE(hellos.take(writes, 6)) << "those stand beside each other";
  EXPECT_FALSE(hellos.take(writes, 6));
  EXPECT_TRUE(hellos.take(send, 5));
  EXPECT_FALSE(hellos.take(reads, 0));
  EXPECT_FALSE(hellos.take(writes, 0));
}

}  // namespace
}  // namespace espalier::offload
