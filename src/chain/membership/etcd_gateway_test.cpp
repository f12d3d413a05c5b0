// SPDX-License-Identifier: Apache-2.0
// What is said of an etcd that is down, slow, hostile, or none: each ends soon, by its reason.
#include "chain/membership/etcd_gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "chain/membership/curl_library.hpp"
#include "chain/membership/etcd_membership.hpp"
#include "chain/membership/testing/fake_etcd.hpp"
#include "chain/membership/testing/own_etcd.hpp"

namespace espalier::chain {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kFarNs = 60'000'000'000;  // only a machine that hangs takes so long

View view_of_one() {
  return {.chain = 5,
          .epoch = 1,
          .fence_ms = 400,
          .members = {{1, "a", "roce://192.0.2.1/a", "roce://192.0.2.1/1"}}};
}

FakeEtcd::Answer ok(const std::string& body) { return {http_answer(200, body)}; }

EtcdMembership membership_at(const std::vector<std::string>& endpoints, EtcdAccess access = {}) {
  return EtcdMembership({endpoints, "key"}, std::move(access));
}

/// Why a server that answers so is of no use. It is noticed long before a machine that hangs.
EtcdError error_of(const FakeEtcd::Answer& answer, std::uint64_t within_ns = kFarNs) {
  const FakeEtcd etcd([&](const FakeEtcd::Request&) { return answer; });
  const base::Stopwatch watch;
  const auto read = membership_at({etcd.endpoint()}).read_until(base::monotonic_ns() + within_ns);
  EXPECT_LT(watch.elapsed_ns(), kFarNs);
  if (!read) return read.error();
  ADD_FAILURE() << "it was read";
  return {};
}

TEST(EtcdGateway, AnAnswerIsReadAndTheRequestIsOneOfEtcds) {
  const FakeEtcd etcd([](const FakeEtcd::Request& request) {
    EXPECT_THAT(request.head, HasSubstr("POST /v3/kv/range HTTP/1.1\r\n"));
    EXPECT_THAT(request.head, HasSubstr("\r\nContent-Type: application/json"));
    EXPECT_THAT(request.head, Not(HasSubstr("Authorization")));
    EXPECT_EQ(request.body, R"({"key":"a2V5"})");
    return ok(range_body(print(view_of_one())));
  });
  const auto read = membership_at({etcd.endpoint()}).read_until(EtcdGateway::kNoEnd);
  ASSERT_TRUE(read) << read.error().words;
  EXPECT_EQ(*read, view_of_one());
  EXPECT_EQ(etcd.requests(), 1u);
}

TEST(EtcdGateway, NoKeyIsNoChainAndNoFault) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) { return ok(range_body(std::nullopt)); });
  EXPECT_EQ(membership_at({etcd.endpoint()}).read_until(EtcdGateway::kNoEnd).value(), std::nullopt);
}

TEST(EtcdGateway, WhatIsNoAnswerOfEtcdsIsStrange) {
  const std::string deep(200'000, '[');
  const std::string long_body(std::size_t{512} << 10, 'x');
  const std::string value_of_number = R"({"header":{},"kvs":[{"value":7,"mod_revision":"7"}]})";
  const std::string two = R"({"header":{},"kvs":[{},{}]})";
  const std::string no_base64 = R"({"header":{},"kvs":[{"value":"*","mod_revision":"7"}]})";
  for (const std::string& body :
       {std::string(), std::string("hello"), std::string("null"), std::string("[1]"),
        std::string("{}"), std::string("\xff\xfe"), deep, long_body, value_of_number, two,
        no_base64, std::string(R"({"header":{},"kvs":{}})"), range_body("espalier-chain 2\n"),
        range_body("")}) {
    EXPECT_EQ(error_of(ok(body)).fault, EtcdFault::strange) << body.substr(0, 80);
  }
  EXPECT_EQ(error_of({http_answer(404, "not here")}).fault, EtcdFault::strange);
  const std::string elsewhere =
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(error_of({elsewhere}).fault, EtcdFault::strange) << "it is not followed";
}

TEST(EtcdGateway, AnAnswerWithoutAnEndIsCutOff) {
  std::string endless = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
  endless += std::string(4096, '[');
  EXPECT_EQ(error_of({endless, FakeEtcd::Then::repeat}).fault, EtcdFault::strange);
}

TEST(EtcdGateway, AServerThatIsSlowIsGivenUp) {
  constexpr std::uint64_t kSoonNs = 50'000'000;
  const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{";
  for (const std::string& bytes : {std::string(), std::string("HTTP/1.1 200 "), half}) {
    const EtcdError error = error_of({bytes, FakeEtcd::Then::hold}, kSoonNs);
    EXPECT_EQ(error.fault, EtcdFault::unavailable) << bytes;
    EXPECT_THAT(error.words, HasSubstr("etcd at 127.0.0.1:"));
  }
}

TEST(EtcdGateway, AServerThatEndsOrCannotServeIsUnavailable) {
  EXPECT_EQ(error_of({"", FakeEtcd::Then::close}).fault, EtcdFault::unavailable);
  for (const int status : {408, 429, 500, 503}) {
    EXPECT_EQ(error_of({http_answer(status, R"({"message":"no leader"})")}).fault,
              EtcdFault::unavailable)
        << status;
  }
}

// While one of them may serve later, asking again may help.
TEST(EtcdGateway, OfSeveralFaultsTheOneThatMayPassIsTheAnswer) {
  const auto answers = [](int status) {
    return
        [status](const FakeEtcd::Request&) { return FakeEtcd::Answer{http_answer(status, "{}")}; };
  };
  const FakeEtcd busy(answers(503));
  const FakeEtcd refusing(answers(403));
  const FakeEtcd strange(answers(404));
  const auto error_of_all = [](const std::vector<std::string>& endpoints) {
    const auto read = membership_at(endpoints).read_until(base::monotonic_ns() + kFarNs);
    return read ? EtcdError{} : read.error();
  };
  for (const auto& endpoints : std::vector<std::vector<std::string>>{
           {busy.endpoint(), refusing.endpoint(), strange.endpoint()},
           {refusing.endpoint(), busy.endpoint(), strange.endpoint()},
           {refusing.endpoint(), strange.endpoint(), busy.endpoint()}}) {
    const EtcdError error = error_of_all(endpoints);
    EXPECT_EQ(error.fault, EtcdFault::unavailable);
    EXPECT_THAT(error.words, HasSubstr(busy.endpoint() + ": it answers with status 503"));
  }
  EXPECT_EQ(error_of_all({strange.endpoint(), refusing.endpoint()}).fault, EtcdFault::refused);
  EXPECT_EQ(error_of_all({refusing.endpoint(), strange.endpoint()}).fault, EtcdFault::strange);
}

TEST(EtcdGateway, AnEndpointThatMakesNoAddressIsStrange) {
  const auto read = membership_at({"[:1"}).read_until(base::monotonic_ns() + kFarNs);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().fault, EtcdFault::strange) << read.error().words;
}

TEST(EtcdGateway, ARefusalSaysWhatEtcdSaysInPrintableLetters) {
  for (const int status : {400, 401, 403}) {
    const EtcdError error =
        error_of({http_answer(status, R"({"message":"permission\u001b[31m denied"})")});
    EXPECT_EQ(error.fault, EtcdFault::refused) << status;
    EXPECT_THAT(error.words, HasSubstr("permission?[31m denied"));
  }
}

TEST(EtcdGatewaySlow, TheNextEndpointIsAskedAndTheOneThatAnsweredComesFirst) {
  const FakeEtcd silent([](const FakeEtcd::Request&) {
    return FakeEtcd::Answer{"", FakeEtcd::Then::hold};
  });
  const FakeEtcd refusing(
      [](const FakeEtcd::Request&) { return FakeEtcd::Answer{http_answer(503, "{}")}; });
  const FakeEtcd good([](const FakeEtcd::Request&) { return ok(range_body(std::nullopt)); });
  const std::string none = "127.0.0.1:" + std::to_string(free_ports(1)[0]);
  EtcdMembership membership =
      membership_at({none, silent.endpoint(), refusing.endpoint(), good.endpoint()});
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(membership.read_until(base::monotonic_ns() + kFarNs));
    EXPECT_EQ(good.requests(), i);
  }
  EXPECT_LE(silent.requests(), 1u);
  EXPECT_EQ(refusing.requests(), 1u);
}

TEST(EtcdGateway, NoEndpointIsAskedBehindTheEnd) {
  const FakeEtcd silent([](const FakeEtcd::Request&) {
    return FakeEtcd::Answer{"", FakeEtcd::Then::hold};
  });
  const std::vector<std::string> many(16, silent.endpoint());
  const base::Stopwatch watch;
  const auto read = membership_at(many).read_until(base::monotonic_ns() + 50'000'000);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().fault, EtcdFault::unavailable);
  EXPECT_LE(silent.requests(), 1u);
  EXPECT_FALSE(membership_at(many).read_until(1));
  EXPECT_LE(silent.requests(), 1u) << "there was no time from the beginning";
}

TEST(EtcdGateway, APasswordIsSentOnceAndThenItsToken) {
  const FakeEtcd etcd([](const FakeEtcd::Request& request) {
    if (request.head.find("/v3/auth/authenticate") != std::string::npos) {
      EXPECT_EQ(request.body, R"({"name":"ann","password":"word"})");
      return ok(R"({"header":{},"token":"abc.1"})");
    }
    EXPECT_THAT(request.head, HasSubstr("\r\nAuthorization: abc.1"));
    return ok(range_body(std::nullopt));
  });
  EtcdMembership membership = membership_at({etcd.endpoint()}, {.user = "ann", .password = "word"});
  EXPECT_TRUE(membership.read());
  EXPECT_TRUE(membership.read());
  EXPECT_EQ(etcd.requests(), 3u);
}

// What answers may repeat the request. The reason ends in logs and in what `chain status` prints.
TEST(EtcdGateway, NoReasonShowsThePassword) {
  using Body = std::function<std::string(const FakeEtcd::Request&)>;
  const Body as_it_is = [](const FakeEtcd::Request& request) { return request.body; };
  const Body in_a_message = [](const FakeEtcd::Request& request) {
    return nlohmann::json{{"message", "cannot read " + request.body}}.dump();
  };
  const Body alone = [](const FakeEtcd::Request& request) {
    return nlohmann::json{{"message", nlohmann::json::parse(request.body)["password"]}}.dump();
  };
  for (const std::string password : {"open-sesame", "ses\"ame\\open"}) {
    for (const Body& body : {as_it_is, in_a_message, alone}) {
      const FakeEtcd etcd([&](const FakeEtcd::Request& request) {
        return FakeEtcd::Answer{http_answer(400, body(request))};
      });
      const auto read = membership_at({etcd.endpoint()}, {.user = "ann", .password = password})
                            .read_until(base::monotonic_ns() + kFarNs);
      ASSERT_FALSE(read);
      EXPECT_EQ(read.error().fault, EtcdFault::refused);
      EXPECT_THAT(read.error().words, HasSubstr("user 'ann' in (it answers with status 400"));
      EXPECT_THAT(read.error().words, Not(HasSubstr("ame"))) << "a part of each";
    }
  }
}

TEST(EtcdGateway, WhyAUserIsRefusedIsSaid) {
  const FakeEtcd etcd([](const FakeEtcd::Request&) {
    return FakeEtcd::Answer{http_answer(401, R"({"message":"invalid user ID or password"})")};
  });
  const auto read = membership_at({etcd.endpoint()}, {.user = "ann", .password = "open-sesame"})
                        .read_until(base::monotonic_ns() + kFarNs);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().words, HasSubstr("status 401: invalid user ID or password"));
}

TEST(EtcdGateway, ATokenThatWouldBeMoreThanALineIsRefused) {
  for (const char* const token : {R"("a\r\nHost: b")", "7", "null"}) {
    const FakeEtcd etcd([&](const FakeEtcd::Request&) {
      return ok(R"({"header":{},"token":)" + std::string(token) + "}");
    });
    const auto read = membership_at({etcd.endpoint()}, {.user = "ann", .password = "word"})
                          .read_until(base::monotonic_ns() + kFarNs);
    ASSERT_FALSE(read) << token;
    EXPECT_EQ(read.error().fault, EtcdFault::strange);
    EXPECT_EQ(etcd.requests(), 1u);
  }
}

TEST(CurlLibrary, OneThatIsMissingOrSomethingElseIsNotUsed) {
  EXPECT_FALSE(load_curl("libcurl-that-is-not-there.so.4"));
  EXPECT_FALSE(load_curl("libc.so.6"));
  EXPECT_TRUE(load_curl(kCurlLibrary));
  EXPECT_EQ(curl_functions(), curl_functions());
  EXPECT_NE(curl_functions(), nullptr);
}

}  // namespace
}  // namespace espalier::chain
