// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/fabric_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "channel/rings/link_welcome.hpp"

namespace espalier::client {
namespace {

using fabric::QueuePair;

constexpr std::uint32_t kRingReceives = 2 * rings::RingLink::kPostsMax;
constexpr std::uint32_t kRingPosts = 2 * rings::RingLink::kPostsMax;
constexpr std::uint64_t kReconnectNs = 100'000'000;  // between two tries to connect again
constexpr std::uint64_t kConnectionNapNs = 10'000'000;
constexpr std::uint32_t kQuietWorks = 16;    // empty polls between two reads of the clock
constexpr std::uint64_t kInARowNs = 10'000;  // at most, from one answer to the next request
constexpr std::uint64_t kIdleNs = 10'000'000;
constexpr std::uint64_t kCloseNs = 20'000'000;  // used up only if the node is silent

}  // namespace

FabricConnection::FabricConnection(fabric::Connecting way, const FabricConnectionOptions& options)
    : NodeConnection(true),
      options_(options),
      endpoint_(std::move(way.endpoint)),
      target_(std::move(way.target)),
      mtu_bytes_(way.mtu_bytes),
      completions_(*endpoint_, kRingReceives + kRingPosts),
      receives_(completions_, kRingReceives) {
  layout_ = {options.request_slots, options.response_slots, options.response_rings};
}

FabricConnection::~FabricConnection() {
  if (keepalive_) keepalive_->remove(*this);
  if (!lost()) hang_up();
}

Result<std::shared_ptr<FabricConnection>> FabricConnection::open(
    const fabric::FabricAddress& address, FabricConnectionOptions options) {
  auto regions = fabric::RegionTable::create();
  if (!regions) return std::unexpected(regions.error());
  auto way = fabric::open_for_connecting(address, std::move(*regions));
  // Some transports detect a missing server here.
  if (!way && way.error().code == Code::connection_lost) return fail(Code::system, ECONNREFUSED);
  if (!way) return std::unexpected(way.error());
  options.has_keepalive = true;
  auto made = open(std::move(*way), options);
  if (!made) return made;
  (*made)->address_ = address;
  try {
    (*made)->keepalive_ = KeepaliveThread::of_process();
  } catch (const std::system_error& error) {
    return fail(Code::system, static_cast<std::uint32_t>(error.code().value()));
  }
  (*made)->keepalive_->add(**made);
  return made;
}

Result<std::shared_ptr<FabricConnection>> FabricConnection::open(
    fabric::Connecting way, const FabricConnectionOptions& options) {
  std::shared_ptr<FabricConnection> made(new FabricConnection(std::move(way), options));
  if (const auto connected = made->connect_first(); !connected) {
    made->lose();
    return std::unexpected(connected.error());
  }
  return made;
}

Result<std::unique_ptr<SideLink>> FabricConnection::open_beside(wire::LinkWay way) {
  if (!address_) return fail(Code::unsupported);
  const auto said = hello_beside(way);
  if (!said) return std::unexpected(said.error());
  return SideLink::open(*address_, *said, {.timeout_ns = options_.timeout_ns});
}

Result<std::unique_ptr<SideLink>> FabricConnection::open_beside(wire::LinkWay way,
                                                                fabric::Connecting through) {
  const auto said = hello_beside(way);
  if (!said) return std::unexpected(said.error());
  return SideLink::open(std::move(through), *said,
                        {.timeout_ns = options_.timeout_ns,
                         .pair_timeout_ns = options_.pair_timeout_ns,
                         .now_ns = options_.now_ns});
}

Result<std::vector<std::byte>> FabricConnection::hello_beside(wire::LinkWay way) {
  wire::LinkHello hello{};
  hello.magic = wire::kLinkMagic;
  hello.protocol = wire::kLinkProtocol;
  hello.way = static_cast<std::uint8_t>(way);
  const std::lock_guard lock(mutex_);
  hello.token = token_;
  return signed_hello(hello);
}

Result<NodeConnection::WritableMemory> FabricConnection::offer_memory(std::uint64_t bytes) {
  auto memory = memory::SharedMemory::create("espalier-results", bytes);
  if (!memory) return std::unexpected(memory.error());
  const std::lock_guard lock(mutex_);
  auto region = endpoint_->regions().offer({memory->at(0), bytes, memory->descriptor(), 0},
                                           fabric::RemoteRights::write);
  if (!region) return std::unexpected(region.error());
  offered_.push_back({std::move(*memory), std::move(*region)});
  return WritableMemory{offered_.back().memory.at(0), offered_.back().region.remote()};
}

// --- connecting ----------------------------------------------------------------------------------

// The hello fixes the memory and the rings' sizes. A node without memory for its part refuses, and
// gets a hello with smaller rings.
Result<void> FabricConnection::connect_first() {
  if (!layout_.valid()) return fail(Code::invalid_argument);
  // A node that writes into this memory needs no receive buffers.
  const bool sent = options_.way == wire::LinkWay::send;
  buffers_.resize(sent ? std::size_t{kRingReceives} * rings::RingLink::kMirroredBytesMax : 0);
  post_receives();
  const std::uint64_t until = options_.now_ns() + options_.timeout_ns;
  for (;;) {
    auto connected = connect_with_rings(until);
    if (connected) break;
    const wire::ConnectionLayout smaller{std::max(layout_.request_slots / 2, wire::kRingSlotsMin),
                                         std::max(layout_.response_slots / 2, wire::kRingSlotsMin),
                                         layout_.response_rings};
    if (connected.error().code != Code::out_of_memory || smaller == layout_ ||
        options_.now_ns() >= until) {
      return connected;
    }
    layout_ = smaller;
    drop_pair();
    region_ = {};
    proven_.reset();
    token_ = {};
  }
  state_ = State::up;
  return {};
}

Result<void> FabricConnection::connect_with_rings(std::uint64_t until_ns) {
  auto memory = memory::SharedMemory::create("espalier-rings", layout_.bytes());
  if (!memory) return std::unexpected(memory.error());
  memory_ = std::move(*memory);
  link_ = std::make_unique<rings::RingLink>(rings::RingLink::Side::client, memory_.at(0), layout_);
  if (auto proven = prove(); !proven) return proven;
  for (;;) {
    auto connected = connect_until(until_ns);
    if (connected) return {};
    const std::uint64_t again = options_.now_ns() + kReconnectNs;
    if (!may_pass(connected.error()) || again >= until_ns) return connected;
    drop_pair();
    while (options_.now_ns() < again) {
      endpoint_->progress();
      endpoint_->wait(kConnectionNapNs);
    }
  }
}

Result<void> FabricConnection::connect_until(std::uint64_t until_ns) {
  if (const auto dialled = dial(); !dialled) return dialled;
  // Some transports detect a missing server immediately.
  const bool at_once = pair_->state() == QueuePair::State::error;
  while (pair_->state() == QueuePair::State::connecting) {
    if (options_.now_ns() >= until_ns) return fail(Code::system, ETIMEDOUT);
    endpoint_->progress();
    endpoint_->wait(kConnectionNapNs);
  }
  if (pair_->state() == QueuePair::State::error) {
    return std::unexpected(why_not_connected(*pair_, at_once));
  }
  return take_welcome();
}

void FabricConnection::post_receives() {
  const std::size_t each = buffers_.empty() ? 0 : rings::RingLink::kMirroredBytesMax;
  for (std::uint64_t i = 0; i < kRingReceives; ++i) {
    const fabric::Receive receive{i, std::span(buffers_).subspan(i * each, each)};
    receives_.post({&receive, 1});
  }
}

// Before there are rings: the node answers the proof with the session.
Result<void> FabricConnection::prove() {
  if (options_.secret == nullptr) return {};
  LinkProverOptions options;
  options.timeout_ns = options_.timeout_ns;
  options.pair_timeout_ns = options_.pair_timeout_ns;
  options.mtu_bytes = mtu_bytes_;
  options.now_ns = options_.now_ns;
  auto proven = prove_link(*endpoint_, target_, *options_.secret, own_hello(), options);
  if (!proven) return std::unexpected(proven.error());
  proven_ = std::move(*proven);
  token_ = proven_->token;
  node_id_ = proven_->node_id;
  return {};
}

void FabricConnection::copy_key(crypto::SecretBytes& key) {
  const std::lock_guard lock(mutex_);
  key = proven_ ? *proven_->key : crypto::SecretBytes{};
}

Result<std::vector<std::byte>> FabricConnection::signed_hello(const wire::LinkHello& hello) {
  const auto bytes = [](const auto& said) {
    const auto all = std::as_bytes(std::span(&said, 1));
    return std::vector<std::byte>(all.begin(), all.end());
  };
  if (!proven_) return bytes(hello);
  const auto said = proven_->sign(hello);
  if (!said) return std::unexpected(said.error());
  return bytes(*said);
}

wire::LinkHello FabricConnection::own_hello() const {
  wire::LinkHello hello{};
  hello.magic = wire::kLinkMagic;
  hello.protocol = wire::kLinkProtocol;
  hello.way = static_cast<std::uint8_t>(options_.way);
  hello.request_slots_log2 = wire::slots_log2(layout_.request_slots);
  hello.response_slots_log2 = wire::slots_log2(layout_.response_slots);
  hello.response_rings = static_cast<std::uint8_t>(layout_.response_rings);
  hello.token = token_;
  return hello;
}

// Registers a region for each pair: late WRITEs through the previous pair find no region.
Result<void> FabricConnection::dial() {
  wire::LinkHello hello = own_hello();
  if (options_.way == wire::LinkWay::write) {
    auto region = endpoint_->regions().offer(
        {memory_.at(0), memory_.bytes(), memory_.descriptor(), 0}, fabric::RemoteRights::write);
    if (!region) return std::unexpected(region.error());
    region_ = std::move(*region);
    hello.base = region_.remote().base;
    hello.key = region_.remote().key;
  }
  fabric::QueuePairOptions options;
  options.sends = &completions_;
  options.shared_receives = &receives_;
  options.send_depth = kRingPosts;
  options.mtu_bytes = mtu_bytes_;
  options.timeout_ns = options_.pair_timeout_ns;
  options.delayed_acks = true;
  const auto said = signed_hello(hello);
  if (!said) return std::unexpected(said.error());
  auto pair = endpoint_->connect(target_, options, *said);
  if (!pair) return std::unexpected(pair.error());
  pair_ = std::move(*pair);
  return {};
}

Result<void> FabricConnection::take_welcome() {
  const auto read = read_welcome(pair_->peer_data());
  if (!read) return std::unexpected(read.error());
  const wire::LinkWelcome& welcome = *read;
  if (welcome.protocol != wire::kLinkProtocol) return fail(Code::unsupported, welcome.protocol);
  const bool same = welcome.request_slots_log2 == wire::slots_log2(layout_.request_slots) &&
                    welcome.response_slots_log2 == wire::slots_log2(layout_.response_slots) &&
                    welcome.response_rings == layout_.response_rings &&
                    welcome.way == static_cast<std::uint8_t>(options_.way);
  if (!same) return fail(Code::corrupt, 2);
  // Without a token a failed pair could not resume the session, and requests would run twice.
  if (welcome.token == wire::LinkToken{}) return fail(Code::corrupt, 3);
  const bool first = token_ == wire::LinkToken{};
  if (!first && (welcome.token != token_ || welcome.node_id != node_id_)) {
    return fail(Code::corrupt, 3);
  }
  token_ = welcome.token;
  if (first) node_id_ = welcome.node_id;
  link_->attach(*pair_, {options_.way, welcome.key, welcome.base});
  return {};
}

// --- working -------------------------------------------------------------------------------------

rings::SlotReader FabricConnection::responses(std::uint32_t ring) const {
  std::byte* const credit =
      memory_.at(layout_.response_side(ring) + offsetof(wire::ResponseSide, credit));
  return {memory_.at(layout_.responses(ring)), layout_.response_slots, credit, 0,
          &link_->delivered(ring)};
}

void FabricConnection::ring(std::uint64_t /*tail*/) {
  const std::lock_guard lock(mutex_);
  if (lost()) return;
  if (idle_since_ns_ != 0) {
    const std::uint64_t rested_ns = options_.now_ns() - std::exchange(idle_since_ns_, 0);
    in_a_row_ = rested_ns < kInARowNs;
  }
  or_lose([this] {
    link_->mirror();
    endpoint_->flush();
  });
}

void FabricConnection::make_progress() {
  const std::lock_guard lock(mutex_);
  or_lose([this] { work(); });
}

template <class Work>
void FabricConnection::or_lose(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    lose();
  }
}

// Delayed ACKs: pending ACKs are piggybacked on the next request. If none follows, the node probes
// a few times, and the keepalive thread answers.
void FabricConnection::enter_idle() {
  const std::lock_guard lock(mutex_);
  idle_since_ns_ = options_.now_ns();
  if (!options_.has_keepalive || !in_a_row_) or_lose([this] { endpoint_->flush(); });
}

// Does nothing if other threads made progress meanwhile.
void FabricConnection::keep() {
  const std::uint32_t uses = uses_.load(std::memory_order_relaxed);
  if (std::exchange(uses_at_keepalive_, uses) != uses) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || lost()) return;
  try {
    mirror_and_take();
    endpoint_->flush();
  } catch (const std::exception&) {
    lose();  // no memory: the next call returns the error
  }
  if (lost() && options_.on_lost) options_.on_lost();
}

void FabricConnection::work() {
  uses_.store(uses_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const std::size_t count = mirror_and_take();
  if (count != 0) {
    quiet_works_ = 0;
  } else if (++quiet_works_ % kQuietWorks == 0 && state_ == State::up && !lost()) {
    ask_in_silence();
  }
}

std::size_t FabricConnection::mirror_and_take() {
  if (lost()) return 0;
  link_->mirror();
  fabric::Completion batch[64];
  const std::size_t count = completions_.poll(batch);
  for (std::size_t i = 0; i < count; ++i) take(batch[i]);
  link_->refresh_credits();
  if (link_->peer_closed()) {
    endpoint_->flush();  // the node waits for the ACK of its close
    lose();
  } else if (state_ != State::up || pair_->state() != QueuePair::State::connected) {
    go_on();
  }
  return count;
}

// Keepalive: the node's terminate message can get lost, and then this side would wait forever for
// an answer. So it sends a message now and then that must be acknowledged.
void FabricConnection::ask_in_silence() {
  const std::uint64_t now = options_.now_ns();
  if (quiet_works_ == kQuietWorks) asked_ns_ = now;
  if (now - asked_ns_ < options_.silence_ns) return;
  asked_ns_ = now;
  link_->ask();
}

void FabricConnection::take(const fabric::Completion& completion) {
  const bool receive = completion.opcode == fabric::Opcode::receive ||
                       completion.opcode == fabric::Opcode::receive_write;
  const bool of_pair = pair_ != nullptr && completion.pair == pair_->number();
  if (of_pair && completion.status == fabric::Status::success) heard_ = true;
  if (!receive) return link_->completed(completion);
  const std::size_t each = buffers_.empty() ? 0 : rings::RingLink::kMirroredBytesMax;
  const std::span<std::byte> buffer = std::span(buffers_).subspan(completion.work_id * each, each);
  if (of_pair && completion.status == fabric::Status::success) {
    const std::size_t bytes = std::min<std::size_t>(completion.bytes, buffer.size());
    if (!link_->received(completion, buffer.first(bytes))) lose();
  }
  const fabric::Receive again{completion.work_id, buffer};
  receives_.post({&again, 1});
}

// --- when the pair has failed --------------------------------------------------------------------

void FabricConnection::go_on() {
  const std::uint64_t now = options_.now_ns();
  if (state_ == State::up) begin_again();
  if (lost()) return;
  if (state_ == State::connecting && pair_->state() == QueuePair::State::connected) {
    const auto taken = take_welcome();
    if (taken) {
      state_ = State::up;
      ++resumed_;
      return;
    }
    if (!may_pass(taken.error())) return lose();
    wait_to_try_again(now);
  }
  if (now >= give_up_ns_) return lose();
  if (state_ == State::connecting && pair_->state() == QueuePair::State::error) {
    // No server there any more, or the session has ended. Silence and overload may pass.
    const bool silent = pair_->ended_by() == fabric::Status::retry_exceeded;
    if (!silent && !may_pass(why_not_connected(*pair_))) return lose();
    wait_to_try_again(now);
  }
  if (state_ == State::waiting && now >= again_ns_) try_again(now);
}

void FabricConnection::wait_to_try_again(std::uint64_t now_ns) {
  drop_pair();
  state_ = State::waiting;
  again_ns_ = now_ns + kReconnectNs;
}

// If the new pair received nothing, the time limit for reaching the node keeps running. If the same
// packet was lost twice for all its retries, while other packets got through to make a new pair in
// between, it is too long for the path.
void FabricConnection::begin_again() {
  const std::uint32_t undelivered = pair_->undelivered_bytes();
  const std::uint64_t moved = link_->slots_moved();
  if (undelivered != 0 && std::exchange(moved_before_undelivered_, moved) == moved) {
    return lose_undelivered(undelivered);
  }
  drop_pair();
  state_ = State::waiting;
  again_ns_ = 0;
  if (std::exchange(heard_, false)) give_up_ns_ = options_.now_ns() + options_.timeout_ns;
}

void FabricConnection::try_again(std::uint64_t now_ns) {
  const auto dialled = dial();
  if (dialled) {
    state_ = State::connecting;
  } else if (dialled.error().code == Code::system && dialled.error().detail == ECONNREFUSED) {
    lose();
  } else {
    again_ns_ = now_ns + kReconnectNs;
  }
}

void FabricConnection::drop_pair() {
  if (pair_) pair_->close();
  if (link_) link_->detach();
  pair_.reset();
  region_.revoke();
}

// --- sleeping and ending -------------------------------------------------------------------------

void FabricConnection::fall_asleep(std::uint32_t /*ring*/, const rings::SlotReader& responses,
                                   std::uint64_t longest_ns) {
  const std::lock_guard lock(mutex_);
  or_lose([&] {
    work();
    if (lost() || responses.ready() || completions_.waiting() != 0) return;
    endpoint_->wait(state_ == State::up ? longest_ns : std::min(longest_ns, kConnectionNapNs));
    work();
  });
}

bool FabricConnection::ask_lost() {
  make_progress();
  return lost();
}

// Rate-limited, since it costs a system call; a recent loss is detected soon enough.
bool FabricConnection::ask_lost_idle() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = options_.now_ns();
  if (now - std::exchange(asked_idle_ns_, now) < kIdleNs) return lost();
  or_lose([this] { work(); });
  if (!lost() && state_ != State::up) lose();
  return lost();
}

void FabricConnection::hang_up() {
  const bool was_lost = lost();
  lose();  // before the wake-up, so that a waiting thread does not wait again
  endpoint_->wake();
  const std::lock_guard lock(mutex_);
  if (!was_lost && link_) say_close(options_.now_ns() + kCloseNs);
  if (pair_) pair_->close();
  endpoint_->progress();
}

// Sends the terminate message, and waits for its acknowledgement.
void FabricConnection::say_close(std::uint64_t until_ns) {
  if (!link_->attached()) return;
  fabric::Completion batch[64];
  while ((!link_->send_close() || link_->busy()) && pair_->state() == QueuePair::State::connected &&
         options_.now_ns() < until_ns) {
    const std::size_t count = completions_.poll(batch);
    for (std::size_t i = 0; i < count; ++i) take(batch[i]);
    if (count == 0) endpoint_->wait(kConnectionNapNs / 10);
  }
}

// An acknowledged close is not an ended session: it has ended once the node answers that it knows
// no such session.
bool FabricConnection::end_session(std::uint64_t timeout_ns) {
  lose();
  endpoint_->wake();
  const std::lock_guard lock(mutex_);
  const std::uint64_t until = options_.now_ns() + timeout_ns;
  do {
    say_close(until);
    drop_pair();
    const auto known = connect_until(until);
    if (known) continue;
    if (known.error().code == Code::not_found) return true;
    if (!may_pass(known.error())) return false;
    endpoint_->wait(kConnectionNapNs);
  } while (options_.now_ns() < until);
  return false;
}

}  // namespace espalier::client
