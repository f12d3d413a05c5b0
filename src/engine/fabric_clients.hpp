// SPDX-License-Identifier: Apache-2.0
// Accepts the clients of one endpoint of a fabric and connects them to a scheduler.
//
// A client is a session: the memory of a connection, which the scheduler serves like a local one,
// and a queue pair that mirrors the rings (ring_link.hpp). A failed pair does not end the session:
// the client reconnects, names the session, and both sides resume where they were, so no request
// runs twice and no answer is lost. A session whose client does not return in time, or sends a
// close note, ends and frees its resources.
//
// Invariants
// - No client reaches the memory of another: each session's region has a domain of its own.
// - No WRITE of an earlier pair lands after the session has resumed: its region was revoked.
// - A client that reads nothing does not stop sends to others: each has posts of its own.
// - A client that leaves messages incomplete does not block those of others: each pair can hold one
//   receive, and there is one more for each.
// - A silent or vanished client does not stay forever: the node probes it.
//
// Thread: the scheduler's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/hello_numbers.hpp"
#include "engine/lease_sweeper.hpp"
#include "engine/link_authenticator.hpp"
#include "engine/scheduler.hpp"
#include "engine/secrets.hpp"
#include "engine/session_parts.hpp"
#include "fabric/endpoint.hpp"
#include "rings/doorbells.hpp"
#include "rings/ring_link.hpp"
#include "wire/ring_link.hpp"

namespace espalier::offload {

struct FabricClientsOptions {
  std::uint64_t node_id = 0;
  /// Called with true when a client has connected, and with false when one has gone.
  std::function<void(bool comes)> count = [](bool) {};
  std::uint32_t request_slots_max = 4096;     ///< of one client
  std::uint32_t response_slots_max = 4096;    ///< of one of its rings
  std::uint64_t resume_ns = 60'000'000'000;   ///< for which a lost session can be resumed
  std::uint64_t silence_ns = 20'000'000'000;  ///< after which the node probes a client
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::uint32_t posts_max = 64512;      ///< in flight, of all clients
  std::uint32_t sessions_max = 10'000;  ///< fewer, if posts_max is too small for their posts
  /// Whether clients may read the store's memory one-sided, where the transport READs.
  bool one_sided = false;
  /// The clients that may connect, and must authenticate; null: any client may do everything.
  /// Outlives this.
  const Secrets* secrets = nullptr;
  /// A client without a proof may do everything: the transport admits only trusted ones.
  bool proof_is_optional = false;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
  /// Unpredictable random numbers; null: the system's.
  std::function<std::uint64_t()> draw;
};

/// Counters of all sessions. Thread: any.
struct FabricCounts {
  std::atomic<std::uint32_t> sessions{0};
  std::atomic<std::uint64_t> refused{0};   ///< connection requests
  std::atomic<std::uint64_t> asked{0};     ///< keepalive probes sent
  std::atomic<std::uint64_t> answered{0};  ///< keepalive probes answered
  std::atomic<std::uint64_t> lost{0};      ///< pairs that failed
  std::atomic<std::uint64_t> resumed{0};   ///< sessions resumed afterwards
  std::atomic<std::uint64_t> expired{0};   ///< sessions whose client did not return
  std::atomic<std::uint64_t> broken{0};    ///< clients that broke the protocol
  // Copied from the endpoint (fabric::ConnectCounts); slightly stale.
  std::atomic<std::uint64_t> cookies_sent{0};
  std::atomic<std::uint64_t> cookies_accepted{0};
  std::atomic<std::uint64_t> cookies_refused{0};
  std::atomic<std::uint64_t> messages_shed{0};
  std::atomic<std::uint64_t> foreign{0};
  std::atomic<std::uint64_t> out_of_window{0};
};

class FabricClients {
 public:
  /// `endpoint` listens. Connections are served by `scheduler` and announced by `doorbells`, both
  /// of which outlive this.
  FabricClients(std::unique_ptr<fabric::Endpoint> endpoint, Services& services,
                Scheduler& scheduler, rings::Doorbells& doorbells, FabricClientsOptions options);
  /// Sends a close note to all clients, and removes their connections from the scheduler.
  ~FabricClients();
  FabricClients(const FabricClients&) = delete;
  FabricClients& operator=(const FabricClients&) = delete;

  /// Receives and sends for a bounded time. Returns whether there was anything. Call it around each
  /// turn of the scheduler.
  bool turn();
  /// Whether a turn may find something new. For a thread that is about to sleep.
  [[nodiscard]] bool has_news();
  /// How long the thread may sleep before the next turn, if nothing arrives.
  [[nodiscard]] std::uint64_t sleep_limit_ns() const;
  [[nodiscard]] fabric::Endpoint& endpoint() { return *endpoint_; }

  /// Ends a connection that broke the ring protocol, as the scheduler found. Returns false if it is
  /// not one of these.
  bool end_broken(const Connection& connection);
  [[nodiscard]] const FabricCounts& counts() const { return counts_; }
  /// Counters of authentication; null: no client must authenticate.
  [[nodiscard]] const AuthenticationCounts* authentication_counts() const {
    return authenticator_ ? &authenticator_->counts() : nullptr;
  }

 private:
  struct Session {
    wire::LinkToken token{};
    fabric::Domain domain = 0;
    Connection* connection = nullptr;  // owned by the client table
    fabric::Registration region;
    std::unique_ptr<fabric::QueuePair> pair;
    std::unique_ptr<fabric::QueuePair> reads;  // of the client's READs, if it wants any
    std::vector<std::unique_ptr<fabric::QueuePair>> writes;  // of its window WRITEs
    bool met = false;                // the peer of a pair has sent something: it knows the
                                     // session's name
    bool awaited = false;            // authenticated, and its first pair is to come
    HelloNumbers hellos;             // of its client's hellos, where proofs are required
    crypto::SecretPool::Slot key;    // signs the hellos
    std::uint64_t secrets_line = 0;  // the authenticating secret (Secrets::Owner)
    std::uint64_t heard_ns = 0;      // when it was last heard or probed
    std::uint64_t lost_ns = 0;       // when its pair failed; 0: it has one
    std::uint64_t completions_before_close =
        0;  // of an ended pair: those before this one are its own
    std::uint32_t quiet_turns = 0;
    bool asked = false;  // probed, without an answer yet
    bool active = false;

    [[nodiscard]] bool is_proven() const { return key.has_secret(); }
  };
  /// A pair's session, and the completion from which the number is its own: earlier ones belong to
  /// the number's previous pair.
  struct Numbered {
    Session* session;
    std::uint64_t from;
  };
  struct Refused {
    std::unique_ptr<fabric::QueuePair> pair;
    std::uint64_t until_ns;
  };
  /// A hello with a wrong MAC, whose refusal is delayed.
  struct LateRefusal {
    fabric::ConnectRequest request;
    Error error;
    std::uint64_t at_ns;
  };
  struct TokenHash {
    std::size_t operator()(const wire::LinkToken& token) const { return token[0]; }
  };

  [[nodiscard]] std::uint32_t receives_wanted() const;
  void post_receives();
  bool post_receive(std::uint64_t buffer);
  void take(const fabric::Completion& completion);
  void take_message(const fabric::Completion& completion, Session& session);
  [[nodiscard]] Session* session_of(const fabric::Completion& completion) const;
  /// The index of the next completion that will be polled.
  [[nodiscard]] std::uint64_t next_completion() const { return taken_ + completions_.waiting(); }
  [[nodiscard]] bool has_had_its_say(Session& session);
  void accept_all(bool busy);
  Result<void> accept(const fabric::ConnectRequest& request);
  Result<std::unique_ptr<fabric::QueuePair>> accept_beside(const fabric::ConnectRequest& request,
                                                           const wire::LinkHello& hello,
                                                           const Session& session);
  Result<void> accept_reads(const fabric::ConnectRequest& request, const wire::LinkHello& hello);
  Result<void> accept_writes(const fabric::ConnectRequest& request, const wire::LinkHello& hello);
  void remove_dead_writes(Session& session);
  Result<Session*> session_for(const wire::LinkHello& hello, const std::string& peer);
  Result<Session*> new_session(const wire::LinkHello& hello, const Access& access,
                               std::string_view principal, const std::string& peer);
  void make_authenticator();
  Result<wire::LinkToken> admit_proven(const wire::LinkHello& hello, const Secrets::Owner& owner,
                                       const crypto::SecretBytes& key, const std::string& peer);
  [[nodiscard]] std::string address_of(std::string_view peer) const;
  void audit_refusal(std::string_view act, std::string_view name, std::string_view peer,
                     const Error& why);
  void audit_end(const Session& session);
  [[nodiscard]] bool must_be_proven(const wire::LinkHello& hello) const;
  Result<bool> check_proven(const fabric::ConnectRequest& request);
  void refuse_late(const fabric::ConnectRequest& request, const Error& error);
  void send_late_refusals();
  [[nodiscard]] bool secrets_were_loaded();
  [[nodiscard]] bool is_known_no_more(const Session& session) const;
  void end_unknown();
  Result<wire::LinkToken> new_token();
  Result<void> attach(Session& session, const fabric::ConnectRequest& request,
                      const wire::LinkHello& hello);
  void refuse(const fabric::ConnectRequest& request, const Error& error);
  void send_refusal(const fabric::ConnectRequest& request, const Error& error);
  [[nodiscard]] fabric::QueuePairOptions pair_options(fabric::Domain domain);
  bool mirror_active();
  [[nodiscard]] bool has_more(const Session& session) const;
  void activate(Session& session);
  void maintain();
  void copy_connect_counts();
  void fence(const std::unordered_set<std::uint64_t>& sessions);
  void remove_ended();
  void send_close();
  void lose(Session& session);
  void remove(Session& session);
  Result<std::uint64_t> draw();

  std::unique_ptr<fabric::Endpoint> endpoint_;
  EndpointSide side_;
  Services& services_;
  Scheduler& scheduler_;
  rings::Doorbells& doorbells_;
  FabricClientsOptions options_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;  // of receives; null: unused
  std::vector<std::uint64_t> free_buffers_;            // their indices
  std::uint32_t receives_in_all_ = 0;                  // posted, or not completed yet
  std::uint64_t taken_ = 0;                            // completions polled, in total
  std::unordered_map<wire::LinkToken, std::unique_ptr<Session>, TokenHash> sessions_;
  std::unordered_map<std::uint32_t, Numbered> by_pair_;
  std::vector<Session*> active_;
  std::vector<Refused> refused_;
  std::vector<LateRefusal> late_refusals_;
  std::unique_ptr<LinkAuthenticator> authenticator_;  // null: no authentication
  std::uint64_t secrets_seen_ = 0;                    // the secrets' generation at the last check
  std::vector<Session*> to_remove_;
  fabric::Domain next_domain_ = 1;
  std::size_t writes_ = 0;  // WRITE pairs of all sessions
  std::uint32_t turns_ = 0;
  std::uint32_t idle_turns_ = 0;
  std::uint64_t house_ns_ = 0;
  std::optional<LeaseSweeper> leases_;  // none: the node offers no memory
  FabricCounts counts_;
};

}  // namespace espalier::offload
