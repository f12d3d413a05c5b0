// SPDX-License-Identifier: Apache-2.0
// The clients of a scheduler that come through a fabric, by one endpoint.
//
// A client is a session: the memory of a connection, which the scheduler serves as it serves those
// of this machine, and a queue pair that carries the rings (ring_link.hpp). A pair that fails
// takes its session's rings nowhere, but does not end it: the client connects again, names the
// session, and both go on where they were, so that nothing is done twice and no answer is lost.
// Who does not come back in time, or sends a close note, is gone with all that was held for him.
//
// What never happens
// - No client reaches the memory of another: each session's region is of a domain of its own.
// - No WRITE of an earlier pair lands after the session went on: its region was revoked.
// - No client that takes nothing keeps others from being sent to: each has posts of his own.
// - No client that leaves messages unfinished keeps those of others out: each pair can hold one
//   receive, and there is one more for each.
// - No client that is silent, or gone without a word, stays for ever: who says nothing is asked.
//
// Thread: that of the scheduler.
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
  /// Called with true when one more client has come, and with false when one has gone.
  std::function<void(bool comes)> count = [](bool) {};
  std::uint32_t request_slots_max = 4096;     ///< of one client
  std::uint32_t response_slots_max = 4096;    ///< of one of its rings
  std::uint64_t resume_ns = 60'000'000'000;   ///< for which a lost client may come back
  std::uint64_t silence_ns = 20'000'000'000;  ///< after which a client is asked whether it is there
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::uint32_t posts_max = 64512;      ///< in flight, of all clients together
  std::uint32_t sessions_max = 10'000;  ///< fewer, if posts_max is too small for their own posts
  /// Whether clients may read the store's memory by themselves, where the transport READs.
  bool one_sided = false;
  /// Who may come, and must prove it; null: whoever comes may do all. Outlives them.
  const Secrets* secrets = nullptr;
  /// Who comes without a proof may do all: the transport lets in nobody else.
  bool proof_is_optional = false;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
  /// Random numbers that nobody can guess; else those of the system.
  std::function<std::uint64_t()> draw;
};

/// Numbers about them. Thread: any.
struct FabricCounts {
  std::atomic<std::uint32_t> sessions{0};
  std::atomic<std::uint64_t> refused{0};   ///< who asked and was turned away
  std::atomic<std::uint64_t> asked{0};     ///< silent clients, whether they are there
  std::atomic<std::uint64_t> answered{0};  ///< of those
  std::atomic<std::uint64_t> lost{0};      ///< pairs that failed
  std::atomic<std::uint64_t> resumed{0};   ///< sessions that went on after that
  std::atomic<std::uint64_t> expired{0};   ///< sessions whose client did not come back
  std::atomic<std::uint64_t> broken{0};    ///< clients that did not keep to the protocol
  // As the endpoint has them (fabric::ConnectCounts), a moment ago.
  std::atomic<std::uint64_t> cookies_sent{0};
  std::atomic<std::uint64_t> cookies_accepted{0};
  std::atomic<std::uint64_t> cookies_refused{0};
  std::atomic<std::uint64_t> messages_shed{0};
  std::atomic<std::uint64_t> foreign{0};
  std::atomic<std::uint64_t> out_of_window{0};
};

class FabricClients {
 public:
  /// `endpoint` listens. Connections are handed to `scheduler`, and named by `doorbells`, both of
  /// which outlive this.
  FabricClients(std::unique_ptr<fabric::Endpoint> endpoint, Services& services,
                Scheduler& scheduler, rings::Doorbells& doorbells, FabricClientsOptions options);
  /// Sends a close note to all, and removes their connections from the scheduler.
  ~FabricClients();
  FabricClients(const FabricClients&) = delete;
  FabricClients& operator=(const FabricClients&) = delete;

  /// Takes what has come, sends what is to go, for a bounded time. Returns whether there was
  /// anything. To be called around each turn of the scheduler.
  bool turn();
  /// Whether a turn may find something new. For whoever is about to sleep.
  [[nodiscard]] bool has_news();
  /// How long one may sleep before the next turn, if nothing comes.
  [[nodiscard]] std::uint64_t sleep_limit_ns() const;
  [[nodiscard]] fabric::Endpoint& endpoint() { return *endpoint_; }

  /// A connection broke the protocol of rings, says the scheduler. Returns false if it is none of
  /// these.
  bool end_broken(const Connection& connection);
  [[nodiscard]] const FabricCounts& counts() const { return counts_; }
  /// Of those who prove who they are; null: nobody must.
  [[nodiscard]] const AuthenticationCounts* authentication_counts() const {
    return authenticator_ ? &authenticator_->counts() : nullptr;
  }

 private:
  struct Session {
    wire::LinkToken token{};
    fabric::Domain domain = 0;
    Connection* connection = nullptr;  // the client table's
    fabric::Registration region;
    std::unique_ptr<fabric::QueuePair> pair;
    std::unique_ptr<fabric::QueuePair> reads;  // by which the client READs, if it wants to
    std::vector<std::unique_ptr<fabric::QueuePair>> writes;  // by which it WRITEs its windows
    bool met = false;                // the peer of a pair has shown itself: it knows its name
    bool awaited = false;            // it was proven, and its first pair is to come
    HelloNumbers hellos;             // of its client's hellos, where proofs are asked
    crypto::SecretPool::Slot key;    // by which they are signed
    std::uint64_t secrets_line = 0;  // whose secret proved it (Secrets::Owner)
    std::uint64_t heard_ns = 0;      // and asked whether it is there
    std::uint64_t lost_ns = 0;       // its pair; 0: it has one
    std::uint64_t completions_before_close =
        0;  // of a pair that ended: those before this one are its own
    std::uint32_t quiet_turns = 0;
    bool asked = false;  // and has not answered yet
    bool active = false;

    [[nodiscard]] bool is_proven() const { return key.has_secret(); }
  };
  /// Whose pair has a number, and since when: what was told before is of the one that had it then.
  struct Numbered {
    Session* session;
    std::uint64_t from;
  };
  struct Refused {
    std::unique_ptr<fabric::QueuePair> pair;
    std::uint64_t until_ns;
  };
  /// A hello with a wrong mark, which hears of that later.
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
  /// What the next completion that is told will be: the how manieth.
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
  std::vector<std::unique_ptr<std::byte[]>> buffers_;  // of receives, null: of none
  std::vector<std::uint64_t> free_buffers_;            // places of those
  std::uint32_t receives_in_all_ = 0;                  // posted, or not told yet
  std::uint64_t taken_ = 0;                            // completions, ever
  std::unordered_map<wire::LinkToken, std::unique_ptr<Session>, TokenHash> sessions_;
  std::unordered_map<std::uint32_t, Numbered> by_pair_;
  std::vector<Session*> active_;
  std::vector<Refused> refused_;
  std::vector<LateRefusal> late_refusals_;
  std::unique_ptr<LinkAuthenticator> authenticator_;  // null: nobody proves anything
  std::uint64_t secrets_seen_ = 0;                    // their generation, at the last look
  std::vector<Session*> to_remove_;
  fabric::Domain next_domain_ = 1;
  std::size_t writes_ = 0;  // pairs of all sessions by which they WRITE
  std::uint32_t turns_ = 0;
  std::uint32_t idle_turns_ = 0;
  std::uint64_t house_ns_ = 0;
  std::optional<LeaseSweeper> leases_;  // none: the node offers no memory
  FabricCounts counts_;
};

}  // namespace espalier::offload
