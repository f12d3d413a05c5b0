// SPDX-License-Identifier: Apache-2.0
#include "node/http_listener.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "node/testing/http_fixture.hpp"

namespace espalier::node {
namespace {

class HttpListenerConcurrency : public testing::Test {
 protected:
  void start(std::uint64_t connection_ns = HttpListener::kConnectionNs) {
    listener_ = std::make_unique<HttpListener>([this] { return page_; }, connection_ns);
    const auto started = listener_->start(0);
    ASSERT_TRUE(started) << message(started.error());
  }
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }
  [[nodiscard]] bool lives() const { return body_of(get(port(), "/healthz")) == "ok"; }

  std::string page_ = "numbers 1\n";
  std::unique_ptr<HttpListener> listener_;
};

TEST_F(HttpListenerConcurrency, HasTwoPages) {
  start();
  const std::string metrics = get(port(), "/metrics");
  EXPECT_EQ(status_of(metrics), "HTTP/1.1 200 OK");
  EXPECT_NE(metrics.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            std::string::npos);
  EXPECT_NE(metrics.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(body_of(metrics), "numbers 1\n");
  EXPECT_EQ(body_of(get(port(), "/healthz")), "ok");
  EXPECT_EQ(body_of(exchange(port(), "GET /healthz?a=b HTTP/1.0\r\n\r\n")), "ok");
}

TEST_F(HttpListenerConcurrency, HasNothingElse) {
  start();
  for (const char* path : {"/", "/metrics/", "/METRICS", "/../etc/passwd", "/healthz/x"}) {
    EXPECT_EQ(status_of(get(port(), path)), "HTTP/1.1 404 Not Found") << path;
  }
  for (const char* method : {"HEAD", "POST", "PUT", "DELETE", "OPTIONS"}) {
    const std::string request =
        std::string(method) + " /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    EXPECT_EQ(status_of(exchange(port(), request)), "HTTP/1.1 404 Not Found") << method;
  }
}

// A page of the Web whose name leads to 127.0.0.1 has the browser ask here, but by that name.
TEST_F(HttpListenerConcurrency, AnswersOnlyWhatAsksForThisMachine) {
  start();
  const auto ask = [&](const std::string& host) {
    return status_of(exchange(port(), "GET /metrics HTTP/1.1\r\n" + host + "\r\n"));
  };
  for (const char* host : {"localhost", "LocalHost:9100", "127.0.0.1", "127.9.9.9:80", "[::1]",
                           "[::1]:9100"}) {
    EXPECT_EQ(ask("Host: " + std::string(host) + "\r\n"), "HTTP/1.1 200 OK") << host;
  }
  for (const char* host : {"example.com", "example.com:9100", "127.0.0.1.example.com", "10.0.0.1",
                           "localhost.example.com", "[::2]", "::1", "0", "a"}) {
    EXPECT_NE(ask("Host: " + std::string(host) + "\r\n"), "HTTP/1.1 200 OK") << host;
  }
  EXPECT_NE(ask("Host: localhost\r\nHost: example.com\r\n"), "HTTP/1.1 200 OK");
}

TEST_F(HttpListenerConcurrency, IsAtBothAddressesOfTheMachine) {
  start();
  const HttpClient client(port(), AF_INET6);
  if (!client.connected()) return;  // this machine has only one
  EXPECT_EQ(body_of(get(port(), "/healthz", AF_INET6)), "ok");
}

TEST_F(HttpListenerConcurrency, TellsThatAPortIsTaken) {
  start();
  HttpListener second([] { return std::string(); });
  EXPECT_EQ(second.start(port()).error(), (Error{Code::already_exists, 0, port()}));
  EXPECT_TRUE(lives());
  const std::uint16_t port = this->port();
  listener_.reset();
  const auto started = second.start(port);
  EXPECT_TRUE(started) << message(started.error());
}

TEST_F(HttpListenerConcurrency, AnswersOneRequestOfAConnectionAndThrowsTheRestAway) {
  start();
  HttpClient client(port());
  ASSERT_TRUE(client.send("POST /metrics HTTP/1.1\r\nContent-Length: 30000\r\n\r\n" +
                          std::string(30000, 'x') + "GET /healthz HTTP/1.1\r\n\r\n"));
  const std::string answer = client.receive_all();
  EXPECT_EQ(status_of(answer), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(answer.rfind("HTTP/1.1"), 0u);
  EXPECT_TRUE(lives());
}

TEST_F(HttpListenerConcurrency, AnswersGarbageOrDropsIt) {
  start();
  const std::string end = "\r\n\r\n";
  for (const std::string& garbage :
       {end, "\r\n" + end, "GET" + end, "GET /metrics" + end, "GET /metrics HTTP/9.9" + end,
        std::string(100, '\0') + end, "\xFF\xFE\x16\x03\x01" + end, "GET  /metrics  HTTP/1.1" + end,
        "GET /%zz%00%ff HTTP/1.1" + end, "GET /metrics HTTP/1.1\r\n: \r\n:::" + end,
        "GET /metrics HTTP/1.1\r\nContent-Length: -1\r\nExpect: 100-continue" + end}) {
    const std::string answer = exchange(port(), garbage);
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 ")) << answer;
  }
  EXPECT_TRUE(lives());
}

TEST_F(HttpListenerConcurrency, RefusesAHeadThatIsTooLong) {
  start();
  const std::string head = "GET /healthz HTTP/1.1\r\nCookie: ";
  const std::size_t room = HttpListener::kHeadBytesMax - head.size() - 4;
  EXPECT_EQ(status_of(exchange(port(), head + std::string(room - 1, 'a') + "\r\n\r\n")),
            "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of(exchange(port(), head + std::string(2 * room, 'a') + "\r\n\r\n")),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(status_of(exchange(port(), std::string(100'000, '\n'))),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_TRUE(lives());
}

TEST_F(HttpListenerConcurrency, MakesNoManyPartsOfAPage) {
  page_.assign(100'000, '#');
  start();
  std::string ranges = "GET /metrics HTTP/1.1\r\nRange: bytes=0-";
  while (ranges.size() < HttpListener::kHeadBytesMax - 8) ranges += ",0-";
  EXPECT_LT(exchange(port(), ranges + "\r\n\r\n").size(), page_.size() + 1000);
  const std::string odd = "GET /metrics HTTP/1.1\r\nRange: bytes=99999999999999999999999-1\r\n\r\n";
  EXPECT_LT(exchange(port(), odd).size(), page_.size() + 1000);
  EXPECT_TRUE(lives());
}

TEST_F(HttpListenerConcurrency, SlowClientsDelayNobodyAndAreEnded) {
  start(300'000'000);
  HttpClient half(port());
  ASSERT_TRUE(half.send("GET /metrics HT"));
  const std::unique_ptr<HttpClient> silent = std::make_unique<HttpClient>(port());
  EXPECT_TRUE(lives());
  EXPECT_EQ(half.receive_all(), "");
  EXPECT_EQ(silent->receive_all(), "");
}

// More is made for them than the kernel takes, so that the answer stays with the listener.
TEST_F(HttpListenerConcurrency, ClientsThatDoNotReadDelayNobodyAndAreEnded) {
  page_.assign(std::size_t{32} << 20, '#');
  start(300'000'000);
  HttpClient client(port());
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(lives());
  const std::string answer = client.receive_all();  // until it is ended, for it reads too late
  EXPECT_EQ(answer.find("and no end"), std::string::npos);
}

TEST_F(HttpListenerConcurrency, TakesInNoMoreThanItMayAndOthersLater) {
  start(300'000'000);
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (std::size_t i = 0; i < HttpListener::kConnectionsMax + 8; ++i) {
    silent.push_back(std::make_unique<HttpClient>(port()));
    ASSERT_TRUE(silent.back()->connected());
  }
  EXPECT_TRUE(lives());  // when those before have had their time
}

// Their time never ends here, so the answer comes only because they make room for it.
TEST_F(HttpListenerConcurrency, ManyStalledClientsDelayNoOther) {
  page_.assign(std::size_t{8} << 20, '#');
  start(std::uint64_t{1} << 60);
  std::vector<std::unique_ptr<HttpClient>> stalled;
  for (std::size_t i = 0; i < HttpListener::kConnectionsMax + 8; ++i) {
    stalled.push_back(std::make_unique<HttpClient>(port()));
    ASSERT_TRUE(stalled.back()->connected());
    const std::string said = i % 4 == 1   ? "GET /metrics HTTP/1.1\r\n\r\n"
                             : i % 4 == 2 ? "GET /hea"
                                          : "";
    ASSERT_TRUE(stalled.back()->send(said));
  }
  EXPECT_TRUE(lives());
  EXPECT_TRUE(lives());
}

// Clients that connect simultaneously, more than there are places, all get their answers.
TEST_F(HttpListenerConcurrency, ACrowdOfClientsIsAnswered) {
  start(std::uint64_t{1} << 60);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (std::size_t i = 0; i < HttpListener::kConnectionsMax + 8; ++i) {
    clients.push_back(std::make_unique<HttpClient>(port()));
    ASSERT_TRUE(clients.back()->send("GET /healthz HTTP/1.1\r\n\r\n"));
  }
  for (const auto& client : clients) EXPECT_EQ(body_of(client->receive_all()), "ok");
}

TEST_F(HttpListenerConcurrency, StopsWhateverIsGoingOn) {
  start(std::uint64_t{1} << 60);
  HttpClient half(port());
  ASSERT_TRUE(half.send("GET /metrics HT"));
  const HttpClient silent(port());
  ASSERT_TRUE(lives());
  listener_->stop();
  EXPECT_EQ(half.receive_all(), "");
}

TEST_F(HttpListenerConcurrency, LeavesSignalsAsTheyWere) {
  struct sigaction before {};
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  start();
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace espalier::node
